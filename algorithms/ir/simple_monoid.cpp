#include "algorithms/ir/simple_monoid.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

const std::vector<std::string> &simple_monoids() {
    static const std::vector<std::string> all = {"sum", "max", "maximum", "min", "product", "dot"};
    return all;
}

Monoid simple_monoid(const std::string &name, DType type) {
    static constexpr Monoid (*made[])(DType) = {sum_monoid, max_monoid, nan_max_monoid, min_monoid, product_monoid, dot_monoid};
    const auto at = std::find(simple_monoids().begin(), simple_monoids().end(), name);
    require(at != simple_monoids().end(), "no simple monoid " + name);
    return made[at - simple_monoids().begin()](type);
}

}  // namespace tessera
