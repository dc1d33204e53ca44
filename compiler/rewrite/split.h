// Splitting reductions and scans: a rewrite of Algorithm to Algorithm. The result has ordinary stages, which are scheduled like any
// others. For a stage S over dim K in pieces of `size` the new dims are K.o (pieces) and K.i (inside one):
//
//   chunks, threads  S.partial[…, K.o] = the fold over K.i;  S = the fold of the partials over K.o
//   lanes            S.partial[…, K.i] = the fold over K.o of every size-th element;  S = the fold over the lanes K.i
//   tree             lanes inside lanes: S.partial, S.partial2, … over K.i, K.i.i, … (schedules/knobs/reduction_tree.h)
//   online           S.chunk.<pass>[…, K.o] = the monoid's batch form of one piece;  S = the fold of the pieces over K.o
//   passes           S.<pass> = the monoid's batch form over all of K; S itself is gone
//   a scan           S.local, S.total, S.offset: scans within pieces, their totals, and a scan over those
//
// Stages that split K alike share the dims. Pieces of another size get K.o2 and K.i2, which schedules also call K.o and K.i
// (schedules/knobs/pieces.h).
//
// Floating-point results depend on the split, never on the number of threads that run it.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Applies every `split` knob, that of the first stage first. UserError schedule.split names the stage and the dim.
Algorithm apply_splits(Algorithm algorithm, const KnobsByStage &stages);

// Adds, for each `pack` knob of a stage S on an operand T, the identity stage "S.T.packed", and makes S load from it. Adds its
// knobs (place, layout, loops) to `stages` unless they are there already; without lanes it adds no loops, since threads share the
// copy.
Algorithm insert_packs(Algorithm algorithm, KnobsByStage &stages, int lanes);

}  // namespace tessera
