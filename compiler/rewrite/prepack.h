// Operands that are packed ahead of time, the `pack` knob at "prepack": a rewrite of one Algorithm to two. For an input
// w[K, N] with the layout N/48, K, N%48:
//
//   main      the input w.packed[N.o48, K, N.i48] in place of w; a load w[k, n] is w.packed[n/48, k, n%48]
//   packing   w.packed[n.o48, k, n.i48] = w[k, n.o48*48 + n.i48] where that is inside of w, else 0
//
// Both are lowered, verified, interpreted and emitted like any other. In memory a header (runtime/abi/tessera.h), which holds
// `layout_hash`, stands before the packed elements.
#pragma once
#include <set>

#include "compiler/tile/tile_program.h"
#include "schedules/target/target.h"

namespace tessera {

struct PackedInput {
    Tensor tensor;  // "w.packed"
    Packing packing;
};

// Replaces each input that a `pack` knob of `stages` wants packed ahead of time. Removes those knobs from `stages`, and adds the
// new inputs to `packed`, in the order of the algorithm's inputs. UserError schedule.prepack if the operand is no input, if something
// reads it without such a pack, or if packs differ.
// `computed` are tensors that are results of calls.
Algorithm prepack(Algorithm algorithm, KnobsByStage &stages, std::vector<PackedInput> &packed, const std::set<std::string> &computed = {});

// `operand`, an input, in that layout, which has every dim of it. UserError schedule.prepack for dims that cannot be packed: `subject` is
// who wants it so.
PackedInput packed_input(const Algorithm &algorithm, const std::string &subject, const Tensor &operand, std::vector<LayoutAxis> layout);
// Puts the packed tensor in the place of its operand, with the dims of its axes.
void take_packed(Algorithm &algorithm, const PackedInput &input);

// The algorithm that packs `input`, an input of `algorithm`. It is named <algorithm>_pack_<operand> and has the operand's dims
// only.
Algorithm packing_algorithm(const Algorithm &algorithm, const PackedInput &input);
// Its schedule: panels in parallel, vectors along the operand's last dim.
KnobsByStage packing_schedule(const PackedInput &input, const Target &target);

// A hash of the element type, the layout (by positions of dims) and the padding. Nothing else counts, so packed bytes stay valid
// when extents, names or the rest of a schedule change.
uint64_t layout_hash(const Packing &packing);
// The same as "sha256:…", of which the number is the first 16 digits.
std::string layout_text_hash(const Packing &packing);

// The extents of a packed tensor's axes, over extents of the operand's dims as `dims` has them.
std::vector<Expr> packed_extents(const Packing &packing, const std::vector<Dim> &dims);
// The axis of the operand that an axis of the layout is made from.
int64_t operand_axis(const Packing &packing, const LayoutAxis &axis);

}  // namespace tessera
