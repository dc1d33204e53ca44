// What one step of a register tile computes at once: a closed set. tile_points.h loops over the steps of a tile, and fold_step.h has what
// each of them does to an accumulator.
//
//   ElementStep    one element of the result and one of the fold
//   VectorStep     lanes along one dim of the stage, or along a part's own dim
//   GroupStep      the same, and as many elements of the innermost folded dim as an instruction family takes (dot2, dot4)
//   FragmentStep   rows and columns of the result, and as many elements of the innermost folded dim (amx_bf16,
//                  mma_bf16)
#pragma once
#include <optional>
#include <variant>

#include "algorithms/ir/algorithm.h"
#include "compiler/instructions/families.h"
#include "compiler/rewrite/fragments.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct ElementStep {};

struct VectorStep {
    Extents lanes;  // by dim
};

struct GroupStep {
    const Instruction *family = nullptr;
    Extents lanes;  // by dim; none: scalars
};

struct FragmentStep {
    const Instruction *family = nullptr;
    FragmentFold fold;
    Extents lanes;  // along columns: of vectors that copy accumulators; by warps none
};

using TileStep = std::variant<ElementStep, VectorStep, GroupStep, FragmentStep>;

TileStep step_of(const Stage &stage, const Knobs &knobs);

// The lanes that the step has along a dim, where the schedule states any.
std::optional<int64_t> lanes_along(const TileStep &step, const std::string &dim);
// How many points of a dim of the stage it takes: its lanes, rows or columns, or 1.
int64_t unit(const TileStep &step, const std::string &dim);
// Whether warps take it, whose fragments come from shared memory, with zeros past the ends of operands.
bool is_by_warps(const TileStep &step);
// How many elements of the innermost folded dim it takes.
int64_t group_of(const TileStep &step);

}  // namespace tessera
