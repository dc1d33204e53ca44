#include "algorithms/expr/match.h"

#include <tuple>

namespace tessera {

static bool same(const Expr &a, const Expr &b) { return a.get() == b.get() || equal(a, b); }

bool Matcher::match(const Expr &p, const Expr &e) {
    if (p.type() != e.type()) return false;
    if (auto it = matched_.find(p.get()); it != matched_.end()) return same(it->second, e);
    if (p.kind() == ExprKind::input || p.kind() == ExprKind::left) {
        auto [bound, fresh] = (p.kind() == ExprKind::input ? inputs : lefts).emplace(p->number, e);
        if (!fresh && !same(bound->second, e)) return false;
    } else if (p.kind() == ExprKind::cast && p->args[0].kind() == ExprKind::input && e.is_constant() && is_integer(e.type())) {
        const Expr narrow = cast(p->args[0].type(), e);
        if (!equal(cast(e.type(), narrow), e) || !match(p->args[0], narrow)) return false;
    } else {
        auto key = [](const Expr &x) { return std::tie(x->kind, x->op, x->name, x->rounding, x->saturate, x->guarded, x->number); };
        if (key(p) != key(e) || p->args.size() != e->args.size()) return false;
        if (p.kind() == ExprKind::constant && !(p->value == e->value)) return false;
        for (size_t i = 0; i < p->args.size(); i++)
            if (!match(p->args[i], e->args[i])) return false;
    }
    matched_.emplace(p.get(), e);
    return true;
}

}  // namespace tessera
