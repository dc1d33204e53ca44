// Steps of a backward pass read copies of stages of the forward pass, in place of results that were kept until then.
#pragma once
#include <functional>

#include "algorithms/transform/derivatives/program.h"

namespace tessera::differentiation {

// The first `forward` steps of the program are its forward part. What steps behind them read of a stage for which `is_again` holds is
// computed again just before the first of them, by a copy of the stage called "<stage>.again", from what is kept or computed again in
// turn: the same bits. A stage that writes a state, or reads one that is written, is kept, and so are results of calls. Gives the copies.
struct Copy {
    std::string stage, of;             // its name, and the original's
    std::vector<std::string> results;  // of the original, where it names them
};
std::vector<Copy> compute_again(Program &p, size_t forward, const std::function<bool(const std::string &stage)> &is_again);

// Copies whose originals are gone take their names, so that schedules of the originals apply.
void take_names_of_gone(Program &p, const std::vector<Copy> &copies);

// Whether a copy of the stage elsewhere in these steps gives the same.
bool can_be_computed_again(const Stage &stage, const std::vector<Step> &steps);

}  // namespace tessera::differentiation
