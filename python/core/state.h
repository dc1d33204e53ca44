// Pages of keys and values and checkpoints of training (docs/state.md), by the library tessera_state.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

void declare_states(nb::module_ &m);

}  // namespace tessera::python
