// What the parts of nest.h's implementation share.
#pragma once
#include <algorithm>

#include "compiler/lower/nest.h"

namespace tessera {

// One stage's nest at one depth: what the loops so far have fixed.
struct Nests::State {
    const Stage *stage = nullptr;
    const Knobs *knobs = nullptr;
    std::vector<LoopName> loops;
    size_t fold_at = 0;   // accumulators live inside the loops before this position
    size_t parallel = 0;  // how many outermost loops are parallel
    Pieces pieces;
    int depth = 0;
    std::set<std::string> partial;  // dims whose register tile may run past its limit, not yet told apart
    std::vector<Expr> earlier;      // variables of reduction loops outside the accumulators
    Expr where;                     // the fold's condition, while it may fail inside the current pieces
    bool folding = false;           // inside fold_begin
    bool at_border = false;         // loads are guarded here and not elsewhere: the fold's loops are not written out
    int group = 1;                  // elements of the innermost reduced dim that one step folds
    Expr group_limit;               // defined: elements from it on are zeros
    std::vector<Buffer> accumulators;
    // Dims whose value chooses by run: a piece lies in the first run, and the register tile has its like in every one.
    struct Runs {
        int64_t count = 1, length = 0;
    };
    std::map<std::string, Runs> runs;
};

// Constant storage up to 16 KiB lives on the stack or in registers; more goes to the caller's workspace. It is also the
// most that Halide puts on the stack: beyond, it would call an allocator.
inline bool fits_on_stack(const Buffer &buffer) {
    int64_t bytes = size_of(buffer.dtype);
    for (const Expr &e : buffer.extents) {
        if (!e.is_constant()) return false;
        bytes *= e->value.integer;
        if (bytes > 16 * 1024) return false;
    }
    return true;
}

inline bool is_spatial(const Stage &stage, const std::string &dim) {
    return std::find(stage.dims.begin(), stage.dims.end(), dim) != stage.dims.end();
}

}  // namespace tessera
