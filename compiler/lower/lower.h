// lower(algorithm, schedule, target) -> TileProgram: the whole of Tessera's scheduling semantics.
//
// Steps: calls are inlined; dims are bound to given extents; splits, inlining and packs rewrite the algorithm
// (split.h); then each stage placed at root becomes a loop nest (nest.h), inside which the stages placed at its loops
// are realised in the region that the loop's body needs.
#pragma once
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/tile_program.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// Replaces symbolic dims by fixed ones. UserError shape.unknown-dim, shape.constraint.
Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents);

// What the tile program computes: the algorithm after every rewrite that the schedule asks for.
Algorithm rewritten(const Algorithm &algorithm, KnobsByStage &stages, const Target &target);

// What packs `input`, an operand of `algorithm`: its arguments are the operand and what it is packed into, which is `packed`, as
// that argument of the program that `lower` gives is.
TileProgram lower_packing(const Algorithm &algorithm, const PackedInput &input, const Target &target);
// What packs the operands that the schedule wants packed ahead of time, one program for each, in the order of the inputs.
// UserError as lower.
std::vector<TileProgram> lower_packings(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);

// One program for one set of knobs; variants of a schedule are lowered one by one. Throws UserError schedule.* where the
// schedule does not fit the algorithm or asks for what would be wrong (a parallel loop that carries a reduction, …).
TileProgram lower(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);

}  // namespace tessera
