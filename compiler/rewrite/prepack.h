// Operands that are packed ahead of time, the `pack` knob at "prepack": a rewrite of one Algorithm to two. For an input
// w[K, N] with the layout N/48, K, N%48:
//
//   main      the input w.packed[N.o48, K, N.i48] in place of w; a load w[k, n] is w.packed[n/48, k, n%48]
//   packing   w.packed[n.o48, k, n.i48] = w[k, n.o48*48 + n.i48] where that is inside of w, else 0
//
// Both are lowered, verified, interpreted and emitted like any other. In memory, what is packed stands behind a header
// (runtime/tessera.h) that holds `layout_hash`.
#pragma once
#include "compiler/tile/tile_program.h"
#include "schedules/target/target.h"

namespace tessera {

struct PackedInput {
    Tensor tensor;  // "w.packed"
    Packing packing;
};

// Replaces each input that a `pack` knob of `stages` wants packed ahead of time, and takes those knobs out of `stages`; `packed`
// gets what came in their place, in the order of the inputs. UserError schedule.prepack where the operand is no input, where something reads it otherwise
// than through such a pack, or where packs differ.
Algorithm prepack(Algorithm algorithm, KnobsByStage &stages, std::vector<PackedInput> &packed);

// What packs `input`, an input of `algorithm`: named <algorithm>_pack_<operand>, over the operand's dims alone.
Algorithm packing_algorithm(const Algorithm &algorithm, const PackedInput &input);
// Its schedule: panels in parallel, vectors along what lies side by side in the operand.
KnobsByStage packing_schedule(const PackedInput &input, const Target &target);

// Of the element type, the layout by the positions of dims, and the padding; nothing else counts, so what was packed stays good
// when the rest of a schedule, extents or names change.
uint64_t layout_hash(const Packing &packing);
// The same as "sha256:…", of which the number is the first 16 digits.
std::string layout_text_hash(const Packing &packing);

// The extents of a packed tensor's axes, over extents of the operand's dims as `dims` has them.
std::vector<Expr> packed_extents(const Packing &packing, const std::vector<Dim> &dims);
// Which axis of the operand an axis of the layout is made of.
int64_t operand_axis(const Packing &packing, const LayoutAxis &axis);

}  // namespace tessera
