// Index arithmetic in canonical form. See prove.h.
#include <numeric>
#include <optional>

#include "algorithms/expr/function.h"
#include "algorithms/index/prove.h"
#include "algorithms/index/work.h"
#include "support/text/error.h"

namespace tessera {

constinit thread_local int64_t index_work = 0;

namespace {

constexpr int deepest = 400;

struct Deeper {
    explicit Deeper(int &depth) : depth_(depth) {
        if (++depth_ > deepest) {
            depth_--;
            throw LinearOverflow{};
        }
    }
    ~Deeper() { depth_--; }
    Deeper(const Deeper &) = delete;
    Deeper &operator=(const Deeper &) = delete;

private:
    int &depth_;
};

struct Parts {
    Linear quotient, remainder;
};

class Simplifier {
public:
    explicit Simplifier(const Bounds &bounds) : b(bounds) {}
    const Linear &form(const Expr &e);
    Expr any(const Expr &e);

private:
    Linear make_form(const Expr &e);
    Linear quotient_or_remainder(const Expr &e);
    int64_t unit_of(const Linear::Term &t) const;
    static Linear in_units(const Linear::Term &t, int64_t unit, int64_t c);
    Parts divide(Linear x, int64_t c);
    std::optional<Parts> divide_in_digits(const Linear &x, int64_t c);
    bool divide_by_symbol(const Linear &x, const Expr &d, Parts &parts);
    Linear min_or_max(const Expr &e);
    Linear recombined(Linear x);
    Expr make_any(const Expr &e);
    Expr condition(const Expr &e);
    Expr comparison(Op op, const Linear &a, const Linear &b);

