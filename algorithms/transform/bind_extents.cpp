#include "algorithms/transform/bind_extents.h"

#include <algorithm>

#include "algorithms/transform/given_extents.h"
#include "runtime/abi/tessera.h"
#include "support/text/error.h"

namespace tessera {

// What is too large for every call.
static void check_sizes(const Algorithm &algorithm) {
    std::vector<Tensor> tensors = algorithm.tensors;
    for (const std::string &output : algorithm.outputs)
        for (const Stage &stage : algorithm.stages())
            for (const Tensor &t : results_of(stage))
                if (t.name == output) tensors.push_back(t);
    for (const Tensor &t : tensors) {
        const int64_t most = algorithm.large.count(t.name) ? TESS_MAX_LARGE_ELEMENTS : max_extent;
        int64_t elements = 1;
        std::string shape;
        for (const std::string &name : t.dims) {
            const Dim &d = algorithm.dim(name);
            const int64_t extent = d.kind == DimKind::fixed ? d.value : 0;                 // another may be 0 in a call
            elements = extent && elements > most / extent ? most + 1 : elements * extent;  // the product may have no type
            shape += (shape.empty() ? "" : ", ") + name + "=" + std::to_string(extent);
        }
        if (elements > most)
            throw UserError("shape.too-large", algorithm.name + ": '" + t.name + "' of " + shape +
                                                   " is too large: expected a tensor of at most " + std::to_string(most) +
                                                   " elements. Fix smaller extents, or leave dims open.");
    }
}

Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents) {
    Algorithm result = algorithm;
    const Extents all = given_extents(algorithm, extents);
    for (Dim &d : result.dims) {
        const auto value = all.find(d.name);
        if (value != all.end()) d.kind = DimKind::fixed, d.value = value->second, d.equals.clear();
    }
    check_sizes(result);
    return result;
}

}  // namespace tessera
