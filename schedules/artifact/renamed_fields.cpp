#include "schedules/artifact/renamed_fields.h"

#include <algorithm>

#include "schedules/artifact/merge.h"
#include "schedules/artifact/read.h"
#include "schedules/artifact/write.h"
#include "schedules/knobs/knob.h"
#include "schedules/knobs/pattern.h"

namespace tessera {

using nlohmann::json;

bool matches_path(const FieldPath &pattern, const FieldPath &path) {
    return pattern.size() == path.size() &&
           std::equal(pattern.begin(), pattern.end(), path.begin(), [](const auto &p, const auto &name) { return matches(p, name); });
}

KnobsByStage written_stages(const Fields &fields, const Algorithm &algorithm) {
    ResolvedSchedule stated;
    stated.stages = stages_of(fields, FieldPlace{});
    for (auto &[name, k] : stated.stages) k.use.reset();
    std::erase_if(stated.stages, [](const auto &s) { return s.second == Knobs{}; });
    return without_patterns(stated, algorithm).stages;
}

const Field *origin_of(const FieldPath &path, const Fields &fields) {
    const Field *nearest = nullptr;
    size_t longest = 0;
    for (const auto &[pattern, field] : fields) {
        if (pattern == path) return &field;
        size_t length = 1;
        for (const std::string &part : pattern) length += part.size();
        if (matches_path(pattern, path) && length > longest) nearest = &field, longest = length;
    }
    return nearest;
}

// One field as knobs of one stage, and back.
static std::pair<FieldPath, json> renamed_statement(const FieldPath &path, const json &value, const std::set<std::string> &stages,
                                                    const KnobNames &names) {
    json knobs = json::object(), *slot = &knobs;
    if (path[2] == name_of(Knob::directives)) {
        knobs[path[2]] = json::array({value});
    } else {
        for (size_t i = 2; i < path.size(); i++) slot = &(*slot)[path[i]];
        *slot = value;
    }
    const Knobs one = tessera::renamed(read_knobs(knobs, stages, FieldPlace{}), names);
    return statements({{"stages", {{names.stage(path[1]), json_of(one)}}}}).front();
}

Fields renamed_fields(const KnobsByStage &stages, const KnobNames &own_names, const std::function<Field(const FieldPath &)> &origin,
                      const std::function<std::string(const std::string &)> &from) {
    const KnobNames names = with_packed_stages(own_names, stages);
    std::set<std::string> stage_names;
    for (const auto &[stage, knobs] : stages) stage_names.insert(stage);
    Fields result;
    for (const auto &[stage, knobs] : stages)
        for (const auto &[path, value] : statements({{"stages", {{stage, json_of(knobs)}}}})) {
            const Field stated = origin(path);
            const auto [own, renamed_value] = renamed_statement(path, value, stage_names, names);
            Field &copy = result[own] = {renamed_value, from(stated.set_by), {}, stated.order};
            for (const auto &[by, other] : stated.overrode)
                copy.overrode.emplace_back(from(by), renamed_statement(path, other, stage_names, names).second);
        }
    return result;
}

}  // namespace tessera
