// The monoids of the standard vocabulary, which algorithm.h declares.
#include <cmath>
#include <limits>

#include "algorithms/functions/conversions.h"
#include "algorithms/functions/functions.h"
#include "algorithms/ir/algorithm.h"
#include "support/text/error.h"

namespace tessera {

static Part part(const std::string &name, Scalar identity, std::vector<std::string> dims = {}) { return {name, identity, std::move(dims)}; }

static Scalar number(DType type, double value) {
    return is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value));
}

static Scalar lowest(DType type) {
    return is_float(type) ? Scalar::of_real(type, -INFINITY) : Scalar::of_integer(type, traits_of(type).lowest);
}

static Scalar highest(DType type) {
    return is_float(type) ? Scalar::of_real(type, INFINITY) : Scalar::of_integer(type, traits_of(type).highest);
}

static Monoid simple(const std::string &name, Op op, Scalar identity) {
    DType type = identity.type;
    Monoid m;
    m.name = name;
    m.parts = {part("value", identity)};
    m.inputs = {type};
    m.lift = {input(0, type)};
    m.combine = {operation(op, {left(0, type), right(0, type)})};
    m.step = {operation(op, {left(0, type), input(0, type)})};
    m.batch = {{"value", name, {input(0, type)}, {}}};
    m.batch_parts = {0};
    return m;
}

Monoid segmented_monoid(const Monoid &m) {
    std::string flag = "begun";
    while (std::any_of(m.parts.begin(), m.parts.end(), [&](const Part &p) { return p.name == flag; })) flag += "_";
    Monoid result;
    result.name = "segmented_" + m.name;
    result.commutative = false;
    result.parts = {part(flag, Scalar::of_integer(DType::boolean, 0))};
    result.parts.insert(result.parts.end(), m.parts.begin(), m.parts.end());
    result.inputs = {DType::boolean};
    result.inputs.insert(result.inputs.end(), m.inputs.begin(), m.inputs.end());
    Expr begins = input(0, DType::boolean), begun = left(0, DType::boolean), anew = right(0, DType::boolean);
    auto shifted = [](const Expr &e, const std::function<Expr(const Expr &)> &left_part) {
        return rewrite(e, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return input(n->number + 1, n.type());
            if (n.kind() == ExprKind::right) return right(n->number + 1, n.type());
            return n.kind() == ExprKind::left ? left_part(left(n->number + 1, n.type())) : Expr();
        });
    };
    auto kept = [](const Expr &e) { return e; };
    auto unless_new = [&](const Expr &e) { return select(begins, constant(result.parts[static_cast<size_t>(e->number)].identity), e); };
    result.lift = {begins}, result.combine = {begun || anew}, result.step = {begun || begins};
    for (size_t p = 0; p < m.parts.size(); p++) {
        result.lift.push_back(shifted(m.lift[p], kept));
        result.combine.push_back(select(anew, right(static_cast<int>(p) + 1, m.parts[p].identity.type), shifted(m.combine[p], kept)));
        result.step.push_back(shifted(m.step[p], unless_new));
    }
    return result;
}

Monoid sum_monoid(DType type) { return simple("sum", Op::add, number(type, 0)); }

// The derivative of a fold that chooses: 1 for the elements that are what was chosen, which share where they are several. NaN is equal to
// nothing: where it is the result each element has it.
static ElementDerivative of_chosen(DType type) {
    const Expr x = input(0, type), chosen = right(0, type), one = constant(type, 1), zero = constant(type, 0);
    return {{{.part = 0, .input = 0, .value = select(chosen == chosen, select(x == chosen, one, zero), chosen), .shared = true}}};
}

static Monoid choosing(const std::string &name, Op op, Scalar identity) {
    Monoid m = simple(name, op, identity);
    if (is_float(identity.type)) m.derivative = of_chosen(identity.type);
    return m;
}

Monoid product_monoid(DType type) { return simple("product", Op::mul, number(type, 1)); }
Monoid max_monoid(DType type) { return choosing("max", Op::max, lowest(type)); }

