#include "compiler/tile/conditional_reads.h"

#include <set>

namespace tessera {

namespace {

Expr both(const Expr &a, const Expr &b) { return a.defined() ? a && b : b; }

class Finder {
public:
    explicit Finder(const std::function<bool(const std::string &)> &w) : watched(w) {}

    std::vector<ConditionalRead> run(const std::vector<Expr> &roots) {
        for (const Expr &e : roots) visit(e, Expr());
        // What matters always is known by now; the rest in the order of its conditions.
        for (size_t i = 0; i < later.size(); i++) {
            auto [e, condition] = later[i];
            visit(e, condition);
        }
        return found;
    }

private:
    const std::function<bool(const std::string &)> &watched;
    std::set<std::pair<const Expr::Node *, const Expr::Node *>> seen;  // expression, condition
    std::vector<std::pair<Expr, Expr>> later;
    std::vector<Expr> kept;  // conditions, so that their addresses stay their own
    std::vector<ConditionalRead> found;

    void visit(const Expr &e, const Expr &condition) {
        if (seen.count({e.get(), nullptr}) || !seen.emplace(e.get(), condition.get()).second) return;
        if (e.is_operation(Op::select)) {
            visit(e->args[0], condition);
            later.emplace_back(e->args[1], both(condition, e->args[0]));
            later.emplace_back(e->args[2], both(condition, !e->args[0]));
            return;
        }
        if (e.kind() != ExprKind::load) {
            for (const Expr &arg : e->args) visit(arg, condition);
            return;
        }
        size_t rank = e->args.size() - (e->guarded ? 2 : 0);
        Expr inner = condition;
        if (e->guarded) {
            const Expr &guard = e->args[rank];
            inner = both(condition, guard);
            kept.push_back(inner);
            visit(guard, condition);
            later.emplace_back(e->args[rank + 1], both(condition, !guard));
        }
        std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
        for (const Expr &i : index) visit(i, inner);
        if (!watched(e->name)) return;
        if (inner.defined())
            for (Expr &i : index)
                i = rewrite(i, [&](const Expr &n) -> Expr {
                    if (n.kind() != ExprKind::load || n->guarded) return {};
                    return load_or(n->name, n.type(), n->args, inner, constant(n.type(), 0));
                });
        found.push_back({e->name, inner, index});
    }
};

}  // namespace

std::vector<ConditionalRead> conditional_reads(const std::vector<Expr> &roots, const std::function<bool(const std::string &)> &watched) {
    return Finder(watched).run(roots);
}

}  // namespace tessera
