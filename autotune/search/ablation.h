// What each change of a winner is worth: the winner beside itself without that change.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/search/search.h"

namespace tessera {

// One change, or several that cannot be taken back one by one, since the others need them.
struct Ablation {
    std::vector<std::pair<std::string, std::string>> changes;  // stage and knob
    double gain = 0;  // the winner's speed, or what bytes it saves, over that with the base's knobs; 0 where that is not known
    double lower = 0, upper = 0;
    Verdict without = Verdict::refused;  // of the winner with the base's knobs; refused where the other knobs do not fit these
};
std::string changes_text(const Ablation &ablation);  // "y.micro, y.parallel together"

// A list for people, a row for each that was measured, by worth, as they are given: "1.250" and "y.micro"; then what has no number, with
// the reason in brackets.
std::vector<std::pair<std::string, std::string>> ablation_rows(const std::vector<Ablation> &ablations);
// Most worth first; what has no number comes last.
void sort_by_worth(std::vector<Ablation> &ablations);

struct AblationCandidate {
    Ablation ablation;
    std::optional<Candidate> without;  // the winner with the base's knobs, to be measured
};
// One for each knob in which the two differ, but for those that change no program. A change that the others need is taken back with the
// fewest of these that let it go; each is in one such group at most. `most` of them are to be measured, those of which the model expects
// most; the others stay unmeasured.
std::vector<AblationCandidate> ablations_of(const Candidate &winner, const Candidate &base, const Search &search, const CostModel &model,
                                            int most);

// What may be better than the winner, by the ablations: it without the change that harms most, and without all that do; what the space's
// restrictions do not allow is left out.
std::vector<Candidate> without_harm(const std::vector<AblationCandidate> &ablations, const Candidate &winner, const Candidate &base,
                                    const Search &search, const SearchSpace &space);

}  // namespace tessera