Monoid min_monoid(DType type) { return choosing("min", Op::min, highest(type)); }

// The greater of a and b, and a where b is NaN.
static Expr greater_number(const Expr &a, const Expr &b) { return select(a < b, b, a); }

Monoid max_number_monoid(DType type) {
    Monoid m = choosing("max_number", Op::max, lowest(type));
    if (!is_float(type)) return m;
    m.lift = {greater_number(constant(lowest(type)), input(0, type))};
    m.combine = {greater_number(left(0, type), right(0, type))};
    m.step = {greater_number(left(0, type), input(0, type))};
    return m;
}

Monoid dot_monoid(DType type) {
    Monoid m = sum_monoid(type);
    m.name = "dot";
    m.inputs = {type, type};
    m.lift = {input(0, type) * input(1, type)};
    m.step = {fma(input(0, type), input(1, type), left(0, type))};
    m.batch = {{"value", "dot", {input(0, type), input(1, type)}, {}}};
    return m;
}

Monoid welford_monoid(DType type) {
    Monoid m;
    m.name = "welford";
    m.parts = {part("n", number(type, 0)), part("mean", number(type, 0)), part("m2", number(type, 0))};
    m.inputs = {type};
    Expr zero = constant(type, 0), one = constant(type, 1), x = input(0, type);
    m.lift = {one, x, x - x};  // NaN of what is not finite, as a step gives
    Expr na = left(0, type), nb = right(0, type), ma = left(1, type), mb = right(1, type);
    Expr n = na + nb, delta = mb - ma, weight = select(n == zero, zero, nb / n);
    m.combine = {n, fma(delta, weight, ma), left(2, type) + right(2, type) + delta * delta * (na * weight)};
    Expr count = na + one, d = x - ma, mean = ma + d / count;
    m.step = {count, mean, fma(d, x - mean, left(2, type))};
    Expr chunk_mean = select(right(0, type) == zero, zero, right(1, type) / right(0, type));
    Expr centred = x - right(2, type);
    m.batch = {
        {"n", "sum", {one}, {}}, {"total", "sum", {x}, {}}, {"mean", "each", {chunk_mean}, {}}, {"m2", "dot", {centred, centred}, {}}};
    m.batch_parts = {0, 2, 3};
    const Expr mean_of_all = right(1, type), two = constant(type, 2);
    m.derivative = {{{.part = 1, .input = 0, .value = one / right(0, type)}, {.part = 2, .input = 0, .value = two * (x - mean_of_all)}}};
    return m;
}

Expr near_scale(const Expr &largest) {
    const bool is_double = largest.type() == DType::f64;
    const auto number = [&](double value) { return constant(largest.type(), value); };
    return select(number(is_double ? 0x1p495 : 0x1p47) < largest, number(is_double ? 0x1p-530 : 0x1p-82), number(1));
}

