#include "algorithms/prove.h"

#include <algorithm>
#include <numeric>

namespace tessera {

namespace {

constexpr int most_steps = 300;     // nodes of one proof
constexpr int most_uses = 4;        // facts subtracted along one branch
constexpr int64_t narrow = 1 << 20;  // a range worth using for a quotient beside its symbolic bound

int sign_of(const Linear &form, const Bounds &b) {
    Interval i = range_of(form, b);
    return i.lo >= 0 ? 1 : i.hi <= 0 ? -1 : 0;
}

using Facts = std::vector<Linear>;

Facts with(Facts facts, const Linear &fact) {
    facts.push_back(fact);
    return facts;
}

// x = factor * inside + outside.
struct Split {
    Expr factor;
    Linear inside, outside;
    int sign = 0;  // of inside
    Linear at(const Linear &value) const { return inside * value + outside; }
};

class Prover {
public:
    explicit Prover(const Bounds &bounds) : b(bounds) {}
    bool nonnegative(Linear x, const Facts &facts, int uses);

private:
    bool by_fact(const Linear &x, const Facts &facts, int uses);
    bool by_atom(const Split &s, const Facts &facts, int uses);
    bool by_minimum(const Split &s, const Facts &facts, int uses);
    bool by_quotient(const Split &s, const Facts &facts, int uses);
    bool by_remainder(const Split &s, const Facts &facts, int uses);
    bool by_size(const Split &s, const Facts &facts, int uses);
    bool by_variable(const Split &s, const Facts &facts, int uses);
    bool by_range(const Split &s, const Facts &facts, int uses);
    Facts under(const Expr &condition, bool holds, const Facts &facts) const;
    bool compound(const Expr &f, const Linear &) const;
    bool ranged(const Expr &f, const Linear &) const { return f.kind() == ExprKind::variable && b.find(f->name); }
    // A derived extent whose size has a quotient, or the like, that x has too: they may cancel, which estimates would not.
    bool cancelling(const Expr &f, const Linear &x) const;
    bool sized(const Expr &f, const Linear &) const { return f.kind() == ExprKind::extent && b.find_extent(f->name).size.defined(); }
    int rank(const Expr &f) const { return f.kind() == ExprKind::variable && b.find(f->name) ? b.find(f->name)->rank : 0; }
    Linear form(const Expr &e) const { return linear_form(e, b); }

