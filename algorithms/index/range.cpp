// Constant ranges and divisors of forms under what is known. See bounds.h.
#include <algorithm>
#include <bit>
#include <numeric>

#include "algorithms/index/prove.h"

namespace tessera {

static constexpr int64_t unbounded = Interval::unbounded;

static int64_t clamp(__int128 v) { return v > unbounded ? unbounded : v < -unbounded ? -unbounded : static_cast<int64_t>(v); }

static Interval add(Interval a, Interval b) {
    bool no_lo = a.lo <= -unbounded || b.lo <= -unbounded, no_hi = a.hi >= unbounded || b.hi >= unbounded;
    return {no_lo ? -unbounded : clamp(static_cast<__int128>(a.lo) + b.lo), no_hi ? unbounded : clamp(static_cast<__int128>(a.hi) + b.hi)};
}

static Interval multiply(Interval a, Interval b) {
    int64_t ends[4];
    int n = 0;
    for (int64_t x : {a.lo, a.hi})
        for (int64_t y : {b.lo, b.hi}) ends[n++] = clamp(static_cast<__int128>(x) * y);
    return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

static Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

static Interval range_of_expr(const Expr &e, const Bounds &b) { return range_of(linear_form(e, b), b); }

static Interval range_of_variable(const std::string &name, const Bounds &b) {
    auto &memo = b.answers(Expr::Node::bit_of(name)).variables;
    if (auto it = memo.find(name); it != memo.end()) return it->second;
    const Bounds::Range *r = b.find(name);
    if (!r) return {};
    memo[name] = {};
    Interval i;
    if (r->lo.defined()) i.lo = range_of(r->lo_form, b).lo;
    if (r->hi.defined()) i.hi = range_of(r->hi_form, b).hi;
    return memo[name] = i;
}

static Interval range_of_quotient(Interval x, Interval d) {
    int64_t most = std::max(x.hi, -x.lo);
    if (d.lo < 0) return {-std::max<int64_t>(most, 1), std::max<int64_t>(most, 1)};
    Interval q;
    int64_t least = std::max<int64_t>(d.lo, 1), largest = std::max<int64_t>(d.hi, 1);
    q.lo = x.lo <= -unbounded ? -unbounded : floor_quotient(x.lo, x.lo < 0 ? least : largest);
    q.hi = x.hi >= unbounded ? unbounded : floor_quotient(x.hi, x.hi < 0 ? largest : least);
    if (d.lo == 0) q = join(q, {0, 0});
    return q;
}

static Interval range_of_remainder(const Expr &atom, Interval x, Interval d, const Bounds &b) {
    if (d.lo < 0) return {std::min<int64_t>(d.lo + 1, 0), std::max<int64_t>(d.hi - 1, 0)};
    Interval r{0, std::max<int64_t>(d.hi == unbounded ? unbounded : d.hi - 1, 0)};
    if (x.lo >= 0) r.hi = std::min(r.hi, x.hi);
    if (d.lo == d.hi && d.lo > 0) {
        int64_t g = std::gcd(multiple_of(linear_form(atom->args[0], b), b), d.lo);
        r.hi = std::min(r.hi, d.lo - g);
    }
    return r;
}

static Interval range_of_bounded(const Expr &e, const Bounds &b) {
    const Interval lo = range_of_expr(e->args[1], b), last = add(range_of_expr(e->args[2], b), {-1, -1});
    // An empty range clamps to either end.
    const bool some = last.lo >= lo.hi || range_of(linear_form(e->args[2], b) - linear_form(e->args[1], b), b).lo >= 1;
    return {some ? lo.lo : std::min(lo.lo, last.lo), some ? last.hi : std::max(lo.hi, last.hi)};
}

static Interval make_range_of_operation(const Expr &e, const Bounds &b) {
    auto arg = [&](size_t i) { return range_of_expr(e->args[i], b); };
    switch (e->op) {
    case Op::div: return range_of_quotient(arg(0), arg(1));
    case Op::mod: return range_of_remainder(e, arg(0), arg(1), b);
    case Op::select: return join(arg(1), arg(2));
    case Op::min: {
        Interval x = arg(0), y = arg(1);
        return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    }
    case Op::max: {
        Interval x = arg(0), y = arg(1);
        return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    }
    case Op::abs: {
        Interval x = arg(0);
        return {x.lo > 0 ? x.lo : x.hi < 0 ? -x.hi : 0, std::max(x.hi, -x.lo)};
    }
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: {
        Interval x = arg(0), y = arg(1);
        if (x.lo < 0 || y.lo < 0 || !x.finite() || !y.finite()) return {};
        auto ones = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(x.hi, y.hi)) + 1)) - 1;
        return {0, e->op == Op::bit_and ? std::min(x.hi, y.hi) : ones};
    }
    case Op::neg:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::logical_not:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::fma: break;
    }
    return {};
}