Monoid moments_monoid(DType type) {
    Monoid m;
    m.name = "welford";
    m.parts = {part("n", number(type, 0)), part("largest", lowest(type)), part("mean", number(type, 0)), part("m2", number(type, 0)),
               part("rest", number(type, 0))};
    m.inputs = {type};
    const Expr zero = constant(type, 0), one = constant(type, 1), x = input(0, type);
    struct Sums {
        Expr n, mean, m2, rest;
        // From a mean that is `off` below theirs.
        Expr rest_from(const Expr &off) const { return fma(n, off, rest); }
        Expr m2_from(const Expr &off) const { return fma(off, fma(n, off, constant(n.type(), 2) * rest), m2); }
    };
    // The sums of these parts in the scale of another largest element. Scales are powers of two.
    const auto sums_at = [&](const std::function<Expr(int)> &of, const Expr &largest) {
        const Expr by = near_scale(largest) / near_scale(of(1));
        return Sums{of(0), of(2) * by, of(3) * (by * by), of(4) * by};
    };
    const auto of_left = [&](int p) { return left(p, type); };
    const auto of_right = [&](int p) { return right(p, type); };
    const auto found = [&](const Expr &e) { return greater_number(constant(lowest(type)), abs(e)); };
    const Expr alone = x * near_scale(found(x));
    m.lift = {one, found(x), alone, alone - alone, alone - alone};
    const Expr larger = greater_number(left(1, type), right(1, type));
    const Sums a = sums_at(of_left, larger), b = sums_at(of_right, larger);
    const Expr n = a.n + b.n, mean = fma(b.mean - a.mean, select(n == zero, zero, b.n / n), a.mean);
    const Expr off_a = a.mean - mean, off_b = b.mean - mean;
    m.combine = {n, larger, mean, a.m2_from(off_a) + b.m2_from(off_b), a.rest_from(off_a) + b.rest_from(off_b)};
    const Expr largest = greater_number(left(1, type), abs(x)), element = x * near_scale(largest);
    const Sums before = sums_at(of_left, largest);
    const Expr count = before.n + one, next = before.mean + (element - before.mean) / count;
    const Expr off = before.mean - next, difference = element - next;
    m.step = {count, largest, next, fma(difference, difference, before.m2_from(off)), before.rest_from(off) + difference};
    // A total that does not overflow, and needs no scale that only the largest element decides.
    const Expr small = constant(type, 0x1p-32), scale = right(3, type) * constant(type, 0x1p32);
    const Expr chunk_mean = select(right(0, type) == zero, zero, right(1, type) / right(0, type) * scale);
    const Expr centred = fma(x, right(3, type), -right(4, type));
    m.batch = {{"n", "sum", {one}, {}},
               {"total", "dot", {x, small}, {}},
               {"largest", "max_number", {abs(x)}, {}},
               {"near", "each", {near_scale(right(2, type))}, {}},
               {"mean", "each", {chunk_mean}, {}},
               {"m2", "dot", {centred, centred}, {}},
               {"rest", "sum", {centred}, {}}};
    m.batch_parts = {0, 2, 4, 5, 6};
    // In real arithmetic `rest` is 0, and the scale changes nowhere but at one magnitude.
    const Expr by = near_scale(right(1, type)), from_mean = fma(x, by, -right(2, type)) - right(4, type) / right(0, type);
    m.derivative = {
        {{.part = 2, .input = 0, .value = by / right(0, type)}, {.part = 3, .input = 0, .value = constant(type, 2) * by * from_mean}}};
    return m;
}

Monoid with_identity_of_elements(Monoid m, const std::vector<Expr> &inputs) {
    if (m.parts.size() != 1 || inputs.size() != 1 || inputs[0].kind() != ExprKind::cast || inputs[0]->saturate) return m;
    const DType type = inputs[0].type(), element = inputs[0]->args[0].type();
    if (!is_integer(type) || !is_integer(element) || traits_of(element).bytes >= traits_of(type).bytes) return m;
    Scalar &identity = m.parts[0].identity;
    for (const auto &[whole, end] :
         {std::pair(max_monoid(type), traits_of(element).lowest), {min_monoid(type), traits_of(element).highest}})
        if (identity == whole.parts[0].identity && equal(m.step[0], whole.step[0]) && equal(m.combine[0], whole.combine[0]))
            identity = Scalar::of_integer(type, end), m.batch.clear(), m.batch_parts.clear();  // its pass begins at the wider one
    return m;
}

Expr as_operand(const Expr &x, Multiply multiply) {
    if (multiply == Multiply::full || x.type() != DType::f32) return x;
    if (x.kind() == ExprKind::cast && is_float(x->args[0].type())) {
        const DTypeTraits &stored = traits_of(x->args[0].type());
        if (stored.mantissa <= (multiply == Multiply::tf32 ? 10 : traits_of(DType::bf16).mantissa) && stored.exponent <= 8) return x;
    }
    return multiply == Multiply::tf32 ? round_tf32(x) : cast(DType::f32, cast(DType::bf16, x));
}

