// The module tessera._core: declaring and calling. It has no compiler in it: that is a program of its own, which the package starts.
#include "python/core/bundle.h"
#include "python/core/function.h"
#include "python/core/jax.h"
#include "python/core/kernel.h"
#include "python/core/schedules.h"
#include "python/core/state.h"
#include "python/core/tiles.h"
#include "python/core/ufunc.h"
#include "python/core/weights.h"
#include "support/text/sha256.h"

NB_MODULE(_core, m) {
    using namespace tessera::python;
    m.doc() = "Tessera's algorithms, schedules and kernels, for the package tessera.";
    nanobind::set_leak_warnings(false);  // functions of users are alive when the interpreter ends
    translate_errors();
    declare_types(m);
    nanobind::module_ expressions = m.def_submodule("expr", "Scalar expressions: of positions, extents and monoids.");
    declare_expressions(expressions);
    declare_monoids(m);
    declare_tiles(m);
    nanobind::module_ functions = m.def_submodule("tile", "Functions over tiles.");
    declare_functions(functions);
    declare_caches(functions);
    declare_recurrences(functions);
    declare_windows(functions);
    declare_schedules(m);
    declare_kernels(m);
    declare_bundles(m);
    declare_states(m);
    declare_weights(m);
    declare_function(m);
    declare_ufuncs(m);
    m.def(
        "sha256",
        [](const nanobind::bytes &data) {
            return tessera::sha256({data.c_str(), data.size()});
        },
        nanobind::arg("data"), "'sha256:' and hexadecimal digits, as manifests have them.");
    declare_jax(m);
}
