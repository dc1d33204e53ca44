#include "algorithms/transform/shared_expressions.h"

#include "algorithms/expr/value_numbering.h"

namespace tessera {

Algorithm with_shared_expressions(Algorithm algorithm) {
    ValueNumbering one_of_each;
    const ChangeExpr share = [&](const Expr &e) { return e.defined() ? one_of_each.unique(e) : e; };
    algorithm = map_expressions(std::move(algorithm), share);
    for (Stage &stage : algorithm.stages())
        stage = map_monoid(std::move(stage), [&](const Monoid &m) { return map_expressions(m, share); });
    return algorithm;
}

}  // namespace tessera
