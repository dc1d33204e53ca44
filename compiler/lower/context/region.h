// The part of each dim that a loop nest is computing, and the part of a tensor that an expression touches.
#pragma once
#include <optional>

#include "algorithms/index/prove.h"
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Indices lo ..= lo + size - 1 of a dim. `max_size` bounds size by an expression free of loop variables, so that storage can
// be sized. A padded piece may run past `limit`: those points are computed and never stored where anyone reads them.
struct Piece {
    Expr lo, size, max_size;
    bool padded = false;
    Expr limit;     // padded
    int since = 0;  // padded: the depth of the loop that padded it
    // Padded: points past the limit have to be zeros where they are read.
    bool zeros = false;
    // For what a tile needs: all of the dim and nothing past its end, whichever tile it is, points to spare included.
    bool whole = false;
    // For a scan that would begin here: its reader finds another part of it in each iteration of the loops around.
    bool again = false;
    // Where tiles cut it: the size of what the outermost of them cut, undefined where that is not known, and a number that they are all
    // multiples of (0: each was all there is).
    Expr cut_from = {};
    int64_t cut_by = 0;
};

using Pieces = std::map<std::string, Piece>;

// coefficient * variable sums plus a rest free of those variables; nothing for any other expression.
struct Affine {
    std::map<std::string, int64_t> coefficients;
    Expr rest;
};
std::optional<Affine> affine(const Expr &e, const Pieces &variables);

// The values that an index expression takes while each variable runs over its piece; undefined size when unknown.
Piece span(const Expr &e, const Pieces &pieces, const Bounds &facts);
// The smallest piece that holds both.
Piece unite(const Piece &a, const Piece &b, const Bounds &facts);

// A condition free of the pieces' variables under which `guard`, conjuncts of comparisons of affine expressions, holds at every point of
// the pieces; undefined where there is none.
Expr holds_throughout(const Expr &guard, const Pieces &pieces);

// The least or greatest value of an affine expression over the pieces; undefined when it is not affine or a piece is unknown.
Expr extreme(const Expr &e, const Pieces &pieces, bool highest);

}  // namespace tessera
