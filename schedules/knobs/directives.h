// Directives as the knobs that say the same.
#pragma once
#include <functional>
#include <string>

#include "schedules/knobs/schedule.h"

namespace tessera {

// Called for a directive that is refused, with its number, the error's id and what is wrong; it throws.
using RefuseDirective = std::function<void(size_t number, const std::string &id, const std::string &why)>;

// `knobs` with its directives written into unroll, vector and parallel. `is_dim` knows the names of dims, also of those that splits
// make. Refuses with schedule.directive a loop over tiles where only a loop point by point will do, and with schedule.factor a
// missing factor.
Knobs with_directives(const Knobs &knobs, const std::function<bool(const std::string &)> &is_dim, const RefuseDirective &refuse);

}  // namespace tessera
