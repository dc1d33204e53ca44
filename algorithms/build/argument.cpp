#include "algorithms/build/argument.h"

#include "algorithms/index/affine.h"

namespace tessera {

Expr load_in(Expr value, const Numerics &policy) {
    const bool flushes = policy.denormals == Denormals::flushed;
    if (flushes && value.kind() == ExprKind::function && value->function->name.starts_with("flush_subnormals_")) value = value->args[0];
    return value.kind() == ExprKind::cast ? value->args[0] : value;
}

std::optional<View> view_of(const Expr &v, const std::vector<std::string> &dims) {
    if (v.kind() != ExprKind::load || v->guarded) return std::nullopt;
    std::map<std::string, Expr> axes;
    for (size_t i = 0; i < dims.size(); i++) axes[dims[i]] = axis(i);
    View view(v->name);
    bool is_same = v->args.size() == dims.size();
    for (size_t i = 0; i < v->args.size(); i++) {
        view.index.push_back(substitute(v->args[i], axes));
        is_same &= i < dims.size() && equal(view.index[i], axis(i));
        const auto parts = affine(view.index[i], dims.size());
        if (!parts) return std::nullopt;
        const bool is_last = i + 1 == v->args.size();
        if (!dims.empty() && !parts->steps.back().is_constant(is_last ? 1 : 0)) return std::nullopt;
    }
    return is_same ? View(v->name) : view;
}

}  // namespace tessera
