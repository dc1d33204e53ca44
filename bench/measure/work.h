// How much an algorithm computes and moves for given extents: what rates are counted from.
#pragma once
#include <optional>

#include "bench/measure/inputs.h"

namespace tessera {

struct Work {
    // The float operations that the algorithm needs: each distinct value of a stage once for each point of the dims that it
    // depends on, so that what is invariant or shared is not counted again. A fold that has a batch form counts by that. An
    // fma is two; elementary functions are the operations they are made of; comparisons and conversions are none.
    // What a fold's `where` leaves out counts, as it does where attention's speed is quoted. Nothing where a dim's extent
    // depends on data.
    std::optional<double> operations;
    double bytes = 0;  // of the arguments, read once and written once
    // Of the operations, those that have another peak than f32's, under the names of peak_names (schedules/target.h): on f64, and in
    // folds of which dot2 (bf16) or dot4 (u8s8) takes several steps at a time, whether or not a schedule asks for that.
    double f64 = 0, bf16 = 0, u8s8 = 0;
};

Work work_of(const Algorithm &algorithm, const TileProgram &program, const Extents &extents);

}  // namespace tessera
