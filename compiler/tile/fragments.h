// What Move and Fragment mean: ordinary loops and stores over buffers whose elements are those of fragments, in order. Interpreters, and
// emitters that have no instruction for a family, take that.
#pragma once
#include "compiler/instructions/families.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// The index of the buffer's element at a point of the view.
std::vector<Expr> element_of(const BufferView &view, const std::vector<Expr> &at);
// The point of a fragment of that role at which it has row m, or column n, and product k.
std::vector<Expr> element_of(const Instruction &family, FragmentRole role, const Expr &row_or_column, const Expr &k);

// Whether the box has rows of elements side by side: its axes but the first one go over neighbours. The buffer is dense, or its last axis
// alone has neighbours.
bool has_whole_rows(const BufferView &view, const std::vector<int64_t> &box, const Buffer &buffer, bool is_dense);

// One warp's of the fragments that live across the steps of a block's warps, whose first axis is the warp.
BufferView fragment_of_warp(const std::string &buffer, const Expr &warp);

// The buffers that the node names.
std::vector<std::string> buffers_of(const Move &move);
std::vector<std::string> buffers_of(const Fragment &step);

// A body without either. `type` is that of the elements; names of loops begin with '%', which no other name does.
TileBody expand(const Move &move, DType type);
TileBody expand(const Fragment &step);

// How many instructions a body makes of them when each is one: a loop is written out as often as it says, and other code is there once.
struct FragmentCode {
    int64_t steps = 0, zeros = 0, loads = 0, stores = 0;
    int64_t tasks = 0;  // pieces of code that run by themselves: the body, and its parallel loops
    friend bool operator==(const FragmentCode &, const FragmentCode &) = default;
};
FragmentCode &operator+=(FragmentCode &sum, const FragmentCode &more);
FragmentCode fragment_code_of(const TileBody &body);

// Whether a body has a Fragment outside of its parallel loops; whether it invokes a program or has a parallel loop.
bool has_fragments(const TileBody &body);
bool has_calls(const TileBody &body);

}  // namespace tessera
