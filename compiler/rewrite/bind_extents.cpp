#include "compiler/rewrite/bind_extents.h"

#include "compiler/rewrite/given_extents.h"

namespace tessera {

Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents) {
    Algorithm result = algorithm;
    const Extents all = given_extents(algorithm, extents);
    for (Dim &d : result.dims) {
        const auto value = all.find(d.name);
        if (value != all.end()) d.kind = DimKind::fixed, d.value = value->second, d.equals.clear();
    }
    return result;
}

}  // namespace tessera
