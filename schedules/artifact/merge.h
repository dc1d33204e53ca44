// Inheritance, field by field. A field is what fields.h says: one dim of one knob of one stage, for most. From the oldest
// ancestor to the schedule itself, each states its fields over what is there:
//
//   a value       replaces the field, or adds it
//   null          deletes what it stands for: a field, or all of a knob, a stage, a list; deleting nothing is an error
//   arrays        replace as a whole (loops, parallel, layout, requires, variants)
//   directives    by id: replaced in place, deleted by {"id": …, "op": null}, otherwise appended
//
// A variant's stages are merged over the schedule's own, by the same rules; there deleting nothing is legal, since what
// it deletes may have been deleted below it. `measured` is a schedule's own and is never inherited.
#pragma once
#include "schedules/artifact/fields.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/read.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// What the schedule states and inherits, each field with who states it.
Fields merged(const Schedule &schedule, const Library &library);

// UserError as Library::ancestry, schedule.nothing-to-delete, and those of read.h if fields of several ancestors contradict each
// other; schedule.directive for a directive that comes after a missing one or after itself.
ResolvedSchedule resolve(const Schedule &schedule, const Library &library);

// What the schedule and its ancestors state beside stages and variants: its algorithm, the features that it needs. This asks nothing of
// callees' schedules, below which nulls in stages may stand (callee_schedules.h).
ResolvedSchedule resolve_head(const Schedule &schedule, const Library &library);

// What makes its algorithm of the one that its name begins with, as the nearest of a chain says that says anything.
std::vector<std::string> transforms_in(const std::vector<Schedule> &chain);

// Merged fields as a schedule without variants, of the chain that states them; its stages alone.
ResolvedSchedule resolved_of(const std::vector<Schedule> &chain, const Fields &fields);
KnobsByStage stages_of(const Fields &fields, const FieldPlace &where);

// A schedule of the same name without a parent that resolves to an equal value.
Schedule flatten(const Schedule &schedule, const Library &library);

}  // namespace tessera
