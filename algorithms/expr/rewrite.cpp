// Expressions with something replaced in them. See expr.h.
#include <optional>
#include <unordered_set>

#include "algorithms/expr/expr.h"
#include "support/text/error.h"

namespace tessera {

using Node = Expr::Node;

Expr rebuild(const Expr &e, Operands args) {
    switch (e.kind()) {
    case ExprKind::operation: return operation(e->op, std::move(args));
    case ExprKind::function: return applied(e->function, std::move(args));
    case ExprKind::cast: return cast(e.type(), args[0], e->rounding, e->saturate);
    case ExprKind::bitcast: return bitcast(e.type(), args[0]);
    case ExprKind::load:
        if (e->guarded && args[args.size() - 2].is_constant(1)) {
            args.pop_back(), args.pop_back();
            return load(e->name, e.type(), std::move(args));
        }
        break;
    case ExprKind::constant:
    case ExprKind::variable:
    case ExprKind::extent:
    case ExprKind::parameter:
    case ExprKind::bounded:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input: break;
    }
    Node node = *e.get();
    node.args = std::move(args);
    return make(std::move(node));
}

namespace {

// One node for all equal ones. What is rebuilt would otherwise share nothing with what it was made of, and a chain of values each of which
// is read at two places would have twice as many nodes with every step.
class OneOfEach {
public:
    explicit OneOfEach(const Expr &root) {
        walk(root, [&](const Expr &e) { known_.insert(e); });
    }

    Expr operator()(const Expr &e) {
        const Expr &one = *known_.insert(e).first;
        if (known_.size() > max_distinct)
            throw UserError("expr.size",
                            "an expression: expected at most " + std::to_string(max_distinct) +
                                " different operations and operands, got more, as a chain of tiles does that are each read at several "
                                "places of the one before: without a name, each reader computes all of it again. Name a tile on the way "
                                "(named), and its elements are computed once. The expression begins " +
                                brief(e, 60) + ".");
        return one;
    }

private:
    static constexpr size_t max_distinct = 20000;  // as many as may be inlined into a stage (compiler/rewrite/inline_stages.h)
    struct Hash {
        size_t operator()(const Expr &e) const { return e->hash; }
    };
    struct Equal {
        bool operator()(const Expr &a, const Expr &b) const { return equal(a, b); }
    };
    std::unordered_set<Expr, Hash, Equal> known_;
};

enum class Nodes : uint8_t { as_made, one_of_each };

// Rebuilds what `concerns` a rule, which keeps all else.
template <typename Concerns, typename Rule>
class Rewriter {
public:
    Rewriter(const Expr &root, const Concerns &concerns, const Rule &rule, Nodes nodes) : concerns_(concerns), rule_(rule) {
        constexpr int low = 16;  // nodes of low trees are few
        if (nodes == Nodes::one_of_each && root->height > low) one_.emplace(root);
    }

    Expr visit(const Expr &e) {
        if (!concerns_(e)) return e;
        if (const Expr *known = done_.find(e.get())) return *known;
        Operands args;
        for (size_t i = 0; i < e->args.size(); i++) {
            Expr arg = visit(e->args[i]);
            if (args.empty() && arg.get() == e->args[i].get()) continue;
            if (args.empty()) args = e->args;
            args[i] = std::move(arg);
        }
        Expr rebuilt = args.empty() ? e : rebuild(e, std::move(args));
        Expr replaced = rule_(rebuilt);
        if (!replaced.defined()) replaced = std::move(rebuilt);
        if (one_) replaced = (*one_)(replaced);
        return *done_.add(e.get()).first = std::move(replaced);
    }

private:
    const Concerns &concerns_;
    const Rule &rule_;
    std::optional<OneOfEach> one_;
    AddressMap<Expr> done_;
};

template <typename Concerns, typename Rule>
Expr rewrite_where(const Expr &root, const Concerns &concerns, const Rule &rule, Nodes nodes = Nodes::as_made) {
    return root.defined() && concerns(root) ? Rewriter(root, concerns, rule, nodes).visit(root) : root;
}

}  // namespace

Expr rewrite(const Expr &root, const std::function<Expr(const Expr &)> &rule) {
    return rewrite_where(
        root, [](const Expr &) { return true; }, rule);
}

Expr substitute(const Expr &e, const std::map<std::string, Expr> &values) {
    uint64_t names = 0;
    for (const auto &[name, value] : values) names |= Node::bit_of(name);
    return rewrite_where(
        e, [&](const Expr &n) { return (n->variables & names) != 0; },
        [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::variable) return {};
            auto it = values.find(n->name);
            return it == values.end() ? Expr() : it->second;
        },
        Nodes::one_of_each);
}

Expr replace_extents(const Expr &e, const std::function<Expr(const Expr &)> &value) {
    return rewrite_where(
        e, [](const Expr &n) { return n->extents; }, [&](const Expr &n) { return n.kind() == ExprKind::extent ? value(n) : Expr(); });
}

Expr replace_loads(const Expr &e, const std::function<Expr(const Expr &)> &value) {
    return rewrite_where(
        e, [](const Expr &n) { return n->loads; }, [&](const Expr &n) { return n.kind() == ExprKind::load ? value(n) : Expr(); },
        Nodes::one_of_each);
}

Expr replace_functions(const Expr &e, const std::function<Expr(const Expr &)> &value) {
    return rewrite_where(
        e, [](const Expr &n) { return n->functions; }, [&](const Expr &n) { return n.kind() == ExprKind::function ? value(n) : Expr(); });
}

Expr replace_conversions(const Expr &e, const std::function<Expr(const Expr &)> &value) {
    return rewrite_where(
        e, [](const Expr &n) { return n->conversions; }, [&](const Expr &n) { return is_expanded(n) ? value(n) : Expr(); });
}

Expr read_where(const Expr &e, const Expr &guard) {
    return replace_loads(e, [&](const Expr &n) -> Expr {
        if (!n->guarded) return load_or(n->name, n.type(), n->args, guard, constant(n.type(), 0));
        Operands index(n->args.begin(), n->args.end() - 2);
        return load_or(n->name, n.type(), index, guard && n->args[n->args.size() - 2], n->args.back());
    });
}

std::set<std::string> variables_in(const Expr &e) {
    std::set<std::string> names;
    if (e.defined() && e->variables)
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::variable) names.insert(n->name);
        });
    return names;
}

bool uses_variable(const Expr &e, const std::string &name) {
    if (!e.defined() || !(e->variables & Node::bit_of(name))) return false;
    bool found = false;
    walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::variable && n->name == name; });
    return found;
}

bool has_load(const Expr &e) { return e.defined() && e->loads; }

}  // namespace tessera
