// What loops of every kind are made of.
#pragma once
#include <functional>

#include "compiler/lower/context/built.h"
#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// "block.N" -> "n.block", made unique.
std::string loop_variable(const Lowering &lowering, const LoopName &loop, Names &names);
// Opens the loop at the cursor in `scope`; gives its variable, of which the scope knows nothing yet.
std::string open_loop(const Lowering &lowering, const Cursor &at, Scope &scope, Names &names);
// The scope of what is left over after the loop at the cursor.
Scope after_loop(const Cursor &at, const Scope &scope);
// Parallel, where the nest's loops are down to the cursor; else serial.
LoopKind kind_at(const Lowering &lowering, const Cursor &at);
// A loop of `count` iterations around a body; of one iteration the body alone, which does without the variable.
Built loop_of(const std::string &variable, const Expr &count, LoopKind kind, Built body);

// The size of a piece, seen from inside a loop over it: it is not empty there, so max(0, n) is n.
Expr inhabited(const Expr &size);
// Where a tile that is cut from a piece and may run past it has to stop. A tile may be larger than what is needed of a placed
// stage, and than what is placed inside that one.
Expr limit_in(const Piece &piece, const Bounds &facts);
bool is_multiple(const Expr &size, int64_t tile, const Bounds &facts);

// `count` iterations from index `first` on of the loop at the cursor, as many of them written out as `unroll` says.
Built repeat(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const Expr &first, const Expr &count,
             LoopKind kind, const std::function<Built(const Expr &index, const Scope &inside)> &body);

}  // namespace tessera
