#include "algorithms/index/prove.h"
#include "algorithms/index/work.h"

#include <algorithm>
#include <deque>

namespace tessera {

namespace {

constexpr int max_proof_steps = 300;   // nodes of one proof
constexpr int max_nested_steps = 100;  // of a proof that simplifies what another one makes
constexpr int max_all_steps = 1500;    // of a proof and of all that are nested in it
constexpr int max_uses = 4;            // facts subtracted along one branch
constexpr int64_t narrow = 1 << 20;    // a range worth using for a quotient beside its symbolic bound

// Each is >= 0. They are handed on by every step, so they are not copied: those of the Bounds stay there, the others in the Prover.
using Facts = std::vector<const Linear *>;

bool same_divisor(const Expr &a, const Expr &b) {
    return a.is_operation(Op::div) && b.is_operation(Op::div) && equal(a->args[1], b->args[1]);
}

bool contains(const Expr &whole, const Expr &part) {
    bool found = false;
    walk(whole, [&](const Expr &n) { found |= equal(n, part); });
    return found;
}

class Prover {
public:
    // How quotients are estimated. All ways in one proof would take too many steps.
    enum class Quotients {
        alone,         // each by what it divides, those of one divisor together
        over_divisor,  // also those of two divisors, of which one divides the other, together
        in_steps,      // by in_steps_of
    };
    explicit Prover(const Bounds &bounds, Quotients quotients)
        : b(bounds), quotients(quotients), max_steps(b.proof().depth++ ? max_nested_steps : max_proof_steps) {
        if (b.proof().depth == 1) b.proof().steps = 0;
    }
    ~Prover() { b.proof().depth--; }
    Prover(const Prover &) = delete;
    Prover &operator=(const Prover &) = delete;
    bool nonnegative(const Linear &x) {
        Facts facts;
        for (const Linear &fact : b.facts()) facts.push_back(&fact);
        return nonnegative(x, facts, 0);
    }
    // Whether another way may say more.
    bool could_divide = false, could_step = false;

private:
    bool nonnegative(Linear x, const Facts &facts, int uses);
    bool by_fact(const Linear &x, const Facts &facts, int uses);
    bool by_atom(const Factored &s, const Facts &facts, int uses);
    bool by_minimum(const Factored &s, const Facts &facts, int uses);
    bool by_quotient(const Factored &s, const Facts &facts, int uses);
    std::optional<std::pair<Linear, int64_t>> in_steps_of(const Factored &s);
    struct OneDivisor;
    std::optional<OneDivisor> over_one_divisor(const Expr &f, const Expr &g);
    bool by_two_quotients(const Factored &s, const Facts &facts, int uses);
    bool by_whole_quotient(const Factored &s, const Facts &facts, int uses);
    bool by_remainder(const Factored &s, const Facts &facts, int uses);
    bool by_size(const Factored &s, const Facts &facts, int uses);
    bool by_variable(const Factored &s, const Facts &facts, int uses);
    bool by_range(const Factored &s, const Facts &facts, int uses);
    bool by_ascending(const Linear &x, const Facts &facts, int uses);
    Facts with(Facts facts, Linear fact) {
        made.push_back(std::move(fact));
        facts.push_back(&made.back());
        return facts;
    }
    Facts under(const Expr &condition, bool holds, const Facts &facts);
    Facts not_empty(const Bounds::Range &range, const Facts &facts);
    Facts without(const Linear &dropped, const Linear &kept, const Facts &facts);
    // What becomes one of several forms, without loss, and what is estimated.
    bool chosen(const Expr &f, const Linear &) const;
    bool estimated(const Expr &f, const Linear &) const { return f.is_operation(Op::div) || f.is_operation(Op::mod); }
    bool ranged(const Expr &f, const Linear &) const { return f.kind() == ExprKind::variable && b.find(f->name); }
    // A derived extent whose size, or a variable whose range, has a quotient or the like that x has too: they may cancel, which
    // estimates would not.
    bool cancelling(const Expr &f, const Linear &x) const;
    bool compounds_meet(const Linear &x, const Linear &y) const;
    bool sized(const Expr &f, const Linear &) const { return f.kind() == ExprKind::extent && b.find_extent(f->name).size.defined(); }
    // What contains another one may cancel with it, once it is replaced.
    bool comes_before(const Expr &f, const Expr &g) const { return rank(f) > rank(g) || (f->height > g->height && contains(f, g)); }
    int rank(const Expr &f) const { return f.kind() == ExprKind::variable && b.find(f->name) ? b.find(f->name)->rank : 0; }
    const Linear &form(const Expr &e) const { return linear_form(e, b); }

