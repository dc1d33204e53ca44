#include "compiler/tile/conditional_reads.h"

#include <algorithm>

namespace tessera {

namespace {

// Conditions of deep choices grow with each. Beyond this height they count as false: what is read there is not looked at.
Expr kept_low(const Expr &condition) {
    constexpr int max_height = 200;
    return condition->height > max_height ? constant_int(DType::boolean, 0) : condition;
}

Expr both(const Expr &a, const Expr &b) { return kept_low(a.defined() ? a && b : b); }

// Every node once, after all that use it, with the conditions of its uses joined: the conditions of the paths to it may be 2^height.
class Finder {
public:
    explicit Finder(const std::function<bool(const std::string &)> &w) : watched(w) {}

    std::vector<ConditionalRead> run(const std::vector<Expr> &roots) {
        std::vector<Expr> nodes;  // operands first
        AddressSet seen;
        auto keep = [&](const Expr &e) { nodes.push_back(e); };
        for (const Expr &e : roots) {
            walk_unseen(e, keep, seen);
            use(e, Expr());
        }
        for (size_t i = nodes.size(); i-- > 0;) {
            const Expr condition = uses.find(nodes[i].get())->condition;  // a copy: the map grows meanwhile
            visit(nodes[i], condition);
        }
        std::reverse(found.begin(), found.end());
        return found;
    }

private:
    struct Use {
        Expr condition;  // undefined: always
        bool is_met = false;
    };
    const std::function<bool(const std::string &)> &watched;
    AddressMap<Use> uses;
    std::vector<ConditionalRead> found;

    void use(const Expr &e, const Expr &condition) {
        Use &known = *uses.add(e.get()).first;
        if (!known.is_met) known = {condition, true};
        else if (known.condition.defined()) known.condition = condition.defined() ? kept_low(known.condition || condition) : Expr();
    }

    void visit(const Expr &e, const Expr &condition) {
        if (e.is_operation(Op::select)) {
            use(e->args[0], condition);
            use(e->args[1], both(condition, e->args[0]));
            use(e->args[2], both(condition, !e->args[0]));
            return;
        }
        if (e.kind() != ExprKind::load) {
            for (const Expr &arg : e->args) use(arg, condition);
            return;
        }
        const size_t rank = e->args.size() - (e->guarded ? 2 : 0);
        Expr inner = condition;
        if (e->guarded) {
            const Expr &guard = e->args[rank];
            inner = both(condition, guard);
            use(guard, condition);
            use(e->args[rank + 1], both(condition, !guard));
        }
        std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
        for (const Expr &i : index) use(i, inner);
        if (!watched(e->name) || (inner.defined() && inner.is_constant(0))) return;
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