// Minima of minima look at each of theirs again and again. Low ones are found as fast as they would be remembered.
template <typename Value, typename Make>
static Value remembered(AddressMap<Value> Bounds::Answers::*where, const Expr &e, const Bounds &b, const Make &make) {
    constexpr int low = 6;
    if (e->height <= low) return make(e, b);
    Bounds::Answers &answers = b.answers(e->variables);
    if (const Value *known = (answers.*where).find(e.get())) return *known;
    const Value made = make(e, b);
    answers.kept.push_front(e);
    return *(answers.*where).add(e.get()).first = made;
}

static Interval range_of_type(DType type) {
    // For positions more is known than their type; numbers of 64 bits may be any.
    if (is_float(type) || type == DType::index || type == DType::i64) return {};
    return {traits_of(type).lowest, traits_of(type).highest};
}

Interval range_of_atom(const Expr &e, const Bounds &b) {
    Interval i;
    switch (e.kind()) {
    case ExprKind::variable: i = range_of_variable(e->name, b); break;
    case ExprKind::extent: {
        const Bounds::Extent &x = b.find_extent(e->name);
        i = {x.min, x.max};
        if (x.size.defined()) {
            Interval size = range_of_expr(x.size, b);
            i = meet(i, {std::max<int64_t>(size.lo, 0), std::max<int64_t>(size.hi, 0)});
        }
        break;
    }
    case ExprKind::cast:
        i = range_of_type(e->args[0].type());
        if (e->args[0].kind() == ExprKind::parameter && (e.type() == DType::index || e.type() == DType::i64))
            i = meet(i, b.known_parameter(e->args[0]->name));
        if (const Ascending *tensor = b.ascending(e)) i = meet(i, {0, range_of_expr(tensor->most, b).hi});
        break;
    case ExprKind::parameter: i = meet(range_of_type(e.type()), b.known_parameter(e->name)); break;
    case ExprKind::bounded: i = remembered(&Bounds::Answers::ranges, e, b, range_of_bounded); break;
    case ExprKind::operation: i = remembered(&Bounds::Answers::ranges, e, b, make_range_of_operation); break;
    case ExprKind::constant:
    case ExprKind::load:
    case ExprKind::bitcast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    return meet(i, b.known(e));
}

Interval range_of(const Linear &form, const Bounds &b) {
    Interval sum{form.constant, form.constant};
    for (const Linear::Term &t : form.terms) {
        Interval product{t.coefficient, t.coefficient};
        for (const Expr &f : t.factors) product = multiply(product, range_of_atom(f, b));
        sum = add(sum, product);
    }
    return sum;
}

int sign_of(const Linear &form, const Bounds &b) {
    Interval i = range_of(form, b);
    return i.lo >= 0 ? 1 : i.hi <= 0 ? -1 : 0;
}

static int64_t declared_multiple(const Expr &e, const Bounds &b) {
    auto arg = [&](size_t i) { return multiple_of(linear_form(e->args[i], b), b); };
    if (e.kind() == ExprKind::extent) return b.find_extent(e->name).multiple_of;
    if (e.is_operation(Op::min) || e.is_operation(Op::max) || e.is_operation(Op::mod)) return std::gcd(arg(0), arg(1));
    if (e.is_operation(Op::select)) return std::gcd(arg(1), arg(2));
    return 1;
}

static int64_t multiple_of_atom(const Expr &e, const Bounds &b) {
    int64_t declared = remembered(&Bounds::Answers::multiples, e, b, declared_multiple), assumed = b.known_multiple(e);
    bool small = declared > 0 && declared <= INT32_MAX && assumed <= INT32_MAX;
    return small ? std::lcm(declared, assumed) : declared;
}

int64_t multiple_of(const Linear &form, const Bounds &b) {
    int64_t g = form.constant;
    for (const Linear::Term &t : form.terms) {
        __int128 m = t.coefficient;
        for (const Expr &f : t.factors)
            if (m < (__int128{1} << 40) && m > -(__int128{1} << 40)) m *= multiple_of_atom(f, b);
        g = std::gcd(g, m > unbounded || m < -unbounded ? t.coefficient : static_cast<int64_t>(m));
    }
    return g;
}

}  // namespace tessera