    const Bounds &b;
    int steps = 0;
};

bool Prover::compound(const Expr &f, const Linear &) const {
    if (f.kind() == ExprKind::bounded) return true;
    return f.is_operation(Op::min) || f.is_operation(Op::max) || f.is_operation(Op::select) || f.is_operation(Op::div) ||
           f.is_operation(Op::mod);
}

bool Prover::cancelling(const Expr &f, const Linear &x) const {
    if (!sized(f, x)) return false;
    const Linear size = form(b.find_extent(f->name).size);
    auto alone = [&](const Linear::Term &t) { return t.factors.size() == 1 && compound(t.factors[0], x); };
    return std::any_of(size.terms.begin(), size.terms.end(), [&](const Linear::Term &t) {
        return alone(t) && std::any_of(x.terms.begin(), x.terms.end(), [&](const Linear::Term &mine) {
            return alone(mine) && equal(t.factors[0], mine.factors[0]);
        });
    });
}

bool Prover::nonnegative(Linear x, const Facts &facts, int uses) {
    if (x.is_constant() && x.constant >= 0) return true;
    if (++steps > most_steps) return false;
    if (int64_t g = coefficient_gcd(x); g > 1) {
        for (Linear::Term &t : x.terms) t.coefficient /= g;
        x.constant = floor_quotient(x.constant, g);
    }
    if (range_of(x, b).lo >= 0) return true;
    if (by_fact(x, facts, uses)) return true;
    for (auto kind : {&Prover::cancelling, &Prover::compound, &Prover::ranged, &Prover::sized}) {
        Split s;
        for (const Linear::Term &t : x.terms)
            for (const Expr &f : t.factors)
                if ((this->*kind)(f, x) && (!s.factor.defined() || rank(f) > rank(s.factor))) s.factor = f;
        if (!s.factor.defined()) continue;
        if (!split_by(x, s.factor, s.inside, s.outside)) return false;
        s.sign = sign_of(s.inside, b);
        return by_atom(s, facts, uses);
    }
    return false;
}

// x >= 0 follows from p*x - q*fact >= 0 for p, q > 0; those that cancel a term are worth a try. What leaves the fewest
// terms goes first: the fact that was made for this very question often leaves none.
bool Prover::by_fact(const Linear &x, const Facts &facts, int uses) {
    if (uses >= most_uses) return false;
    std::vector<std::pair<Linear, size_t>> left;
    for (size_t i = 0; i < facts.size(); i++) {
        if (facts[i].is_constant()) {
            if (facts[i].constant < 0) return true;
            continue;
        }
        int64_t last_p = 0, last_q = 0;
        for (const Linear::Term &t : facts[i].terms) {
            auto mine = std::find_if(x.terms.begin(), x.terms.end(), [&](const Linear::Term &m) {
                return std::equal(m.factors.begin(), m.factors.end(), t.factors.begin(), t.factors.end(), equal);
            });
            if (mine == x.terms.end() || (mine->coefficient > 0) != (t.coefficient > 0)) continue;
            int64_t g = std::gcd(mine->coefficient, t.coefficient);
            int64_t p = std::abs(t.coefficient) / g, q = std::abs(mine->coefficient) / g;
            if (p == last_p && q == last_q) continue;
            last_p = p, last_q = q;
            left.emplace_back(x * p - facts[i] * q + Linear(p - 1), i);
            if (range_of(left.back().first, b).lo >= 0) return true;
        }
    }
    std::stable_sort(left.begin(), left.end(), [](auto &m, auto &n) { return m.first.terms.size() < n.first.terms.size(); });
    for (auto &[rest, i] : left) {
        Facts others = facts;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        if (nonnegative(rest, others, uses + 1)) return true;
        if (steps > most_steps) return false;
    }
    return false;
}

bool Prover::by_atom(const Split &s, const Facts &facts, int uses) {
    const Expr &f = s.factor;
    if (f.is_operation(Op::min) || f.is_operation(Op::max)) return by_minimum(s, facts, uses);
    if (f.is_operation(Op::div)) return by_quotient(s, facts, uses);
    if (f.is_operation(Op::mod)) return by_remainder(s, facts, uses);
    if (f.kind() == ExprKind::variable) return by_variable(s, facts, uses);
    if (f.kind() == ExprKind::extent) return by_size(s, facts, uses);
    if (f.is_operation(Op::select))
        return nonnegative(s.at(form(f->args[1])), under(f->args[0], true, facts), uses) &&
               nonnegative(s.at(form(f->args[2])), under(f->args[0], false, facts), uses);
    // bounded: an empty range clamps to either end.
    Linear lo = form(f->args[1]), last = form(f->args[2]) - Linear(1);
    bool some = nonnegative(last - lo, facts, uses);
    if (some && s.sign) return nonnegative(s.at(s.sign > 0 ? lo : last), facts, uses);
    return nonnegative(s.at(lo), facts, uses) && nonnegative(s.at(last), facts, uses);
}

bool Prover::by_minimum(const Split &s, const Facts &facts, int uses) {
    Linear p = form(s.factor->args[0]), q = form(s.factor->args[1]);
    bool least = s.factor.is_operation(Op::min);
    // The factor is below (above) both operands, so one of them is enough on this side.
    if (s.sign == (least ? -1 : 1) && (nonnegative(s.at(p), facts, uses) || nonnegative(s.at(q), facts, uses))) return true;
    Linear p_is_it = least ? q - p : p - q;
    return nonnegative(s.at(p), with(facts, p_is_it), uses) && nonnegative(s.at(q), with(facts, p_is_it * -1), uses);
}

// For f = y/d with d >= 1: y - d + 1 <= d*f <= y; and x >= 0 when d*x > -d.
bool Prover::by_quotient(const Split &s, const Facts &facts, int uses) {
    Linear y = form(s.factor->args[0]), d = form(s.factor->args[1]);
    if (by_range(s, facts, uses)) return true;
    if (range_of(d, b).lo < 1 || s.sign == 0) return false;
    bool exact = d.is_constant() && multiple_of(y, b) % d.constant == 0;
    Linear scaled = s.sign < 0 || exact ? y : y - d + Linear(1);
    return nonnegative(s.inside * scaled + s.outside * d + d - Linear(1), facts, uses);
}

bool Prover::by_remainder(const Split &s, const Facts &facts, int uses) {
    Linear y = form(s.factor->args[0]), d = form(s.factor->args[1]);
    if (by_range(s, facts, uses)) return true;
    if (range_of(d, b).lo < 1) return false;
    if (s.sign > 0) return nonnegative(s.outside, facts, uses);
    if (s.sign < 0 && nonnegative(y, facts, uses) && nonnegative(s.at(y), facts, uses)) return true;
    return nonnegative(s.at(d - Linear(1)), facts, uses) && (s.sign < 0 || nonnegative(s.outside, facts, uses));
}

// The constant range of an atom, where it is narrow enough to be meant.
bool Prover::by_range(const Split &s, const Facts &facts, int uses) {
    Interval i = range_of_atom(s.factor, b);
    if (i.lo < -narrow || i.hi > narrow) return false;
    if (s.sign) return nonnegative(s.at(s.sign > 0 ? i.lo : i.hi), facts, uses);
    return nonnegative(s.at(i.lo), facts, uses) && nonnegative(s.at(i.hi), facts, uses);
}

// The extent of a derived dim is max(size, 0), so it is one of them.
bool Prover::by_size(const Split &s, const Facts &facts, int uses) {
    Linear size = form(b.find_extent(s.factor->name).size);
    auto in_case = [&](const Linear &value, const Linear &fact) {
        Facts changed{fact};
        for (const Linear &other : facts) {
            Split t{s.factor, {}, {}, 0};
            changed.push_back(split_by(other, s.factor, t.inside, t.outside) ? t.at(value) : other);
            if (changed.back().is_constant() && changed.back().constant < 0) return true;
        }
        return nonnegative(s.at(value), changed, uses);
    };
    return in_case(size, size) && (range_of(size, b).lo >= 0 || in_case(Linear(), size * -1));
}

// The facts and what a comparison says where it holds, or where it does not.
Facts Prover::under(const Expr &c, bool holds, const Facts &facts) const {
    bool strict = c.is_operation(Op::lt);
    if ((!strict && !c.is_operation(Op::le)) || c->args[0].type() != DType::index) return facts;
    Linear d = form(c->args[1]) - form(c->args[0]);
    return with(facts, holds ? d - Linear(strict) : d * -1 - Linear(!strict));
}

// The sum is linear in the variable, so it is least at an end of the range. Innermost variables go first: the ends of
// their ranges may use the others. That the variable has a value says that its range is not empty.
bool Prover::by_variable(const Split &s, const Facts &facts, int uses) {
    const Bounds::Range *range = b.find(s.factor->name);
    bool lo = range->lo.defined(), hi = range->hi.defined();
    Facts known = lo && hi ? with(facts, range->hi_form - range->lo_form) : facts;
    if (s.sign > 0) return lo && nonnegative(s.at(range->lo_form), known, uses);
    if (s.sign < 0) return hi && nonnegative(s.at(range->hi_form), known, uses);
    return lo && hi && nonnegative(s.at(range->lo_form), known, uses) && nonnegative(s.at(range->hi_form), known, uses);
}

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
    Linear tighter(const Split &s, int direction);
    Linear form(const Expr &e) const { return linear_form(e, b); }

