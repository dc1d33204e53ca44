// Directives as the knobs that say the same.
#pragma once
#include <functional>
#include <string>

#include "schedules/knobs/schedule.h"

namespace tessera {

// Throws for the directive of this number; gets the id of the error and what is wrong.
using RefuseDirective = std::function<void(size_t number, const std::string &id, const std::string &why)>;

// `knobs` with its directives written into unroll, vector and parallel. `is_dim` knows the names of dims, also of those that
// splits make. Refused are schedule.directive: a loop over tiles where only a loop point
// by point will do; schedule.factor: no factor where one is needed.
Knobs with_directives(const Knobs &knobs, const std::function<bool(const std::string &)> &is_dim, const RefuseDirective &refuse);

}  // namespace tessera
