#include "schedules/artifact/merge.h"

#include <algorithm>

#include "schedules/artifact/read.h"

namespace tessera {

using nlohmann::json;

namespace {

std::vector<std::string> names_of(const std::vector<Schedule> &chain) {
    std::vector<std::string> names;
    for (const Schedule &schedule : chain) names.push_back(schedule.name());
    return names;
}

// Whether a schedule of the chain says by `use` whose schedule the stages around the path have: what there is to delete there is of that
// schedule, which takes the program to know (callee_schedules.h).
bool is_of_used(const FieldPath &path, const std::vector<Schedule> &chain) {
    return path.size() > 1 && path[0] == "stages" && std::any_of(chain.begin(), chain.end(), [&](const Schedule &s) {
               const json stages = s.document().value("stages", json::object());
               for (const auto &[scope, knobs] : stages.items())
                   if (knobs.is_object() && knobs.contains("use") && path[1].starts_with(scope + ".")) return true;
               return false;
           });
}

Fields merge(const std::vector<Schedule> &chain) {
    Fields fields;
    const std::vector<std::string> names = names_of(chain);
    for (size_t i = chain.size(); i-- > 0;)
        apply(fields, chain[i].document(), names[i], {names.begin() + static_cast<std::ptrdiff_t>(i) + 1, names.end()},
              [&](const FieldPath &path) { return !is_of_used(path, chain); });
    return fields;
}

// Each directive behind the one it comes after, otherwise in the order they are in.
void order(std::vector<Directive> &directives, const FieldPlace &where) {
    std::vector<Directive> done, left = directives;
    auto is_done = [&](const std::string &id) {
        return id.empty() || std::any_of(done.begin(), done.end(), [&](const Directive &d) { return d.id == id; });
    };
    while (!left.empty()) {
        auto next = std::find_if(left.begin(), left.end(), [&](const Directive &d) { return is_done(d.after); });
        if (next == left.end()) {
            const Directive &d = left.front();
            const bool exists = std::any_of(left.begin(), left.end(), [&](const Directive &other) { return other.id == d.after; });
            where.fail("schedule.directive", "directive '" + d.id + "' comes after '" + d.after + "', " +
                                                 (exists ? "which comes after it" : "which is not there") +
                                                 ". Name another, or leave 'after' out.");
        }
        done.push_back(*next);
        left.erase(next);
    }
    directives = done;
}

}  // namespace

KnobsByStage stages_of(const Fields &fields, const FieldPlace &where) {
    const json document = document_of(fields);
    KnobsByStage stages;
    if (!document.contains("stages")) return stages;
    std::set<std::string> names;
    for (const auto &[name, knobs] : document["stages"].items()) names.insert(name);
    for (const auto &[name, knobs] : document["stages"].items()) {
        Knobs &k = stages[name] = read_knobs(knobs, names, where / name);
        order(k.directives, where / name / "directives");
    }
    return stages;
}

Fields merged(const Schedule &schedule, const Library &library) { return merge(library.ancestry(schedule)); }

ResolvedSchedule resolved_of(const std::vector<Schedule> &chain, const Fields &fields) {
    ResolvedSchedule result;
    result.name = chain.front().name();
    result.chain = names_of(chain);
    const FieldPlace where{result.name, "", {result.chain.begin() + 1, result.chain.end()}};
    const json document = document_of(fields);
    if (document.contains("requires")) result.requires_features = read_strings(document["requires"], where / "requires");
    if (document.contains("algorithm")) {
        result.algorithm = document["algorithm"].value("name", "");
        result.surface = document["algorithm"].value("surface", "");
    }
    result.stages = stages_of(fields, where / "stages");
    return result;
}

ResolvedSchedule resolve(const Schedule &schedule, const Library &library) {
    const std::vector<Schedule> chain = library.ancestry(schedule);
    const Fields fields = merge(chain);
    ResolvedSchedule result = resolved_of(chain, fields);
    const auto stated = fields.find({"variants"});
    if (stated == fields.end()) return result;
    const FieldPlace where{result.name, "", {result.chain.begin() + 1, result.chain.end()}};
    const json &variants = stated->second.value;
    for (size_t i = 0; i < variants.size(); i++) {
        const json &variant = variants[i];
        const FieldPlace at = where / "variants" / std::to_string(i);
        Fields own = fields;
        apply(own, json{{"stages", variant["stages"]}}, result.name, {}, never);
        result.variants.push_back({read_conditions(variant["when"], at / "when"), stages_of(own, at / "stages")});
    }
    return result;
}

ResolvedSchedule resolve_head(const Schedule &schedule, const Library &library) {
    const std::vector<Schedule> chain = library.ancestry(schedule);
    Fields fields;
    for (size_t i = chain.size(); i-- > 0;) {
        json head = chain[i].document();
        for (const char *body : {"stages", "variants"}) head.erase(body);
        apply(fields, head, chain[i].name(), {}, [](const FieldPath &) { return true; });
    }
    return resolved_of(chain, fields);
}

std::vector<std::string> transforms_in(const std::vector<Schedule> &chain) {
    for (const Schedule &s : chain) {
        const json algorithm = s.document().value("algorithm", json::object());
        if (algorithm.contains("transforms")) return algorithm["transforms"].get<std::vector<std::string>>();
    }
    return {};
}

Schedule flatten(const Schedule &schedule, const Library &library) {
    json document = document_of(merged(schedule, library));
    for (const char *own : {"format", "version", "name", "measured"})
        if (schedule.document().contains(own)) document[own] = schedule.document()[own];
    return Schedule::from_json(document, schedule.name());
}

}  // namespace tessera