    const Bounds &b;
    const Quotients quotients;
    std::deque<Linear> made;
    const int max_steps;
    int steps = 0;
};

bool Prover::chosen(const Expr &f, const Linear &) const {
    return f.kind() == ExprKind::bounded || f.is_operation(Op::min) || f.is_operation(Op::max) || f.is_operation(Op::select);
}

bool Prover::compounds_meet(const Linear &x, const Linear &y) const {
    auto alone = [&](const Linear::Term &t) { return t.factors.size() == 1 && (chosen(t.factors[0], x) || estimated(t.factors[0], x)); };
    auto meet = [](const Expr &f, const Expr &g) { return equal(f, g) || same_divisor(f, g); };
    return std::any_of(y.terms.begin(), y.terms.end(), [&](const Linear::Term &t) {
        return alone(t) && std::any_of(x.terms.begin(), x.terms.end(),
                                       [&](const Linear::Term &mine) { return alone(mine) && meet(t.factors[0], mine.factors[0]); });
    });
}

bool Prover::cancelling(const Expr &f, const Linear &x) const {
    if (sized(f, x)) return compounds_meet(x, form(b.find_extent(f->name).size));
    const Bounds::Range *range = ranged(f, x) ? b.find(f->name) : nullptr;
    if (!range) return false;
    const bool low = range->lo.defined() && compounds_meet(x, range->lo_form);
    const bool high = range->hi.defined() && compounds_meet(x, range->hi_form);
    Linear inside, outside;
    if ((!low && !high) || !split_by(x, f, inside, outside)) return false;
    const int sign = sign_of(inside, b);  // which end it is replaced by
    return (sign >= 0 && low) || (sign <= 0 && high);
}

bool Prover::nonnegative(Linear x, const Facts &facts, int uses) {
    if (x.is_constant() && x.constant >= 0) return true;
    index_work++;
    if (++steps > max_steps || ++b.proof().steps > max_all_steps || !b.spend_step()) return false;
    if (int64_t g = coefficient_gcd(x); g > 1) {
        for (Linear::Term &t : x.terms) t.coefficient /= g;
        x.constant = floor_quotient(x.constant, g);
    }
    if (range_of(x, b).lo >= 0) return true;
    if (by_fact(x, facts, uses)) return true;
    for (auto kind : {&Prover::cancelling, &Prover::chosen, &Prover::estimated, &Prover::ranged, &Prover::sized}) {
        Factored s;
        for (const Linear::Term &t : x.terms)
            for (const Expr &f : t.factors)
                if ((this->*kind)(f, x) && (!s.factor.defined() || comes_before(f, s.factor))) s.factor = f;
        if (!s.factor.defined()) continue;
        if (!split_by(x, s.factor, s.inside, s.outside)) return false;
        s.sign = sign_of(s.inside, b);
        if (by_atom(s, facts, uses)) return true;
        if (kind != &Prover::cancelling) return false;  // what only might cancel is no loss
    }
    return by_ascending(x, facts, uses);
}

// Elements of a tensor that ascends: a later one less an earlier one is 0 or more, and each has its ends.
bool Prover::by_ascending(const Linear &x, const Facts &facts, int uses) {
    auto read = [&](const Linear::Term &t) { return t.factors.size() == 1 ? b.ascending(t.factors[0]) : nullptr; };
    auto element = [](const Linear::Term &t, int64_t times) { return Linear::atom(t.factors[0]) * times; };
    const Linear::Term *some = nullptr;
    for (const Linear::Term &later : x.terms) {
        const Ascending *tensor = read(later);
        if (!tensor) continue;
        some = &later;
        for (const Linear::Term &earlier : x.terms) {
            if (later.coefficient < 0 || earlier.coefficient > 0 || read(earlier) != tensor) continue;
            const auto index = [](const Linear::Term &t) { return t.factors[0]->args[0]->args[0]; };
            if (!nonnegative(form(index(later)) - form(index(earlier)), facts, uses)) continue;
            const int64_t times = std::min(later.coefficient, -earlier.coefficient);
            if (nonnegative(x - element(later, times) + element(earlier, times), facts, uses)) return true;
        }
    }
    if (!some) return false;
    const Linear end = some->coefficient > 0 ? Linear(0) : form(read(*some)->most) * some->coefficient;
    return nonnegative(x - element(*some, some->coefficient) + end, facts, uses);
}

// x >= 0 follows from p*x - q*fact >= 0 for p, q > 0; those that cancel a term are worth a try. What leaves the fewest
// terms goes first: the fact that was made for this very question often leaves none.
bool Prover::by_fact(const Linear &x, const Facts &facts, int uses) {
    if (uses >= max_uses) return false;
    std::vector<std::pair<Linear, size_t>> left;
    for (size_t i = 0; i < facts.size(); i++) {
        const Linear &fact = *facts[i];
        if (fact.is_constant()) {
            if (fact.constant < 0) return true;
            continue;
        }
        int64_t last_p = 0, last_q = 0;
        for (const Linear::Term &t : fact.terms) {
            auto mine = std::find_if(x.terms.begin(), x.terms.end(), [&](const Linear::Term &m) {
                return std::equal(m.factors.begin(), m.factors.end(), t.factors.begin(), t.factors.end(), equal);
            });
            if (mine == x.terms.end() || (mine->coefficient > 0) != (t.coefficient > 0)) continue;
            int64_t g = std::gcd(mine->coefficient, t.coefficient);
            int64_t p = std::abs(t.coefficient) / g, q = std::abs(mine->coefficient) / g;
            if (p == last_p && q == last_q) continue;
            last_p = p, last_q = q;
            Linear rest = combine(p == 1 ? x : x * p, fact, -q);
            if (p > 1) rest = rest + Linear(p - 1);
            if (range_of(rest, b).lo >= 0) return true;
            left.emplace_back(std::move(rest), i);
        }
    }
    std::stable_sort(left.begin(), left.end(), [](auto &m, auto &n) { return m.first.terms.size() < n.first.terms.size(); });
    for (auto &[rest, i] : left) {
        Facts others = facts;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        if (nonnegative(rest, others, uses + 1)) return true;
        if (steps > max_proof_steps) return false;
    }
    return false;
}

bool Prover::by_atom(const Factored &s, const Facts &facts, int uses) {
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

bool Prover::by_minimum(const Factored &s, const Facts &facts, int uses) {
    Linear p = form(s.factor->args[0]), q = form(s.factor->args[1]);
    bool least = s.factor.is_operation(Op::min);
    // The factor is below (above) both operands, so one of them is enough on this side.
    if (s.sign == (least ? -1 : 1) && (nonnegative(s.at(p), facts, uses) || nonnegative(s.at(q), facts, uses))) return true;
    Linear p_is_it = least ? q - p : p - q;
    return nonnegative(s.at(p), with(without(q, p, facts), p_is_it), uses) &&
           nonnegative(s.at(q), with(without(p, q, facts), p_is_it * -1), uses);
}

// A range that is not empty; and what is so of a quotient y/d says something of y.
Facts Prover::not_empty(const Bounds::Range &range, const Facts &facts) {
    Facts known = with(facts, range.hi_form - range.lo_form);
    const Linear &fact = *known.back();
    for (const Linear::Term &t : fact.terms) {
        if (t.factors.size() != 1 || !t.factors[0].is_operation(Op::div)) continue;
        const Linear y = form(t.factors[0]->args[0]), d = form(t.factors[0]->args[1]);
        Linear inside, outside;
        if (!d.is_constant() || d.constant < 1 || !split_by(fact, t.factors[0], inside, outside) || !inside.is_constant()) continue;
        return with(known, inside * (t.coefficient > 0 ? y : y - d + Linear(1)) + outside * d);
    }
    return known;
}

// The facts and what the variables say that are in `dropped` only.
Facts Prover::without(const Linear &dropped, const Linear &kept, const Facts &facts) {
    Facts known = facts;
    for (const Linear::Term &t : dropped.terms)
        for (const Expr &f : t.factors) {
            const Bounds::Range *range = ranged(f, dropped) ? b.find(f->name) : nullptr;
            if (!range || !range->lo.defined() || !range->hi.defined() || range_of(range->hi_form - range->lo_form, b).lo >= 0) continue;
            if (Linear inside, outside; split_by(kept, f, inside, outside) && !inside.terms.empty()) continue;
            known = not_empty(*range, known);
        }
    return known;
}

// What is outside, or less, so that all of it is a multiple of the quotient's factor, which comes with it: where most terms are, and
// what the others sum up to is known closely. Nothing where it is as it was.
std::optional<std::pair<Linear, int64_t>> Prover::in_steps_of(const Factored &s) {
    const int64_t step = s.inside.is_constant() ? std::abs(s.inside.constant) : 1;
    if (step <= 1 || step >= narrow) return {};
    Linear whole, others(s.outside.constant);
    for (const Linear::Term &t : s.outside.terms) {
        Linear term;
        term.terms.push_back(t);
        Linear &part = multiple_of(term, b) % step == 0 ? whole : others;
        part = part + term;
    }
    const Interval rest = range_of(others, b);
    if (whole.is_constant() || rest.lo <= -narrow || rest.hi >= narrow) return {};
    return std::pair(whole + Linear(floor_quotient(rest.lo, step) * step), step);
}

// For f = y/d with d >= 1: y - d + 1 <= d*f <= y; and x >= 0 when d*x > -d*g, where x is a multiple of g.
bool Prover::by_quotient(const Factored &s, const Facts &facts, int uses) {
    Linear y = form(s.factor->args[0]), d = form(s.factor->args[1]);
    if (by_range(s, facts, uses)) return true;
    if (range_of(d, b).lo < 1 || s.sign == 0) return false;
    if (by_two_quotients(s, facts, uses) || by_whole_quotient(s, facts, uses)) return true;
    bool exact = d.is_constant() && multiple_of(y, b) % d.constant == 0;
    Linear scaled = s.sign < 0 || exact ? y : y - d + Linear(1);
    const auto whole = quotients == Quotients::in_steps ? in_steps_of(s) : std::nullopt;
    if (whole) return nonnegative(s.inside * scaled + whole->first * d + (d - Linear(1)) * whole->second, facts, uses);
    if (nonnegative(s.inside * scaled + s.outside * d + d - Linear(1), facts, uses)) return true;
    could_step = could_step || in_steps_of(s);
    return false;
}

// The dividends of two quotients over one divisor, where they have one or the divisor of one divides that of the other: y/(k*d) is (y/k)/d.
struct Prover::OneDivisor {
    Linear first, second, divisor;
};
std::optional<Prover::OneDivisor> Prover::over_one_divisor(const Expr &f, const Expr &g) {
    if (same_divisor(f, g)) return OneDivisor{form(f->args[0]), form(g->args[0]), form(f->args[1])};
    const auto divisor = [](const Expr &e) {
        return e.is_operation(Op::div) && e->args[1].is_constant() ? e->args[1]->value.integer : int64_t{0};
    };
    const int64_t c = divisor(f), d = divisor(g);
    if (c < 1 || d < 1 || (c % d && d % c)) return {};
    could_divide = true;
    if (quotients != Quotients::over_divisor) return {};
    const auto dividend = [&](const Expr &e, int64_t times) { return times == 1 ? form(e->args[0]) : form(e->args[0] / Expr(times)); };
    return OneDivisor{dividend(f, std::max<int64_t>(1, c / d)), dividend(g, std::max<int64_t>(1, d / c)), Linear(std::min(c, d))};
}

// y/d >= z/d + c where y >= z + c*d: estimates of both would lose what they have in common.
bool Prover::by_two_quotients(const Factored &s, const Facts &facts, int uses) {
    if (!s.inside.is_constant()) return false;
    for (const Linear::Term &t : s.outside.terms) {
        const bool opposite = (t.coefficient > 0) != (s.inside.constant > 0);
        if (!opposite || t.factors.size() != 1) continue;
        const Expr &more = t.coefficient > 0 ? t.factors[0] : s.factor, &less = t.coefficient > 0 ? s.factor : t.factors[0];
        const std::optional<OneDivisor> both = over_one_divisor(more, less);
        if (!both) continue;
        const int64_t k = std::min(std::abs(t.coefficient), std::abs(s.inside.constant));
        const Linear rest = s.at(Linear::atom(s.factor)) - (Linear::atom(more) - Linear::atom(less)) * k;
        const Linear slack = both->divisor * (rest.is_constant() ? floor_quotient(rest.constant, k) : 0);
        if (!nonnegative(both->first - both->second + slack, facts, uses)) continue;
        if (rest.is_constant() || nonnegative(rest, facts, uses)) return true;
    }
    return false;
}

// k*(y/d) + r where r is at least a constant: the quotient it takes is a whole number, of which y is a whole multiple.
bool Prover::by_whole_quotient(const Factored &s, const Facts &facts, int uses) {
    const int64_t least = range_of(s.outside, b).lo;
    if (!s.inside.is_constant() || s.outside.is_constant() || least <= -narrow || least >= narrow) return false;
    const Linear y = form(s.factor->args[0]), d = form(s.factor->args[1]), end = d * floor_quotient(least, std::abs(s.inside.constant));
    return nonnegative(s.inside.constant > 0 ? y + end : end + d - Linear(1) - y, facts, uses);
}

bool Prover::by_remainder(const Factored &s, const Facts &facts, int uses) {
    Linear y = form(s.factor->args[0]), d = form(s.factor->args[1]);
    if (by_range(s, facts, uses)) return true;
    if (range_of(d, b).lo < 1) return false;
    if (s.sign > 0) return nonnegative(s.outside, facts, uses);
    if (s.sign < 0 && nonnegative(y, facts, uses) && nonnegative(s.at(y), facts, uses)) return true;
    return nonnegative(s.at(d - Linear(1)), facts, uses) && (s.sign < 0 || nonnegative(s.outside, facts, uses));
}

// The constant range of an atom, where it is narrow enough to be meant.
bool Prover::by_range(const Factored &s, const Facts &facts, int uses) {
    Interval i = range_of_atom(s.factor, b);
    if (i.lo < -narrow || i.hi > narrow) return false;
    if (s.sign) return nonnegative(s.at(s.sign > 0 ? i.lo : i.hi), facts, uses);
    return nonnegative(s.at(i.lo), facts, uses) && nonnegative(s.at(i.hi), facts, uses);
}

// The extent of a derived dim is max(size, 0), so it is one of them.
bool Prover::by_size(const Factored &s, const Facts &facts, int uses) {
    Linear size = form(b.find_extent(s.factor->name).size);
    auto in_case = [&](const Linear &value, const Linear &fact) {
        Facts changed = with({}, fact);
        for (const Linear *other : facts) {
            Factored t{s.factor, {}, {}, 0};
            const bool concerned = split_by(*other, s.factor, t.inside, t.outside) && !same(t.inside, Linear());
            if (concerned) changed = with(std::move(changed), t.at(value));
            else changed.push_back(other);
            if (changed.back()->is_constant() && changed.back()->constant < 0) return true;
        }
        return nonnegative(s.at(value), changed, uses);
    };
    return in_case(size, size) && (range_of(size, b).lo >= 0 || in_case(Linear(), size * -1));
}

// The facts and what a comparison says where it holds, or where it does not.
Facts Prover::under(const Expr &c, bool holds, const Facts &facts) {
    bool strict = c.is_operation(Op::lt);
    if ((!strict && !c.is_operation(Op::le)) || c->args[0].type() != DType::index) return facts;
    Linear d = form(c->args[1]) - form(c->args[0]);
    return with(facts, holds ? d - Linear(strict) : d * -1 - Linear(!strict));
}

// The sum is linear in the variable, so it is least at an end of the range. Innermost variables go first: the ends of
// their ranges may use the others. That the variable has a value says that its range is not empty.
bool Prover::by_variable(const Factored &s, const Facts &facts, int uses) {
    const Bounds::Range *range = b.find(s.factor->name);
    bool lo = range->lo.defined(), hi = range->hi.defined();
    Facts known = lo && hi ? with(facts, range->hi_form - range->lo_form) : facts;
    if (s.sign > 0) return lo && nonnegative(s.at(range->lo_form), known, uses);
    if (s.sign < 0) return hi && nonnegative(s.at(range->hi_form), known, uses);
    return lo && hi && nonnegative(s.at(range->lo_form), known, uses) && nonnegative(s.at(range->hi_form), known, uses);
}

}  // namespace

std::optional<std::pair<int64_t, int64_t>> constant_range(const Expr &e, const Bounds &b) {
    try {
        Interval i = range_of(linear_form(e, b), b);
        if (i.finite()) return std::pair(i.lo, i.hi);
    } catch (LinearOverflow) {}
    return std::nullopt;
}

bool reads_element(const Expr &load, const std::vector<Expr> &index) {
    if (load->args.size() < index.size()) return false;
    for (size_t i = 0; i < index.size(); i++)
        if (!equal(simplify(load->args[i], {}), simplify(index[i], {}))) return false;
    return true;
}

bool prove_nonnegative(const Linear &form, const Bounds &b) {
    try {
        bool could_divide, could_step;
        {
            Prover prover(b, Prover::Quotients::alone);
            if (prover.nonnegative(form)) return true;
            could_divide = prover.could_divide, could_step = prover.could_step;
        }
        if (could_divide && Prover(b, Prover::Quotients::over_divisor).nonnegative(form)) return true;
        return could_step && Prover(b, Prover::Quotients::in_steps).nonnegative(form);
    } catch (LinearOverflow) { return false; }
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
