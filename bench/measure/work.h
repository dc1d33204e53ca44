// How much an algorithm computes and moves for given extents; rates are computed from it.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "bench/measure/inputs.h"

namespace tessera {

struct Work {
    // The float operations that the algorithm needs. Each distinct value of a stage counts once for each point of the dims that it
    // depends on, so invariant and shared values are not counted again. A fold with a batch form counts by that form. An fma counts
    // as two; an elementary function as the operations that it is made of; comparisons and conversions do not count. What a fold's
    // `where` leaves out counts, as is usual for attention. Nothing if a dim's extent depends on data.
    std::optional<double> operations;
    double bytes = 0;  // of the arguments, read once and written once
    // Those of the operations whose peak differs from that of f32: on f64, and in folds that an instruction family of several products
    // could compute, whether or not a schedule asks for it.
    double f64 = 0;
    std::map<std::string, double> by_family = {};
};

Work work_of(const Algorithm &algorithm, const TileProgram &program, const Extents &extents);

}  // namespace tessera
