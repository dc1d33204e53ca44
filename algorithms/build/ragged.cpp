#include "algorithms/build/ragged.h"

namespace tessera {

RaggedRows ragged_rows(const std::string &name, const std::string &offsets, DType type, const std::string &parent,
                       const std::string &flat) {
    auto at = [&](const Expr &position) { return max(min(cast(DType::index, load(offsets, type, {position})), extent(flat)), 0); };
    const Expr p = variable(parent), first = at(p);
    return {derived_dim(name, max(at(p + 1) - first, 0)), bounded(first + variable(name), 0, extent(flat))};
}

}  // namespace tessera
