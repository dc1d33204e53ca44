// How much an algorithm computes and moves for given extents: what rates are counted from.
#pragma once
#include <optional>

#include "generators/inputs.h"

namespace tessera {

struct Work {
    // Float operations of the declared algorithm, an fma counting two, comparisons and conversions none; none where a
    // dim's extent depends on data.
    std::optional<double> operations;
    double bytes = 0;  // of the arguments, read once and written once
};

Work work_of(const Algorithm &algorithm, const TileProgram &program, const DimExtents &extents);

}  // namespace tessera
