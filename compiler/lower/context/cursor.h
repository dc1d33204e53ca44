// Where in which stage's nest we are while it is built.
#pragma once
#include <memory>
#include <set>

#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/region.h"
#include "compiler/lower/context/tile_step.h"
#include "compiler/tile/tile_program.h"
#include "schedules/knobs/notation.h"

namespace tessera {

// The loops of one stage, as the schedule has them.
struct StageNest {
    const Stage *stage = nullptr;
    const Stage *root = nullptr;  // the stage at root in whose loops it stands; at root the stage itself
    Knobs knobs;                  // with every tile that the mapping adds
    std::vector<LoopName> loops;  // outermost first
    TileStep step;
    size_t fold_at = 0;   // accumulators live inside the loops before this position
    size_t parallel = 0;  // how many outermost loops are parallel
    int64_t threads = 1;  // that compute the root stage's tiles together

    bool is_at_root() const { return stage == root; }
};

// What the loops of a fold so far have fixed.
struct Fold {
    bool begun = false;                                       // its accumulators are there
    bool resumes = false;                                     // it goes on from its result, in which something is already
    bool begins_carries = false;                              // of a scan: what it carries along a loop begins, nothing else
    std::shared_ptr<const std::vector<Buffer>> accumulators;  // of each part; then of each part the second one, or none
    std::vector<Expr> earlier;                                // variables of its loops outside the accumulators
    Expr where;                                               // its condition, while it may fail inside the current pieces
    int64_t group = 1;                                        // elements of the innermost folded dim that one step takes
    Expr group_limit;                                         // defined: elements from it on are zeros
};

// For a dim whose value chooses by run: a piece lies in the first run, and the register tile has its like in every one.
struct Runs {
    int64_t count = 1, length = 0;
};

struct Cursor {
    const StageNest *nest = nullptr;
    size_t position = 0;            // of the loop that is next, or that is being made
    Pieces pieces;                  // of each dim, what the loops so far have left of it
    std::set<std::string> partial;  // dims whose register tile may run past its limit, not yet told from full ones
    bool at_border = false;         // loads are guarded here and not elsewhere: the fold's loops are not written out
    std::map<std::string, Runs> runs;
    Fold fold;

    const Stage &stage() const { return *nest->stage; }
    const LoopName &loop() const { return nest->loops[position]; }
    const Buffer &accumulator(size_t part) const { return (*fold.accumulators)[part]; }
};

// The stage's dims, the one with lanes last: its vectors are contiguous in accumulators, and what the other dims
// broadcast is used up before the next is loaded, which keeps it in one register.
std::vector<std::string> lanes_last(const Cursor &at);
// Those of them that have more than one point in the register tile.
std::vector<std::string> tile_dims(const Cursor &at);
// Whether some piece may run past its limit.
bool any_padded(const Pieces &pieces);
// The texts of the loops, outermost first: for messages.
std::string text_of(const std::vector<LoopName> &loops);

}  // namespace tessera
