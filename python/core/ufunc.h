// Functions over NumPy's arrays of any shape, as its ufuncs are: broadcasting, order K, results that overlap arguments.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

// The type Ufunc.
void declare_ufuncs(nb::module_ &m);

}  // namespace tessera::python
