#include "schedules/knobs/knob.h"

#include <algorithm>

namespace tessera {

std::optional<Knob> knob_named(const std::string &name) {
    const auto *found = std::find_if(knob_rules.begin(), knob_rules.end(), [&](const KnobRule &rule) { return name == rule.name; });
    if (found == knob_rules.end()) return std::nullopt;
    return found->knob;
}

const std::vector<std::string> &knob_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const KnobRule &rule : knob_rules) all.emplace_back(rule.name);
        return all;
    }();
    return names;
}

}  // namespace tessera
