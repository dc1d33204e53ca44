#include "algorithms/transform/derivatives/terms.h"

#include "support/text/error.h"

namespace tessera::differentiation {

std::vector<Expr> variables_of(const std::vector<std::string> &dims) {
    std::vector<Expr> index;
    for (const std::string &d : dims) index.push_back(variable(d));
    return index;
}

Expr own_element(const Tensor &t) {
    const std::vector<Expr> index = variables_of(t.dims);
    return load(t.name, t.dtype, Operands(index.begin(), index.end()));
}

CoefficientRequest request_for(const LinearScope &scope, const Stage &stage, const Expr &value) {
    CoefficientRequest request;
    request.value = value;
    request.is_active = [&scope](const Expr &leaf) { return scope.active.is_active(leaf); };
    request.holds_bits = [&scope](const Expr &leaf) { return scope.active.holds_bits.count(leaf->name) > 0; };
    request.stage = scope.algorithm.name + "." + stage.name;
    return request;
}

std::vector<Term> terms_of(const CoefficientRequest &request, bool folded) {
    std::vector<Term> terms;
    for (Coefficient &c : coefficients(request)) {
        Term term{folded, std::move(c.conditions), std::move(c.value), c.leaf->name, {}};
        if (c.leaf.kind() == ExprKind::load) {
            const size_t rank = c.leaf->args.size() - (c.leaf->guarded ? 2 : 0);
            term.index.assign(c.leaf->args.begin(), c.leaf->args.begin() + static_cast<std::ptrdiff_t>(rank));
            if (c.leaf->guarded) term.conditions.push_back(c.leaf->args[rank]);
        }
        terms.push_back(std::move(term));
    }
    return terms;
}

Tensor result_named(const Stage &stage, const std::string &name) {
    for (const Tensor &t : results_of(stage))
        if (t.name == name) return t;
    throw InternalError("a result that its stage does not have");
}

}  // namespace tessera::differentiation
