#include "autotune/space/knob_decisions.h"

namespace tessera {

std::optional<Knob> knob_made_by(const std::string &decision) {
    const std::string word = decision.substr(0, decision.find('.'));
    for (const KnobDecisions &made : knob_decisions)
        for (const char *own : made.words)
            if (own && word == own) return made.knob;
    return std::nullopt;
}

}  // namespace tessera
