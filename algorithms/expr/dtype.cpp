#include "algorithms/expr/dtype.h"

#include "support/text/error.h"

namespace tessera {

int size_of(DType type) {
    require(type != DType::index, "an index is never stored");
    return traits_of(type).bytes;
}

DType dtype_named(const std::string &name) {
    std::vector<std::string> names;
    for (const DTypeTraits &traits : dtypes) {
        if (name == traits.name) return traits.type;
        names.push_back(traits.name);
    }
    throw UserError("dtype.unknown",
                    "there is no element type '" + name + "'; the types are " + join(names) + "." + did_you_mean(name, names));
}

}  // namespace tessera
