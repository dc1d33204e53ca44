// What a cost model sees of a tile program: a fixed list of named numbers, read off the program without compiling it. Counts
// are as log2(1 + n), so that kernels of all sizes share one scale; the rest are ratios.
#pragma once
#include <string>
#include <vector>

#include "costmodel/features/roofline.h"

namespace tessera {

struct Feature {
    std::string name, unit, meaning;
};

// The table, in the order of `features_of`.
const std::vector<Feature> &feature_table();

// What one candidate is judged by.
struct Featured {
    std::vector<float> values;  // one for each row of the table
    double draft = 0;           // predicted_seconds
    double bound = 0;           // bound_seconds
    double own_bound = 0;       // the same of the work that the program has left; 0 where that is not known
};
// Whether the draft is one of a real processor. Where it is not, a count is wrong.
bool is_possible(const Featured &featured);
Featured features_of(const Profile &profile, const Work &work, const Target &target, int threads);

}  // namespace tessera
