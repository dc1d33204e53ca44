// Expressions without some variables that bound another one. See prove.h.
#include <optional>

#include "algorithms/index/prove.h"

namespace tessera {

namespace {

constexpr int max_bound_steps = 300;  // variables and atoms replaced for one bound

struct Unknown {};

// e without `variables`, on the side `direction` of it (-1 below, +1 above).
class Eliminator {
public:
    Eliminator(const Bounds &bounds, const std::set<std::string> &variables) : b(bounds), gone(variables) {}
    Linear bound(Linear x, int direction);

private:
    bool varies(const Expr &e) const {
        for (const std::string &name : variables_in(e))
            if (gone.count(name)) return true;
        return false;
    }
    Linear bound_atom(const Expr &f, int direction);
    Linear tighter(const Factored &s, int direction);
    Linear form(const Expr &e) const { return linear_form(e, b); }

    const Bounds &b;
    const std::set<std::string> &gone;
    int steps = 0;
};

Linear Eliminator::bound(Linear x, int direction) {
    while (++steps <= max_bound_steps) {
        Factored s;
        const Bounds::Range *range = nullptr;
        for (const Linear::Term &t : x.terms)
            for (const Expr &f : t.factors) {
                bool is_variable = f.kind() == ExprKind::variable;
                if (!varies(f) || (s.factor.defined() && s.factor.kind() != ExprKind::variable)) continue;
                const Bounds::Range *r = is_variable ? b.find(f->name) : nullptr;
                if (is_variable && !r) throw Unknown{};
                if (!is_variable || !s.factor.defined() || r->rank > range->rank) s.factor = f, range = r;
            }
        if (!s.factor.defined()) return x;
        if (!split_by(x, s.factor, s.inside, s.outside)) throw Unknown{};
        s.sign = sign_of(s.inside, b);
        if (!range) {
            if (s.sign == 0) throw Unknown{};
            // A minimum is below both operands, each of which may cancel what the rest of the sum has.
            if (s.factor.is_operation(direction * s.sign > 0 ? Op::min : Op::max)) return tighter(s, direction);
            x = s.at(bound_atom(s.factor, direction * s.sign));
        } else if (s.sign) {
            bool low = s.sign * direction < 0;
            if (!(low ? range->lo : range->hi).defined()) throw Unknown{};
            x = s.at(low ? range->lo_form : range->hi_form);
        } else {
            if (!range->lo.defined() || !range->hi.defined()) throw Unknown{};
            Expr p = to_expr(bound(s.at(range->lo_form), direction)), q = to_expr(bound(s.at(range->hi_form), direction));
            return form(direction > 0 ? max(p, q) : min(p, q));
        }
    }
    throw Unknown{};
}

// The better of the bounds that the two operands of a minimum or maximum give.
Linear Eliminator::tighter(const Factored &s, int direction) {
    std::optional<Expr> found;
    for (const Expr &operand : s.factor->args) {
        try {
            Expr one = to_expr(bound(s.at(form(operand)), direction));
            found = !found ? one : direction > 0 ? min(*found, one) : max(*found, one);
        } catch (Unknown) {}
    }
    if (!found) throw Unknown{};
    return form(*found);
}

Linear Eliminator::bound_atom(const Expr &f, int direction) {
    auto side = [&](size_t i) { return to_expr(bound(form(f->args[i]), direction)); };
    Interval range = range_of_atom(f, b);
    if (f.is_operation(Op::min) || f.is_operation(Op::max)) return form(operation(f->op, {side(0), side(1)}));
    if (f.is_operation(Op::select)) {
        if (!varies(f->args[0])) return form(select(f->args[0], side(1), side(2)));
        return form(direction > 0 ? max(side(1), side(2)) : min(side(1), side(2)));
    }
    bool by_constant_sign = f.is_operation(Op::div) || f.is_operation(Op::mod);
    if (by_constant_sign && !varies(f->args[1]) && range_of(form(f->args[1]), b).lo >= 1) {
        if (f.is_operation(Op::div)) return form(side(0) / f->args[1]);
        if (direction > 0 && !range.finite()) return form(f->args[1]) - Linear(1);
    }
    if (f.kind() == ExprKind::bounded && range_of(form(f->args[2]) - form(f->args[1]), b).lo >= 1)
        return direction > 0 ? bound(form(f->args[2]), direction) - Linear(1) : bound(form(f->args[1]), direction);
    if (const Ascending *tensor = b.ascending(f)) return direction > 0 ? form(tensor->most) : Linear(0);
    int64_t end = direction > 0 ? range.hi : range.lo;
    if (end >= Interval::unbounded || end <= -Interval::unbounded) throw Unknown{};
    return Linear(end);
}

Expr one_side(const Expr &e, const Bounds &b, const std::set<std::string> &variables, int direction) {
    try {
        Linear form = linear_form(e, b);
        try {
            return to_expr(Eliminator(b, variables).bound(form, direction));
        } catch (Unknown) {
            Interval i = range_of(form, b);
            int64_t end = direction > 0 ? i.hi : i.lo;
            bool known = end < Interval::unbounded && end > -Interval::unbounded;
            return known ? Expr(end) : Expr();
        }
    } catch (LinearOverflow) { return {}; }
}

}  // namespace

Expr lower_bound(const Expr &e, const Bounds &b, const std::set<std::string> &variables) { return one_side(e, b, variables, -1); }

Expr upper_bound(const Expr &e, const Bounds &b, const std::set<std::string> &variables) { return one_side(e, b, variables, 1); }

}  // namespace tessera