    const Bounds &b;
    const std::set<std::string> &gone;
    int steps = 0;
};

Linear Eliminator::bound(Linear x, int direction) {
    while (++steps <= most_steps) {
        Split s;
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
Linear Eliminator::tighter(const Split &s, int direction) {
    std::optional<Expr> found;
    for (const Expr &operand : s.factor->args) {
        try {
            Expr one = to_expr(bound(s.at(form(operand)), direction));
            found = !found ? one : direction > 0 ? min(*found, one) : max(*found, one);
        } catch (Unknown) {
        }
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
    } catch (LinearOverflow) {
        return {};
    }
}

}  // namespace

Expr lower_bound(const Expr &e, const Bounds &b, const std::set<std::string> &variables) {
    return one_side(e, b, variables, -1);
}

Expr upper_bound(const Expr &e, const Bounds &b, const std::set<std::string> &variables) {
    return one_side(e, b, variables, 1);
}

std::optional<std::pair<int64_t, int64_t>> constant_range(const Expr &e, const Bounds &b) {
    try {
        Interval i = range_of(linear_form(e, b), b);
        if (i.finite()) return std::pair(i.lo, i.hi);
    } catch (LinearOverflow) {
    }
    return std::nullopt;
}

bool prove_nonnegative(const Linear &form, const Bounds &b) {
    try {
        return Prover(b).nonnegative(form, b.facts(), 0);
    } catch (LinearOverflow) {
        return false;
    }
}

bool prove(const Expr &condition, const Bounds &b) {
    Expr c = simplify(condition, b);
    if (c.is_constant()) return c->value.truth();
    if (c.is_operation(Op::bit_and)) return prove(c->args[0], b) && prove(c->args[1], b);
    if (c.is_operation(Op::bit_or)) {
        Bounds otherwise = b;
        otherwise.assume(!c->args[0]);
        return prove(c->args[1], otherwise);
    }
    if (c.is_operation(Op::select)) {
        Bounds holds = b, fails = b;
        holds.assume(c->args[0]);
        fails.assume(!c->args[0]);
        return prove(c->args[1], holds) && prove(c->args[2], fails);
    }
    return false;
}

}  // namespace tessera
