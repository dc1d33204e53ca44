// Element types and numerics policies, as Python sees them: f32, bf16 @ accum(f32).
#pragma once
#include "python/core/errors.h"

#include "algorithms/expr/dtype.h"

namespace tessera::python {

// One of the module's constants f32, f64, … . A class of its own, so that operators can be given to it.
struct Type {
    DType dtype;
};

Type type_named(const std::string &name);  // UserError python.type
void declare_types(nb::module_ &m);

}  // namespace tessera::python
