// lower(algorithm, schedule, target) -> TileProgram: the whole of Tessera's scheduling semantics. lower.cpp is the list of its steps.
// First the schedule's rewrites change the algorithm (compiler/rewrite). Then each stage placed at root becomes a loop nest, inside which
// the stages placed at its loops are computed in the region that the loop's body needs. At last passes tidy up the body.
#pragma once
#include <cstdint>
#include <optional>

#include "algorithms/transform/bind_extents.h"
#include "compiler/lower/lowering_steps.h"
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/tile_program.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// What packs `input`, an operand of `algorithm`. Its arguments are the operand and its packed form, which is declared exactly as the
// program that `lower` gives takes it.
TileProgram lower_packing(const Algorithm &algorithm, const PackedInput &input, const Target &target);
// What packs the operands that the schedule wants packed ahead of time, one program for each, in the order of the inputs.
// UserError as lower.
std::vector<TileProgram> lower_packings(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);

// What stands in a program's expressions for a function: its definition, as emitters need it, or its name still, for who knows more of the
// function than its definition says. Both give the same bits.
enum class FunctionForm : uint8_t { defined, named };

// One program for one set of knobs; variants of a schedule are lowered one by one. Throws UserError schedule.* where the
// schedule does not fit the algorithm or asks for what would be wrong (a parallel loop that carries a reduction, …).
//
// Tiles inside of an image read without guards where the verifier follows that in `max_proof_steps`, without end if that is not given.
TileProgram lower(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target, const LoweringObserver &observer = {},
                  FunctionForm form = FunctionForm::defined, std::optional<int64_t> max_proof_steps = std::nullopt);

}  // namespace tessera
