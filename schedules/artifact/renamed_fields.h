// Fields of an algorithm's stages in the names that another algorithm has for them.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/fields.h"
#include "schedules/knobs/knob_names.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// What the fields state of the algorithm's stages, with every pattern written out and without `use`. UserError as stages_of.
KnobsByStage written_stages(const Fields &fields, const Algorithm &algorithm);

// Whether a path has patterns in place of some names of the other.
bool matches_path(const FieldPath &pattern, const FieldPath &path);

// Who states a field that patterns were written out to: the longest address of those that match; null: nobody.
const Field *origin_of(const FieldPath &path, const Fields &fields);

// `stages` as fields in other names. `origin` is who states a path in their own; `from` is what a schedule's name is called there.
Fields renamed_fields(const KnobsByStage &stages, const KnobNames &names, const std::function<Field(const FieldPath &)> &origin,
                      const std::function<std::string(const std::string &)> &from);

}  // namespace tessera
