#include "compiler/lower/extents_used.h"

#include <algorithm>

#include "algorithms/transform/given_extents.h"

namespace tessera {

ExtentUses::ExtentUses(const Algorithm &a, const std::string &dim) : algorithm_(a) {
    const std::string root = root_of(a, a.dim(dim)).name;
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic && root_of(a, d).name == root) dims_.insert(d.name);
    for (size_t before = 0; before != dims_.size();) {
        before = dims_.size();
        for (const Dim &d : a.dims)
            if (asks(d.size)) dims_.insert(d.name);
    }
}

bool ExtentUses::asks(const Expr &e) const {
    bool found = false;
    if (e.defined()) walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::extent && dims_.count(n->name) > 0; });
    return found;
}

bool ExtentUses::by_stages() const {
    auto is_one = [&](const std::string &d) { return dims_.count(d) > 0; };
    for (const Stage &stage : algorithm_.stages()) {
        const std::vector<std::string> folded = folded_dims(stage);
        if (std::any_of(folded.begin(), folded.end(), is_one)) return true;
        const std::vector<Expr> values = expressions_of(stage);
        if (std::any_of(values.begin(), values.end(), [&](const Expr &e) { return asks(e); })) return true;
        bool in_monoid = false;
        if (is_fold(stage)) map_expressions(monoid_of(stage), [&](const Expr &e) { return in_monoid |= asks(e), e; });
        if (in_monoid) return true;
    }
    return false;
}

bool ExtentUses::by_call(const Call &call) const {
    if (call.repeat && dims_.count(call.repeat->dim)) return true;
    for (const auto &[name, value] : call.parameters)
        if (asks(value)) return true;
    for (const auto &[name, view] : call.tensors)
        for (const Expr &e : view.index)
            if (asks(e)) return true;
    return false;
}

bool ExtentUses::is_free(const std::map<std::string, std::string> &bound, const Algorithm &callee,
                         const std::set<std::string> &invariant) const {
    return std::all_of(bound.begin(), bound.end(), [&](const auto &names) {
        const Dim *own = callee.find_dim(names.first);
        return !dims_.count(names.second) || !own || own->kind == DimKind::fixed || invariant.count(names.first) > 0;
    });
}

}  // namespace tessera
