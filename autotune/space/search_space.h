// The schedules that a tuner may try for one algorithm on one target, derived from both: no kernel is known by name. A space
// asks its decisions in one order, each with the answers that are legal after those before, and makes a schedule of
// them:
//
//   split     folds and scans: in pieces online, in passes, interleaved over lanes or the threads of a block ("team"), in chunks
//   place     Maps: inlined or stored
//   then, from the outputs back to the inputs, each stage:
//   place     in any loop that encloses all of its consumers, or before them; a scan not where it would begin again in each iteration
//   vector    the dim that runs in lanes; results that stay inside the kernel are stored along it
//   micro     the register tile, within the target's registers
//   tile      loops of a Map around the folds that are placed in it
//   block, k  cache tiles and slices of a fold
//   order     of the dims within a level; whether a loop along a scan that is read stands inside the tiles of the other dims
//   unroll    points of a fold or a scan that are written out
//   tail      what a last tile does of which only a part is there: masked stores, point by point, or a smaller register tile
//   parallel  how many outermost loops; perhaps none, where a scan may go on with the first
//   pack      copies of a fold's operands in the order in which it reads them, at any loop; of those that stay as they are, ahead of time
//   instruction
//   stream    a large output's rows or tiles, past the caches
//   prefetch  of a stage that runs row by row inside another: the next row, or where this one goes
//
// On a GPU a stage's decisions are: vector (an access of several elements), micro (a thread's part), block (a block's tile), warps, k,
// order, unroll, layout (the dim that neighbouring threads share) and pack (in shared memory).
//
// A stage's tile never exceeds what its place needs of it. What comes out has legal addresses; lowering may still refuse
// it, for a race or for storage that cannot be had.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "autotune/space/decision.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"
#include "support/text/error.h"

namespace tessera {

// A further decision of a user's own: asked last, may change any knob.
using Mutator =
    std::function<void(const Algorithm &, const Extents &, const std::function<std::string(const Decision &)> &ask, KnobsByStage &stages)>;

struct SearchSpace {
    Algorithm algorithm;  // with its fixed dims bound
    Target target;
    Extents extents;  // of the symbolic dims: what is tuned for
    int threads = 1;  // that the kernel will run on
    Restrictions restrictions;
    std::vector<Mutator> mutators;
    std::vector<std::string> ahead = {};  // operands that stay as they are, so that the caller may pack them once, ahead of time
};

// The schedule that the answers of `choose` make. UserError tune.space where a restriction allows no answer after those.
KnobsByStage realize(const SearchSpace &space, const Choose &choose);

// Whether it is a mistake of a mutator's author, and no schedule that does not fit: a search that goes on without the one must not go on
// without the other.
bool is_authors(const UserError &error);

}  // namespace tessera
