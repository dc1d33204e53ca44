#include "autotune/search/tuned_schedule.h"

#include <algorithm>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "schedules/artifact/fields.h"
#include "schedules/artifact/merge.h"
#include "schedules/artifact/read.h"
#include "schedules/artifact/write.h"
#include "schedules/knobs/notation.h"

namespace tessera {

using nlohmann::json;

json document_of(const KnobsByStage &stages) {
    json document = json::object();
    for (const auto &[name, knobs] : stages)
        if (json k = json_of(knobs); !k.empty()) document[name] = std::move(k);
    return document;
}

KnobsByStage knobs_from(const json &stages) {
    std::set<std::string> names;
    for (const auto &[name, knobs] : stages.items()) names.insert(name);
    KnobsByStage all;
    for (const auto &[name, knobs] : stages.items()) all[name] = read_knobs(knobs, names, FieldPlace{"tuned", "/stages", {}} / name);
    return all;
}

static Schedule with_features(const Schedule &schedule, const std::vector<std::string> &features) {
    return features.empty() ? schedule : schedule.require(features);
}

namespace {

using Values = std::map<FieldPath, json>;

Values values_of(const json &document) {
    Values all;
    for (auto &[path, value] : statements(document)) all[path] = value;
    return all;
}

// What a document states to turn `inherited` into `wanted`: nulls stand as high as they may. `state` takes each.
void state_differences(const Values &wanted, const Values &inherited, const std::function<void(const FieldPath &, const json &)> &state) {
    auto any_inside = [&](const FieldPath &prefix) {
        return std::any_of(wanted.begin(), wanted.end(), [&](const auto &f) {
            return f.first.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), f.first.begin());
        });
    };
    std::set<FieldPath> deleted;
    for (const auto &[path, value] : inherited) {
        if (wanted.count(path)) continue;
        FieldPath gone = path;
        while (gone.size() > 2 && !any_inside({gone.begin(), gone.end() - 1})) gone.pop_back();
        if (deleted.insert(gone).second) state(gone, nullptr);
    }
    for (const auto &[path, value] : wanted) {
        auto field = inherited.find(path);
        if (field == inherited.end() || field->second != value) state(path, value);
    }
}

void put(json &document, const FieldPath &path, const json &value) {
    json *slot = &document;
    for (const std::string &key : path) slot = &(*slot)[key];
    *slot = value;
}

}  // namespace

static Schedule stating_everything(const std::string &name, const KnobsByStage &stages, const std::vector<std::string> &features) {
    json whole = Schedule(name).document();
    whole["stages"] = document_of(stages);
    for (auto &[stage, knobs] : whole["stages"].items())
        if (knobs.contains(name_of(Knob::use))) knobs[name_of(Knob::use)] = "none";
    return with_features(Schedule::from_json(whole, name), features);
}

Schedule tuned_schedule(const std::string &name, const KnobsByStage &stages, const std::optional<Schedule> &parent, const Library &library,
                        const std::vector<std::string> &requires_features) {
    if (!parent) return stating_everything(name, stages, requires_features);
    return tuned_schedule(name, stages, *parent, merged(*parent, library), requires_features);
}

Schedule tuned_schedule(const std::string &name, const KnobsByStage &stages, const Schedule &parent, const Fields &inherited_fields,
                        const std::vector<std::string> &requires_features) {
    const json wanted = {{"stages", document_of(stages)}};
    const Schedule alone = stating_everything(name, stages, requires_features);
    Values inherited;
    json child = Schedule(name).document();
    child["extends"] = parent.name();
    size_t changes = 0;
    auto state = [&](const FieldPath &path, const json &value) {
        put(child, path, value);
        changes++;
    };
    for (const auto &[path, field] : inherited_fields) {
        if (path[0] == "variants") state({"variants"}, nullptr);
        if (path[0] == "stages") inherited[path] = field.value;
    }
    const Values stated = values_of(wanted);
    state_differences(stated, inherited, state);
    if (changes >= stated.size()) return alone;
    if (changes == 0) child["stages"] = json::object();
    return with_features(Schedule::from_json(child, name), requires_features);
}

Schedule with_variants(const Schedule &schedule, const KnobsByStage &stages, const std::vector<TunedVariant> &variants) {
    const Values own = values_of({{"stages", document_of(stages)}});
    json document = schedule.document();
    if (!variants.empty()) document["variants"] = json::array();
    for (const TunedVariant &v : variants) {
        json one = {{"when", json::array()}, {"stages", json::object()}};
        for (const Condition &c : v.when) one["when"].push_back(to_string(c));
        state_differences(values_of({{"stages", document_of(v.stages)}}), own,
                          [&](const FieldPath &path, const json &value) { put(one, path, value); });
        document["variants"].push_back(one);
    }
    return Schedule::from_json(document, schedule.name());
}

std::vector<std::pair<std::string, std::string>> differing_knobs(const KnobsByStage &a, const KnobsByStage &b) {
    const json of_a = document_of(a), of_b = document_of(b);
    std::set<std::pair<std::string, std::string>> all;
    for (const auto &[one, other] : {std::pair(&of_a, &of_b), std::pair(&of_b, &of_a)})
        for (const auto &[stage, knobs] : one->items())
            for (const auto &[knob, value] : knobs.items())
                if (!other->contains(stage) || !(*other)[stage].contains(knob) || (*other)[stage][knob] != value) all.emplace(stage, knob);
    return {all.begin(), all.end()};
}

KnobsByStage with_knob_of(const KnobsByStage &stages, const KnobsByStage &from, const std::string &stage, const std::string &knob) {
    json document = document_of(stages);
    const json other = document_of(from);
    if (other.contains(stage) && other[stage].contains(knob)) document[stage][knob] = other[stage][knob];
    else if (document.contains(stage)) document[stage].erase(knob);
    return knobs_from(document);
}

}  // namespace tessera
