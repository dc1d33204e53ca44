// What each change of a winner is worth: the winner beside itself without that change.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autotune/search/search.h"

namespace tessera {

struct Ablation {
    std::string stage, knob;
    double gain = 0;  // the winner's speed, or what bytes it saves, over that with the base's knob; 0 where that is not known
    double lower = 0, upper = 0;
    Verdict without = Verdict::refused;  // of the winner with the base's knob; refused where the other knobs do not fit that
};
// "1.250", or why there is no number.
std::string ablation_text(const Ablation &ablation);

struct AblationCandidate {
    Ablation ablation;
    std::optional<Candidate> without;  // the winner with the base's knob, where that fits the others
};
// One for each knob in which the two differ, but for those that change no program; at most `most`.
std::vector<AblationCandidate> ablations_of(const Candidate &winner, const Candidate &base, const Search &search, int most);

// What may be better than the winner, by the ablations: it without the change that harms most, and without all that do; what the space's
// restrictions do not allow is left out.
std::vector<Candidate> without_harm(const std::vector<AblationCandidate> &ablations, const Candidate &winner, const Candidate &base,
                                    const Search &search, const SearchSpace &space);

}  // namespace tessera