    const Bounds &b;
};

Linear leaf(const Expr &e) { return e.is_constant() ? Linear(e->value.integer) : Linear::atom(e); }

Linear atom_quotient(const Linear &x, int64_t c) { return Linear::atom(to_expr(x) / Expr(c)); }

// A remainder that a fact gives is that number.
Linear atom_remainder(const Linear &x, int64_t c, const Bounds &b) {
    Expr remainder = to_expr(x) % Expr(c);
    Interval known = b.known(remainder);
    return known.lo == known.hi ? Linear(known.lo) : Linear::atom(remainder);
}

bool is_quotient(const Expr &e, Op op) { return e.is_operation(op) && e->args[1].is_constant() && e->args[1]->value.integer > 0; }

const Linear &Simplifier::form(const Expr &e) {
    Bounds::Answers &answers = b.answers(e->variables);
    if (const Linear **known = answers.forms.find(e.get())) return **known;
    Deeper deeper(b.depth());
    index_work += !e.is_constant();  // one node may stand for many, in a thread that made it before (constant_int)
    Linear made = make_form(e);
    return *(*answers.forms.add(e.get()).first = &answers.kept_forms.emplace_front(e, std::move(made)).second);
}

Linear Simplifier::make_form(const Expr &e) {
    auto arg = [&](size_t i) -> const Linear & { return form(e->args[i]); };
    switch (e.kind()) {
    case ExprKind::constant: return Linear(e->value.integer);
    case ExprKind::variable:
        if (const Bounds::Range *r = b.find(e->name); r && r->lo.defined() && r->hi.defined() && same(r->lo_form, r->hi_form))
            return r->lo_form;
        return Linear::atom(e);
    case ExprKind::extent: {
        std::string name = b.representative(e->name);
        const Bounds::Extent &x = b.find_extent(name);
        if (x.fixed) return Linear(x.min);
        return Linear::atom(name == e->name ? e : extent(name));
    }
    case ExprKind::operation: break;
    case ExprKind::parameter:
    case ExprKind::load:
    case ExprKind::bounded:
    case ExprKind::bitcast:
    case ExprKind::cast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: return leaf(make_any(e));
    }
    switch (e->op) {
    case Op::add: return recombined(arg(0) + arg(1));
    case Op::sub: return recombined(arg(0) - arg(1));
    case Op::mul: return recombined(arg(0) * arg(1));
    case Op::fma: return recombined(arg(0) * arg(1) + arg(2));
    case Op::neg: return recombined(arg(0) * -1);
    case Op::div:
    case Op::mod: return quotient_or_remainder(e);
    case Op::min:
    case Op::max: return min_or_max(e);
    case Op::select: {
        Expr c = any(e->args[0]);
        if (c.is_constant()) return arg(c->value.truth() ? 1 : 2);
        const Linear &x = arg(1), &y = arg(2);
        return same(x, y) ? x : Linear::atom(select(c, to_expr(x), to_expr(y)));
    }
    case Op::abs: {
        const Linear &x = arg(0);
        Interval i = range_of(x, b);
        if (i.lo >= 0) return x;
        if (i.hi <= 0) return x * -1;
        return Linear::atom(abs(to_expr(x)));
    }
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::logical_not:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: break;
    }
    return leaf(make_any(e));
}

// k*c*(x/c) + k*(x%c) = k*x, and k*c*(x/c) = k*x where c divides x.
Linear Simplifier::recombined(Linear x) {
    for (size_t i = 0; i < x.terms.size(); i++) {
        const Linear::Term term = x.terms[i];
        for (const Expr &f : term.factors) {
            if (!is_quotient(f, Op::div)) continue;
            int64_t c = f->args[1]->value.integer;
            if (term.coefficient % c) continue;
            Linear one;
            one.terms.push_back({term.factors, term.coefficient / c});
            const Linear &y = form(f->args[0]);
            Linear inside, outside;
            split_by(one, f, inside, outside);
            if (multiple_of(y, b) % c == 0) return recombined(x - one * c + inside * y);
            Linear rest = inside * Linear::atom(f->args[0] % f->args[1]);
            Linear without = x - one * c - rest;
            if (without.terms.size() + 2 == x.terms.size()) return recombined(without + inside * y);
        }
    }
    return x;
}

// The constant that the term's only atom, an extent, is declared to be a multiple of. All quotients of such an extent are counted in it:
// with N % 32 == 0, N/8 is N/32*4, so that what follows from N/32 alone is seen of both.
int64_t Simplifier::unit_of(const Linear::Term &t) const {
    return t.factors.size() == 1 && t.factors[0].kind() == ExprKind::extent ? b.find_extent(t.factors[0]->name).multiple_of : 1;
}

// t/c, where `unit` is that of t and c divides their product.
Linear Simplifier::in_units(const Linear::Term &t, int64_t unit, int64_t c) {
    Linear one;
    one.terms.push_back(t);
    if (t.coefficient % c == 0) return one.terms[0].coefficient /= c, one;
    one.terms[0].coefficient = 1;
    const int64_t g = std::gcd(t.coefficient, c);
    return atom_quotient(one, unit) * (unit / (c / g)) * (t.coefficient / g);
}

// x = c*quotient + remainder with 0 <= remainder < c.
Parts Simplifier::divide(Linear x, int64_t c) {
    if (c == 1) return {x, Linear()};
    Parts p;
    Linear rest;
    for (const Linear::Term &t : x.terms) {
        Linear one;
        one.terms.push_back(t);
        if (t.coefficient % c == 0) {
            one.terms[0].coefficient = t.coefficient / c;
            p.quotient = p.quotient + one;
        } else if (int64_t whole = unit_of(t); whole % (c / std::gcd(t.coefficient, c)) == 0) {
            p.quotient = p.quotient + in_units(t, whole, c);
        } else if (multiple_of(one, b) % c == 0) {
            int64_t g = std::gcd(t.coefficient, c);
            one.terms[0].coefficient = 1;
            p.quotient = p.quotient + atom_quotient(one, c / g) * (t.coefficient / g);
        } else {
            rest = rest + one;
        }
    }
    rest.constant = x.constant;
    Interval range = range_of(rest, b);
    if (range.finite() && floor_quotient(range.lo, c) == floor_quotient(range.hi, c)) {
        int64_t k = floor_quotient(range.lo, c);
        return {p.quotient + Linear(k), rest - Linear(k) * c};
    }
    p.quotient.constant = floor_quotient(x.constant, c);
    rest.constant = x.constant - p.quotient.constant * c;
    // Whole units only: with D % 12 == 0, D/8 is not D/12*3/2, which has nothing in common with D.
    const auto steps_of = [&](const Linear::Term &t) {
        int64_t units;
        return c % unit_of(t) != 0 || __builtin_mul_overflow(t.coefficient, unit_of(t), &units) ? t.coefficient : units;
    };
    int64_t g = c;
    for (const Linear::Term &t : rest.terms) g = std::gcd(g, steps_of(t));
    if (g > 1) {
        Linear scaled(rest.constant / g);
        for (const Linear::Term &t : rest.terms) scaled = scaled + in_units(t, unit_of(t), g);
        Parts inner = divide(scaled, c / g);
        return {p.quotient + inner.quotient, inner.remainder * g + Linear(rest.constant % g)};
    }
    if (prove_nonnegative(rest, b) && prove_nonnegative(Linear(c - 1) - rest, b)) return {p.quotient, rest};

    if (const std::optional<Parts> digits = divide_in_digits(rest, c)) return {p.quotient + digits->quotient, digits->remainder};

    Linear flat = rest;
    for (const Linear::Term &t : rest.terms) {
        const Expr &f = t.factors[0];
        if (t.factors.size() != 1 || !is_quotient(f, Op::mod) || f->args[1]->value.integer % c) continue;
        flat = flat + (form(f->args[0]) - Linear::atom(f)) * t.coefficient;
    }
    p.remainder = same(flat, rest) ? atom_remainder(rest, c, b) : divide(flat, c).remainder;

    const Expr *inner = rest.terms.size() == 1 && rest.terms[0].factors.size() == 1 ? &rest.terms[0].factors[0] : nullptr;
    if (inner && rest.terms[0].coefficient == 1 && is_quotient(*inner, Op::div)) {
        int64_t a = (*inner)->args[1]->value.integer;
        const bool is_whole = multiple_of(form((*inner)->args[0]), b) % a == 0;
        if (!is_whole && a < INT32_MAX && c < INT32_MAX) {
            p.quotient = p.quotient + divide(form((*inner)->args[0]) + Linear(rest.constant) * a, a * c).quotient;
            return p;
        }
    }
    p.quotient = p.quotient + atom_quotient(rest, c);
    return p;
}

// x = a*y + r where a divides c and r is a digit, 0 <= r < a: what is left to divide is y.
std::optional<Parts> Simplifier::divide_in_digits(const Linear &x, int64_t c) {
    for (const Linear::Term &t : x.terms) {
        const int64_t a = std::gcd(t.coefficient, c);
        if (a == 1 || a == c) continue;
        Linear y(floor_quotient(x.constant, a)), digit(x.constant - y.constant * a);
        for (const Linear::Term &other : x.terms) {
            Linear &part = other.coefficient % a ? digit : y;
            part.terms.push_back({other.factors, other.coefficient % a ? other.coefficient : other.coefficient / a});
        }
        const Interval range = range_of(digit, b);
        if (range.lo < 0 || range.hi >= a) continue;
        const Parts rest = divide(y, c / a);
        return Parts{rest.quotient, rest.remainder * a + digit};
    }
    return {};
}

// By a symbolic divisor: the terms that hold it are the quotient when the rest lies in 0 ..= d-1.
bool Simplifier::divide_by_symbol(const Linear &x, const Expr &d, Parts &parts) {
    if (range_of_atom(d, b).lo < 0) return false;
    Linear inside, outside, whole = Linear::atom(d);
    if (!split_by(x, d, inside, outside)) return false;
    if (!prove_nonnegative(outside, b) || !prove_nonnegative(whole - Linear(1) - outside, b)) return false;
    parts = {inside, outside};
    return true;
}

Linear Simplifier::quotient_or_remainder(const Expr &e) {
    const Linear &x = form(e->args[0]), &d = form(e->args[1]);
    bool quotient = e->op == Op::div;
    if (d.is_constant() && d.constant == 0) return Linear();
    if (d.is_constant() && d.constant > 0) {
        Parts p = divide(x, d.constant);
        return recombined(quotient ? p.quotient : p.remainder);
    }
    Expr divisor = to_expr(d);
    Parts p;
    if (d.terms.size() == 1 && d.constant == 0 && d.terms[0].coefficient == 1 && d.terms[0].factors.size() == 1 &&
        divide_by_symbol(x, divisor, p))
        return quotient ? p.quotient : p.remainder;
    return Linear::atom(operation(e->op, {to_expr(x), divisor}));
}

Linear Simplifier::min_or_max(const Expr &e) {
    const Linear &x = form(e->args[0]), &y = form(e->args[1]);
    bool least = e->op == Op::min;
    Linear d = y - x;
    if (prove_nonnegative(d, b)) return least ? x : y;
    if (prove_nonnegative(d * -1, b)) return least ? y : x;
    Expr p = to_expr(x), q = to_expr(y);
    if (compare(p, q) > 0) std::swap(p, q);
    return Linear::atom(operation(e->op, {p, q}));
}

Expr Simplifier::any(const Expr &e) {
    Bounds::Answers &answers = b.answers(e->variables);
    if (const Expr *known = answers.simplified.find(e.get())) return *known;
    Expr made;
    index_work += !e.is_constant();
    try {
        Deeper deeper(b.depth());
        made = e.type() == DType::index ? to_expr(form(e)) : e.type() == DType::boolean ? condition(e) : make_any(e);
    } catch (LinearOverflow) { made = e; }
    answers.kept.push_front(e);
    return *answers.simplified.add(e.get()).first = made;
}

// The node itself over simplified operands.
Expr Simplifier::make_any(const Expr &e) {
    if (e->args.empty()) return e;
    Operands args;
    bool changed = false;
    for (const Expr &arg : e->args) {
        args.push_back(any(arg));
        changed |= args.back().get() != arg.get();
    }
    if (e.kind() == ExprKind::load && e->guarded) {
        Expr fill = args.back(), guard = args[args.size() - 2];
        if (guard.is_constant(0)) return fill;
        args.pop_back(), args.pop_back();
        return changed ? load_or(e->name, e.type(), args, guard, fill) : e;
    }
    if (!changed) return e;
    switch (e.kind()) {
    case ExprKind::load: return load(e->name, e.type(), args);
    case ExprKind::bounded: return bounded(args[0], args[1], args[2]);
    case ExprKind::cast: return cast(e.type(), args[0], e->rounding, e->saturate);
    case ExprKind::bitcast: return bitcast(e.type(), args[0]);
    case ExprKind::operation: return operation(e->op, args);
    case ExprKind::function: return applied(e->function, args);
    case ExprKind::constant:
    case ExprKind::variable:
    case ExprKind::extent:
    case ExprKind::parameter:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input: break;
    }
    throw InternalError("a leaf has operands");
}

// a op b for eq, ne, lt, le: decided, or with the terms on the side where they are positive.
Expr Simplifier::comparison(Op op, const Linear &x, const Linear &y) {
    Linear d = y - x;
    auto truth = [](bool v) { return constant_int(DType::boolean, v); };
    int64_t g = coefficient_gcd(d);
    if (op == Op::eq || op == Op::ne) {
        bool equal_is = op == Op::eq;
        if (d.is_constant()) return truth((d.constant == 0) == equal_is);
        if (d.constant % g) return truth(!equal_is);
        bool above = prove_nonnegative(d, b), below = prove_nonnegative(d * -1, b);
        if (above && below) return truth(equal_is);
        if ((above && prove_nonnegative(d - Linear(1), b)) || (below && prove_nonnegative(d * -1 - Linear(1), b))) return truth(!equal_is);
    } else {
        Linear holds = op == Op::lt ? d - Linear(1) : d;
        if (prove_nonnegative(holds, b)) return truth(true);
        if (prove_nonnegative(holds * -1 - Linear(1), b)) return truth(false);
    }
    if (g > 1) {
        for (Linear::Term &t : d.terms) t.coefficient /= g;
        d.constant = op == Op::lt ? floor_quotient(d.constant - 1, g) + 1 : floor_quotient(d.constant, g);
    }
    Linear positive, negative;
    for (const Linear::Term &t : d.terms) {
        Linear &side = t.coefficient > 0 ? positive : negative;
        side.terms.push_back({t.factors, t.coefficient > 0 ? t.coefficient : -t.coefficient});
    }
    bool on_left = positive.terms.empty() ? false : negative.terms.empty() ? true : d.constant < 0;
    (on_left ? negative : positive).constant = on_left ? -d.constant : d.constant;
    Expr p = to_expr(negative), q = to_expr(positive);
    if ((op == Op::eq || op == Op::ne) && compare(p, q) > 0) std::swap(p, q);
    return operation(op, {p, q});
}

Expr Simplifier::condition(const Expr &e) {
    if (e.kind() != ExprKind::operation) {
        Expr made = make_any(e);
        return b.assumed(made) ? constant_int(DType::boolean, 1) : made;
    }
    bool compares = is_comparison(e->op);
    Expr made;
    if (compares && e->args[0].type() == DType::index) {
        made = comparison(e->op, form(e->args[0]), form(e->args[1]));
    } else if (e->op == Op::logical_not) {
        Expr x = any(e->args[0]);
        bool on_index = x.kind() == ExprKind::operation && x->args[0].type() == DType::index;
        if (x.is_operation(Op::logical_not)) return x->args[0];
        if (on_index && x.is_operation(Op::lt)) return any(x->args[1] <= x->args[0]);
        if (on_index && x.is_operation(Op::le)) return any(x->args[1] < x->args[0]);
        if (x.is_operation(Op::eq)) return any(operation(Op::ne, x->args));
        if (x.is_operation(Op::ne)) return any(operation(Op::eq, x->args));
        made = operation(Op::logical_not, {x});
    } else {
        made = make_any(e);
    }
    return b.assumed(made) ? constant_int(DType::boolean, 1) : made;
}

}  // namespace

Expr simplify(const Expr &e, const Bounds &bounds) { return e.defined() ? Simplifier(bounds).any(e) : e; }

const Linear &linear_form(const Expr &e, const Bounds &bounds) {
    if (e.type() != DType::index) throw InternalError("index arithmetic on " + brief(e));
    return Simplifier(bounds).form(e);
}

}  // namespace tessera
