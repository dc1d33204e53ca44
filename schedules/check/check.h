// Whether every address in a schedule leads somewhere in an algorithm. Splitting a reduction makes new stages and dims
// (compiler/rewrite/split.h), so a schedule is checked twice: its splits on the algorithm as declared, every other knob on what the
// splits made of it.
//
// Errors name the schedule, its ancestors and the field's JSON pointer:
//   schedule.algorithm, schedule.surface       it was made for another algorithm, or for one with other names
//   schedule.unknown-stage, schedule.unknown-dim, schedule.unknown-operand, schedule.unknown-loop, schedule.unknown-feature
//   schedule.condition                         a variant that never runs, or one behind which nothing does
//   schedule.split                             what is split is no reduction or scan
//   schedule.place                             a stage at a loop of itself or of an earlier stage
//   schedule.loops                             a tile that no loop runs over
//   schedule.layout                            a layout that does not hold each element of the tensor once
//   schedule.lanes                             lanes along two dims of one stage
//   schedule.register-tile                     more than 4096 elements unrolled
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/read.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The schedule, or its variant where `variant` is not negative.
FieldPlace place_of(const ResolvedSchedule &schedule, int variant = -1);

// On the algorithm as declared: its name and surface hash, features, conditions, scopes of calls, and the splits of the
// schedule's own stages and of every variant's.
void check(const ResolvedSchedule &schedule, const Algorithm &declared);

// On the algorithm after the splits of one set of stages, before inlining and packing: every knob but the splits. The
// set is the schedule's own where `variant` is negative, otherwise that variant's.
void check_stages(const ResolvedSchedule &schedule, int variant, const Algorithm &after_splits);

}  // namespace tessera
