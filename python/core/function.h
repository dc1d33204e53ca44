// What users call: a Function takes tensors of any framework, finds the kernel that was made for their extents, makes the results, and
// calls it without the interpreter's lock.
#pragma once
#include "python/core/errors.h"

namespace tessera::python {

// Function, and keep_vectorcall for classes that inherit from it.
void declare_function(nb::module_ &m);

}  // namespace tessera::python
