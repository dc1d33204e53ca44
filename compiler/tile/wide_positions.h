// Positions that need 64 bits in emitted code. A sum or product of loop variables, extents, parameters and data has 32 bits where it is
// proved to fit them wherever it is computed, for extents up to max_extent, for parameters in their ranges and for any data. Everything
// else is computed in 64 bits, guards too: a guard that wraps lets through what it must keep out, and Halide takes a 32-bit overflow for
// impossible.
#pragma once
#include <map>
#include <string>
#include <unordered_map>

#include "algorithms/index/bounds.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// The sums and products of positions in there that are not proved to fit 32 bits. What an unproved one is part of may be one of them too.
std::vector<Expr> unproved_positions(const TileProgram &program, const TileBody &body);

class WidePositions {
public:
    // Proves what it can of all positions that are computed in a part of the program. What nobody looked at has 32 bits, unless it is made
    // of what is wide.
    void look_at(const TileProgram &program, const TileBody &body);
    // What a Let's variable stands for.
    void bind(const std::string &variable, const Expr &value);
    // Must be computed in 64 bits, and so must what is computed from it. False of what is no position. A number that becomes a position
    // saturates to 32 bits, and what `bounded` gives lies in some buffer.
    bool is_wide(const Expr &e);

private:
    std::unordered_multimap<size_t, Expr> unproved_;  // by hash
    std::map<std::string, bool> bound_;
    std::unordered_map<const Expr::Node *, std::pair<Expr, bool>> known_;  // the expression is held so that its address stays its own
    bool is_unproved(const Expr &e) const;
    bool find(const Expr &e);
};

}  // namespace tessera
