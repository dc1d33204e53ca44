// Files of weights (algorithms/import/weights) from Python.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

void declare_weights(nb::module_ &m);

}  // namespace tessera::python
