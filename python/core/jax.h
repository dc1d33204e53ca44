// Kernels as XLA calls them: one handler for all, which finds the kernel by its hash. An address would be kept by JAX's compilation cache
// and by what it exports, and mean nothing in the next process.
#pragma once
#include "python/core/kernel.h"

namespace tessera::python {

void declare_jax(nb::module_ &m);  // xla_handler and xla_kernel

}  // namespace tessera::python
