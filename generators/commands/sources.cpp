#include "generators/commands/sources.h"

#include <map>

#include <nlohmann/json.hpp>

#include "algorithms/text/json.h"
#include "support/files/json_text.h"
#include "support/text/error.h"

namespace tessera {

// The schedules that a kernel takes on one target.
static std::vector<Schedule> schedules_of(const PreparedKernel &p) {
    const AppliedSchedule &applied = p.choice.applied;
    if (!p.choice.match.schedule) return {};
    if (applied.program.callees.empty()) return applied.ancestry;
    return {flatten(*p.choice.match.schedule, applied.program, p.request.declared)};
}

std::string sources_of(const Registry &registry, const PreparedLibrary &library, const Module &module) {
    std::map<std::string, nlohmann::json> programs;
    std::map<std::string, Schedule> schedules;
    for (size_t k = 0; k < library.kernels.size(); k++) {
        const std::vector<PreparedKernel> &targets = library.kernels[k];
        programs[targets[0].compiled.kernel.name] = to_json(load_algorithm(registry, module.kernels[k].options));
        for (const PreparedKernel &p : targets)
            for (const Schedule &s : schedules_of(p)) {
                const auto [known, fresh] = schedules.emplace(s.name(), s);
                if (!fresh && !(known->second == s))
                    throw UserError("sources.schedule", "library '" + library.name + "': expected one schedule of each name, got two '" +
                                                            s.name() + "' that differ. Give one of them another name.");
            }
    }
    nlohmann::ordered_json document = {{"format", sources_format},
                                       {"version", 1},
                                       {"programs", nlohmann::ordered_json::object()},
                                       {"schedules", nlohmann::ordered_json::object()}};
    for (const auto &[kernel, program] : programs) document["programs"][kernel] = program;
    for (const auto &[name, schedule] : schedules) document["schedules"][name] = schedule.document();
    return json_text(document) + "\n";
}

}  // namespace tessera
