#include "algorithms/transform/derivatives/coefficients.h"

#include <algorithm>
#include <unordered_map>

#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera::differentiation {

DType arithmetic_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

static bool is_real(const Expr &e, double value) { return e.is_constant() && is_float(e.type()) && e->value.real == value; }

Expr product(const Expr &a, const Expr &b) {
    if (!a.defined() || !b.defined()) return {};
    if (is_real(a, 1)) return b;
    if (is_real(b, 1)) return a;
    if (is_real(a, -1)) return -b;
    if (is_real(b, -1)) return -a;
    return a * b;
}

Expr sum(const Expr &a, const Expr &b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

Expr all_of(const std::vector<Expr> &conditions) {
    Expr all;
    for (const Expr &c : conditions) all = all.defined() ? all && c : c;
    return all;
}

Expr converted(DType type, const Expr &value) { return value.type() == type ? value : cast(type, value); }

bool is_plain_load(const Expr &e) {
    if (e.kind() == ExprKind::cast && is_float(e->args[0].type())) return is_plain_load(e->args[0]);
    return e.kind() == ExprKind::load;
}

namespace {

bool are_opposite(const Expr &a, const Expr &b) {
    return (a.is_operation(Op::logical_not) && equal(a->args[0], b)) || (b.is_operation(Op::logical_not) && equal(b->args[0], a));
}

struct Adjoint {
    std::vector<Expr> conditions;
    Expr value;
};

Expr chosen(const std::vector<Expr> &conditions, const Expr &value) {
    return conditions.empty() ? value : select(all_of(conditions), value, constant(value.type(), 0));
}

// What both are under the conditions that they have in common.
Adjoint added(const Adjoint &a, const Adjoint &b) {
    size_t common = 0;
    while (common < a.conditions.size() && common < b.conditions.size() && equal(a.conditions[common], b.conditions[common])) common++;
    const auto from = static_cast<std::ptrdiff_t>(common);
    Adjoint both{{a.conditions.begin(), a.conditions.begin() + from}, {}};
    const std::vector<Expr> own_a(a.conditions.begin() + from, a.conditions.end()), own_b(b.conditions.begin() + from, b.conditions.end());
    if (own_a.empty() && own_b.empty()) {
        both.value = a.value + b.value;
    } else if (own_a.size() == 1 && own_b.size() == 1 && are_opposite(own_a[0], own_b[0])) {
        const bool swapped = own_a[0].is_operation(Op::logical_not);
        both.value = swapped ? select(own_b[0], b.value, a.value) : select(own_a[0], a.value, b.value);
    } else {
        if (!own_a.empty() && !own_b.empty()) both.conditions.push_back(all_of(own_a) || all_of(own_b));
        both.value = chosen(own_a, a.value) + chosen(own_b, b.value);
    }
    return both;
}

// A function without a derivative is what it is made of, if that has no bits.
Expr with_definitions(const Expr &e, const CoefficientRequest &request) {
    return replace_functions(e, [&](const Expr &f) -> Expr {
        if (f->function->facts.derivative.known() || f->function->facts.rounds) return {};
        const Expr body = definition_of(f);
        walk(f->function->definition(f.type()), [&](const Expr &n) {
            if (n.kind() == ExprKind::bitcast)
                throw UserError(
                    "derivative.bits",
                    request.stage + ": the function '" + f->name + "' has no derivative, and is defined by bits of its arguments",
                    "Say its derivative (FunctionFacts::derivative).");
        });
        return with_definitions(body, request);
    });
}

class Accumulator {
public:
    explicit Accumulator(const CoefficientRequest &request) : request_(request) {
        root_ = with_definitions(request.value, request);
        walk(root_, [&](const Expr &e) {
            order_.push_back(e);
            depends_[e.get()] = is_on_path(e);
        });
        note_own(root_);
    }

    std::vector<Coefficient> run() {
        if (!depends_.at(root_.get())) return {};
        const DType type = arithmetic_type(root_.type());
        adjoints_[root_.get()] = {{}, request_.seed.defined() ? converted(type, request_.seed) : constant(type, 1)};
        std::vector<Coefficient> found;
        for (size_t i = order_.size(); i-- > 0;) {
            const auto it = adjoints_.find(order_[i].get());
            if (it == adjoints_.end()) continue;
            if (is_leaf(order_[i])) found.push_back({order_[i], it->second.conditions, it->second.value});
            spread(order_[i], Adjoint(it->second));
        }
        std::reverse(found.begin(), found.end());
        std::vector<Coefficient> merged;
        for (Coefficient &c : found) {
            auto known = std::find_if(merged.begin(), merged.end(), [&](const Coefficient &m) { return equal(m.leaf, c.leaf); });
            if (known == merged.end()) {
                merged.push_back(std::move(c));
                continue;
            }
            const Adjoint both = added({known->conditions, known->value}, {c.conditions, c.value});
            known->conditions = both.conditions, known->value = both.value;
        }
        for (Coefficient &c : merged) {
            c.value = read_own(c.value);
            for (Expr &condition : c.conditions) condition = read_own(condition);
        }
        return merged;
    }

private:
    const CoefficientRequest &request_;
    Expr root_;
    std::vector<Expr> order_;  // operands first
    std::unordered_map<const Expr::Node *, bool> depends_;
    std::unordered_map<const Expr::Node *, Adjoint> adjoints_;
    std::vector<Expr> own_;  // nodes that are the result where they are chosen

    bool is_leaf(const Expr &e) const {
        return (e.kind() == ExprKind::load || e.kind() == ExprKind::parameter) && is_float(e.type()) && request_.is_active(e);
    }
    bool depends(const Expr &e) const { return depends_.at(e.get()); }

    // Whether a change of an active number changes the node: of floats by a little, of integers in their bits.
    bool is_on_path(const Expr &e) const {
        const auto any = [&](size_t from) {
            return std::any_of(e->args.begin() + static_cast<std::ptrdiff_t>(from), e->args.end(),
                               [&](const Expr &a) { return depends(a); });
        };
        switch (e.kind()) {
        case ExprKind::load:
            if (is_leaf(e) || (!is_float(e.type()) && request_.holds_bits(e))) return true;
            return e->guarded && depends(e->args.back());
        case ExprKind::parameter: return is_leaf(e);
        case ExprKind::operation:
            if (is_comparison(e->op) || e->op == Op::floor || e->op == Op::ceil || e->op == Op::round || e->op == Op::trunc) return false;
            return any(e->op == Op::select ? 1 : 0);
        case ExprKind::cast: return is_float(e.type()) == is_float(e->args[0].type()) && any(0);
        case ExprKind::bitcast:
        case ExprKind::function: return any(0);
        default: return false;
        }
    }

    void note_own(const Expr &e) {
        if (!request_.result.defined() || e.type() != request_.result.type()) return;
        if (e.kind() == ExprKind::operation || e.kind() == ExprKind::function) own_.push_back(e);
        if (e.is_operation(Op::select)) note_own(e->args[1]), note_own(e->args[2]);
    }
    Expr read_own(const Expr &e) const {
        if (own_.empty() || !e.defined()) return e;
        return rewrite(e, [&](const Expr &n) -> Expr {
            const bool is_own = std::any_of(own_.begin(), own_.end(), [&](const Expr &o) { return equal(n, o); });
            return is_own ? request_.result : Expr();
        });
    }

    void give(const Expr &to, Adjoint more) {
        if (!more.value.defined() || !depends(to)) return;
        auto [it, fresh] = adjoints_.try_emplace(to.get(), more);
        if (!fresh) it->second = added(it->second, more);
    }
    void give_times(const Expr &to, const Adjoint &adjoint, const Expr &factor) {
        give(to, {adjoint.conditions, product(adjoint.value, factor)});
    }
    void give_where(const Expr &to, const Adjoint &adjoint, const Expr &condition) {
        Adjoint more = adjoint;
        more.conditions.push_back(condition);
        give(to, std::move(more));
    }

    void spread(const Expr &e, const Adjoint &a) {
        switch (e.kind()) {
        case ExprKind::operation: return spread_operation(e, a);
        case ExprKind::function: return spread_function(e, a);
        case ExprKind::cast: return give(e->args[0], {a.conditions, converted(arithmetic_type(e->args[0].type()), a.value)});
        case ExprKind::load:
            if (e->guarded) give_where(e->args.back(), {a.conditions, a.value}, !e->args[e->args.size() - 2]);
            return;
        case ExprKind::bitcast:
            if (depends(e->args[0]))
                throw UserError("derivative.bits",
                                request_.stage + ": " + brief(e, 80) + " makes a float of bits of numbers that a derivative is asked by.",
                                "Stop the derivative before (stop_gradient), give the value one by straight_through, or make it a function "
                                "that says its derivative.");
            return;
        default: return;
        }
    }

    void spread_function(const Expr &e, const Adjoint &a) {
        for (size_t i = 0; i < e->args.size(); i++) {
            if (!depends(e->args[i])) continue;
            Expr by = derivative_of(e, i);
            if (!by.defined()) by = constant(e.type(), i == 0 ? 1 : 0);  // one that rounds
            if (!is_real(by, 0)) give_times(e->args[i], a, by);
        }
    }

    void spread_operation(const Expr &e, const Adjoint &a) {
        const Operands &x = e->args;
        const auto number = [&](double value) { return constant(e.type(), value); };
        switch (e->op) {
        case Op::neg: return give(x[0], {a.conditions, -a.value});
        case Op::abs: {
            const Expr positive = number(0) < x[0], negative = x[0] < number(0);
            return give_times(x[0], a, select(positive, number(1), select(negative, number(-1), number(0))));
        }
        case Op::sqrt: return give_times(x[0], a, number(0.5) / e);
        case Op::add: return give(x[0], a), give(x[1], a);
        case Op::sub: return give(x[0], a), give(x[1], {a.conditions, -a.value});
        case Op::mul: return give_times(x[0], a, x[1]), give_times(x[1], a, x[0]);
        case Op::div:
            give(x[0], {a.conditions, a.value / x[1]});
            if (depends(x[1])) give(x[1], {a.conditions, -product(a.value, e) / x[1]});
            return;
        case Op::min:
        case Op::max: {
            const Expr first = e->op == Op::max ? x[1] < x[0] : x[0] < x[1];
            return give_where(x[0], a, first), give_where(x[1], a, !first);
        }
        case Op::fma: return give_times(x[0], a, x[1]), give_times(x[1], a, x[0]), give(x[2], a);
        case Op::select: return give_where(x[1], a, x[0]), give_where(x[2], a, !x[0]);
        default: return;
        }
    }
};

}  // namespace

std::vector<Coefficient> coefficients(const CoefficientRequest &request) { return Accumulator(request).run(); }

}  // namespace tessera::differentiation
