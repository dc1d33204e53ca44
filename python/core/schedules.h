// Schedules as values of Python.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

void declare_schedules(nb::module_ &m);

}  // namespace tessera::python
