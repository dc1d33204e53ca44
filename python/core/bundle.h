// Bundles (docs/bundle.md) that are open in this process, by the loader that servers have.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

void declare_bundles(nb::module_ &m);

}  // namespace tessera::python