Monoid online_softmax_monoid(DType type, const std::string &value_dim) {
    Monoid m;
    m.name = "online_softmax";
    m.parts = {part("m", lowest(type)), part("l", number(type, 0)), part("acc", number(type, 0), {value_dim})};
    m.inputs = {type, type};
    Expr minus_infinity = constant(lowest(type)), zero = constant(type, 0);
    Expr s = input(0, type), v = input(1, type);
    // exp(a - b) for a <= b, and 0 for the empty a, whose maximum is -inf: -inf - -inf would be NaN.
    auto weight = [&](Expr a, Expr b) { return exp_nonpositive(a - select(b == minus_infinity, zero, b)); };
    // Maxima pass over scores that are NaN: their weights are NaN, and so are the sums.
    Expr first = greater_number(minus_infinity, s), only = weight(s, first);
    m.lift = {first, only, only * v};
    Expr top = greater_number(left(0, type), right(0, type));
    Expr wa = weight(left(0, type), top), wb = weight(right(0, type), top);
    m.combine = {top, fma(left(1, type), wa, right(1, type) * wb), fma(left(2, type), wa, right(2, type) * wb)};
    Expr next = greater_number(left(0, type), s);
    Expr keep = weight(left(0, type), next), w = weight(s, next);
    m.step = {next, fma(left(1, type), keep, w), fma(left(2, type), keep, w * v)};
    m.batch = {{"m", "max_number", {s}, {}},
               {"p", "", {weight(s, right(0, type))}, {}},
               {"l", "sum", {right(1, type)}, {}},
               {"acc", "dot", {right(1, type), v}, {value_dim}}};
    m.batch_parts = {0, 2, 3};
    const Expr l = right(1, type), acc = right(2, type), element = weight(s, right(0, type));
    m.derivative = of_chosen(type);
    m.derivative->entries.push_back({.part = 1, .input = 0, .value = element});
    m.derivative->entries.push_back({.part = 2, .input = 0, .value = element * v});
    m.derivative->entries.push_back({.part = 2, .input = 1, .value = element});
    m.derivative->follows = {{.part = 1, .leader = 0, .value = -l}, {.part = 2, .leader = 0, .value = -acc}};
    return m;
}

Monoid argmax_monoid(DType type) {
    Monoid m;
    m.name = "argmax";
    m.parts = {part("value", lowest(type)), part("position", Scalar::of_integer(DType::i64, INT64_MAX))};
    m.inputs = {type, DType::i64};
    auto pick = [&](Expr value, Expr position) -> std::vector<Expr> {
        Expr v = left(0, type), p = left(1, DType::i64);
        Expr greater = v < value, same = v == value;
        if (is_float(type)) {  // NaN is greater than all numbers
            greater = greater || (v == v && value != value);
            same = same || (v != v && value != value);
        }
        Expr better = greater || (same && position < p);
        return {select(better, value, v), select(better, position, p)};
    };
    m.lift = {input(0, type), input(1, DType::i64)};
    m.combine = pick(right(0, type), right(1, DType::i64));
    m.step = pick(input(0, type), input(1, DType::i64));
    if (is_float(type)) {
        const Expr is_chosen = input(1, DType::i64) == right(1, DType::i64);
        m.derivative = {{{.part = 0, .input = 0, .value = select(is_chosen, constant(type, 1), constant(type, 0))}}};
    }
    return m;
}

Monoid recurrence_monoid(DType type) {
    Monoid m;
    m.name = "recurrence";
    m.commutative = false;
    m.parts = {part("a", number(type, 1)), part("h", number(type, 0))};
    m.inputs = {type, type};
    const Expr a = input(0, type), b = input(1, type);
    m.lift = {a, b};
    m.combine = {left(0, type) * right(0, type), fma(left(1, type), right(0, type), right(1, type))};
    m.step = {left(0, type) * a, fma(left(1, type), a, b)};
    return m;
}

const StandardMonoid *find_pass_monoid(const std::string &name) {
    for (const StandardMonoid &monoid : standard_monoids)
        if (monoid.operations > 0 && monoid.name == name) return &monoid;
    return nullptr;
}

}  // namespace tessera
