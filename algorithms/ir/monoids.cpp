// The monoids of the standard vocabulary, which algorithm.h declares.
#include <cmath>
#include <limits>

#include "algorithms/functions/functions.h"
#include "algorithms/ir/algorithm.h"
#include "support/text/error.h"

namespace tessera {

static Part part(const std::string &name, Scalar identity, std::vector<std::string> dims = {}) { return {name, identity, std::move(dims)}; }

static Scalar number(DType type, double value) {
    return is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value));
}

static Scalar lowest(DType type) {
    if (is_float(type)) return Scalar::of_real(type, -INFINITY);
    return Scalar::of_integer(type, type == DType::i32 ? INT32_MIN : INT64_MIN);
}

static Scalar highest(DType type) {
    if (is_float(type)) return Scalar::of_real(type, INFINITY);
    return Scalar::of_integer(type, type == DType::i32 ? INT32_MAX : INT64_MAX);
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
Monoid product_monoid(DType type) { return simple("product", Op::mul, number(type, 1)); }
Monoid max_monoid(DType type) { return simple("max", Op::max, lowest(type)); }

Monoid nan_max_monoid(DType type) {
    Monoid m = simple("maximum", Op::max, lowest(type));
    if (!is_float(type)) return m;
    // max gives the second operand when either is NaN: what was found stays, and what is new is looked at.
    auto of = [](const Expr &found, const Expr &more) { return select(more != more, more, max(more, found)); };
    m.combine = {of(left(0, type), right(0, type))};
    m.step = {of(left(0, type), input(0, type))};
    return m;
}

Monoid min_monoid(DType type) { return simple("min", Op::min, highest(type)); }

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
    m.lift = {one, x, zero};
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
    return m;
}

Monoid online_softmax_monoid(DType type, const std::string &value_dim) {
    Monoid m;
    m.name = "online_softmax";
    m.parts = {part("m", lowest(type)), part("l", number(type, 0)), part("acc", number(type, 0), {value_dim})};
    m.inputs = {type, type};
    Expr minus_infinity = constant(lowest(type)), zero = constant(type, 0), one = constant(type, 1);
    Expr s = input(0, type), v = input(1, type);
    m.lift = {s, one, v};
    // exp(a - b) for a <= b, and 0 for the empty a, whose maximum is -inf: -inf - -inf would be NaN.
    auto weight = [&](Expr a, Expr b) { return exp_nonpositive(a - select(b == minus_infinity, zero, b)); };
    Expr top = max(left(0, type), right(0, type));
    Expr wa = weight(left(0, type), top), wb = weight(right(0, type), top);
    m.combine = {top, fma(left(1, type), wa, right(1, type) * wb), fma(left(2, type), wa, right(2, type) * wb)};
    Expr next = max(left(0, type), s);
    Expr keep = weight(left(0, type), next), w = weight(s, next);
    m.step = {next, fma(left(1, type), keep, w), fma(left(2, type), keep, w * v)};
    m.batch = {{"m", "max", {s}, {}},
               {"p", "", {weight(s, right(0, type))}, {}},
               {"l", "sum", {right(1, type)}, {}},
               {"acc", "dot", {right(1, type), v}, {value_dim}}};
    m.batch_parts = {0, 2, 3};
    return m;
}

Monoid argmax_monoid(DType type) {
    Monoid m;
    m.name = "argmax";
    m.parts = {part("value", lowest(type)), part("position", Scalar::of_integer(DType::i64, INT64_MAX))};
    m.inputs = {type, DType::i64};
    auto pick = [&](Expr value, Expr position) -> std::vector<Expr> {
        Expr v = left(0, type), p = left(1, DType::i64);
        Expr better = v < value || (v == value && position < p);
        return {select(better, value, v), select(better, position, p)};
    };
    m.lift = {input(0, type), input(1, DType::i64)};
    m.combine = pick(right(0, type), right(1, DType::i64));
    m.step = pick(input(0, type), input(1, DType::i64));
    return m;
}

const StandardMonoid *find_pass_monoid(const std::string &name) {
    for (const StandardMonoid &monoid : standard_monoids)
        if (monoid.operations > 0 && monoid.name == name) return &monoid;
    return nullptr;
}

}  // namespace tessera
