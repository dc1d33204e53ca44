// The compiler's table of knobs: the steps that give each its meaning, and the targets that have a use for it.
#pragma once
#include <optional>

#include "schedules/knobs/knob.h"
#include "schedules/target/target.h"

namespace tessera {

// The first knob that is stated and that the target has no use for. Directives are to be written into other knobs before
// (schedules/knobs/directives.h).
std::optional<Knob> knob_without_use(const Knobs &knobs, const Target &target);

}  // namespace tessera
