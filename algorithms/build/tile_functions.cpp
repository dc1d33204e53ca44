#include "algorithms/build/tile_functions.h"

#include <algorithm>
#include <cmath>

#include "algorithms/expr/number.h"
#include "algorithms/functions/functions.h"
#include "support/text/error.h"

namespace tessera {

static Builder *builder_of(const Tile &a, const Tile &b) {
    if (&a.builder() != &b.builder())
        throw UserError("shape.builder",
                        a.describe() + " and " + b.describe() + " belong to two algorithms; a tile is used in the one that made it.");
    return &a.builder();
}

static std::vector<std::string> both(const Tile &a, const Tile &b) {
    // The longer operand gives the order; what it lacks follows.
    const Tile &first = b.dims().size() > a.dims().size() ? b : a, &second = &first == &a ? b : a;
    std::vector<std::string> dims = first.dims();
    for (const std::string &d : second.dims())
        if (std::find(dims.begin(), dims.end(), d) == dims.end()) dims.push_back(d);
    return dims;
}

static Tile binary(Op op, const Tile &a, const Tile &b) {
    if (a.dtype() != b.dtype())
        throw UserError("shape.type", std::string(name_of(op)) + ": " + a.describe() + " is " + name_of(a.dtype()) + " and " +
                                          b.describe() + " is " + name_of(b.dtype()) + "; convert one with cast.");
    return Tile(builder_of(a, b), operation(op, {a.value(), b.value()}), both(a, b));
}

static Tile like(const Tile &a, Expr value) { return Tile(&a.builder(), std::move(value), a.dims()); }
// A function of expressions, point by point.
static Tile each(const Tile &x, const Span &caller, Expr (*function)(Expr)) {
    const SpanScope line = SpanScope::entered(caller);
    return like(x, function(x.value()));
}

static Tile number(const Tile &a, double v) { return Tile(&a.builder(), number("a number beside " + a.describe(), a.dtype(), v), {}); }

Tile Operand::beside(const Operand &other) const {
    if (tile_) return *tile_;
    require(other.tile_, "a number stands beside a tile");
    return number(*other.tile_, number_);
}

static Tile combined(Op op, const Operand &a, const Operand &b) {
    const SpanScope line = SpanScope::entered(a.where());
    return binary(op, a.beside(b), b.beside(a));
}

// a > b is b < a, with the dims in the order of a > b.
static Tile reversed(Op op, const Operand &a, const Operand &b) {
    const SpanScope line = SpanScope::entered(a.where());
    const Tile left = a.beside(b), right = b.beside(a);
    return Tile(&left.builder(), binary(op, right, left).value(), both(left, right));
}

Tile operator+(const Operand &a, const Operand &b) { return combined(Op::add, a, b); }
Tile operator-(const Operand &a, const Operand &b) { return combined(Op::sub, a, b); }
Tile operator*(const Operand &a, const Operand &b) { return combined(Op::mul, a, b); }
Tile operator/(const Operand &a, const Operand &b) { return combined(Op::div, a, b); }

// The rest of a truncated division of f64. A quotient that rounding took over a whole number gives a rest of the other sign.
static Tile rest_of(const Tile &a, const Tile &b) {
    const Tile rest = fma(-trunc(a / b), b, a);
    const Tile right = select(rest * a < 0.0, rest + select(a < 0.0, -abs(b), abs(b)), rest);
    const Tile kept = select(abs(b) == INFINITY && abs(a) < INFINITY, a, right);
    return select(kept == 0.0, a * 0.0, kept);
}

Tile fmod(const Tile &x, const Tile &y, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return cast(x.dtype(), rest_of(cast(DType::f64, x), cast(DType::f64, y)));
}

Tile operator%(const Operand &a, const Operand &b) {
    const SpanScope line = SpanScope::entered(a.where());
    const Tile x = a.beside(b), y = b.beside(a);
    if (!is_float(x.dtype()) || x.dtype() != y.dtype()) return binary(Op::mod, x, y);
    const Tile by = cast(DType::f64, y), rest = rest_of(cast(DType::f64, x), by);
    const Tile zero(&x.builder(), constant(DType::f64, 0.0), {}), minus(&x.builder(), constant(DType::f64, -0.0), {});
    const Tile sided = select((rest < 0.0) != (by < 0.0), rest + by, rest);
    return Tile(&x.builder(), cast(x.dtype(), select(rest == 0.0, select(by < 0.0, minus, zero), sided).value()), both(x, y));
}

Tile operator<(const Operand &a, const Operand &b) { return combined(Op::lt, a, b); }
Tile operator<=(const Operand &a, const Operand &b) { return combined(Op::le, a, b); }
Tile operator>(const Operand &a, const Operand &b) { return reversed(Op::lt, a, b); }
Tile operator>=(const Operand &a, const Operand &b) { return reversed(Op::le, a, b); }
Tile operator==(const Operand &a, const Operand &b) { return combined(Op::eq, a, b); }
Tile operator!=(const Operand &a, const Operand &b) { return combined(Op::ne, a, b); }
Tile operator^(const Operand &a, const Operand &b) { return combined(Op::bit_xor, a, b); }
Tile operator<<(const Operand &a, const Operand &b) { return combined(Op::shl, a, b); }
Tile operator>>(const Operand &a, const Operand &b) { return combined(Op::shr, a, b); }
Tile min(const Operand &a, const Operand &b) { return combined(Op::min, a, b); }
Tile max(const Operand &a, const Operand &b) { return combined(Op::max, a, b); }

Tile operator-(const Operand &a) {
    const SpanScope line = SpanScope::entered(a.where());
    const Tile tile = a.beside(a);
    return like(tile, -tile.value());
}

Tile operator&&(const Tile &a, const Tile &b) { return combined(Op::bit_and, {a, b.span()}, b); }
Tile operator&&(const Tile &a, double b) { return combined(Op::bit_and, {a, a.span()}, b); }
Tile operator&&(double a, const Tile &b) { return combined(Op::bit_and, {a, b.span()}, b); }
Tile operator||(const Tile &a, const Tile &b) { return combined(Op::bit_or, {a, b.span()}, b); }
Tile operator||(const Tile &a, double b) { return combined(Op::bit_or, {a, a.span()}, b); }
Tile operator||(double a, const Tile &b) { return combined(Op::bit_or, {a, b.span()}, b); }

Tile operator!(const Tile &a) {
    const SpanScope line = SpanScope::entered(a.span());
    return like(a, !a.value());
}

Tile fma(const Tile &a, const Tile &b, const Tile &c, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile ab = a * b, dims = ab + c;
    return Tile(&a.builder(), fma(a.value(), b.value(), c.value()), dims.dims());
}

Tile select(const Tile &condition, const Tile &a, const Tile &b, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<std::string> ab = both(a, b);
    Tile joined(builder_of(a, b), a.value(), ab);
    return Tile(builder_of(condition, a), select(condition.value(), a.value(), b.value()), both(joined, condition));
}

Tile cast(DType type, const Tile &a, Rounding rounding, bool saturate, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(a, cast(type, a.value(), rounding, saturate));
}
Tile bitcast(DType type, const Tile &a, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(a, bitcast(type, a.value()));
}
Tile bounded(const Tile &position, const Expr &lo, const Expr &hi, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(position, bounded(position.value(), lo, hi));
}
Tile abs(const Tile &x, Span caller) { return each(x, caller, abs); }
Tile floor(const Tile &x, Span caller) { return each(x, caller, floor); }
Tile ceil(const Tile &x, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(x, operation(Op::ceil, {x.value()}));
}
Tile round(const Tile &x, Span caller) { return each(x, caller, round); }
Tile trunc(const Tile &x, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(x, operation(Op::trunc, {x.value()}));
}

Tile applied(const FunctionRef &function, const std::vector<Tile> &arguments, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (arguments.empty()) throw UserError("functions.type", function->name + ": expected a tile for each argument, got none.");
    Operands values;
    Tile shape = arguments[0];
    for (const Tile &t : arguments) {
        values.push_back(t.value());
        shape = Tile(builder_of(shape, t), shape.value(), both(shape, t));
    }
    return like(shape, applied(function, std::move(values)));
}

Tile exp(const Tile &x, Span caller) { return each(x, caller, exp); }
Tile exp_nonpositive(const Tile &x, Span caller) { return each(x, caller, exp_nonpositive); }

Tile pow(const Tile &x, const Tile &y, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile joined = x * y;  // its dims, and that both are of one type
    return like(joined, pow(x.value(), y.value()));
}

Tile pow(const Tile &x, double y, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return pow(x, number(x, y));
}
Tile pow(const Tile &x, int n, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return like(x, pow(x.value(), n));
}
Tile expm1(const Tile &x, Span caller) { return each(x, caller, expm1); }
Tile log(const Tile &x, Span caller) { return each(x, caller, log); }
Tile log1p(const Tile &x, Span caller) { return each(x, caller, log1p); }
Tile sin(const Tile &x, Span caller) { return each(x, caller, sin); }
Tile cos(const Tile &x, Span caller) { return each(x, caller, cos); }
Tile atan(const Tile &x, Span caller) { return each(x, caller, atan); }

Tile atan2(const Tile &y, const Tile &x, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile joined = y * x;  // its dims, and that both are of one type
    return like(joined, atan2(y.value(), x.value()));
}

Tile erf(const Tile &x, Span caller) { return each(x, caller, erf); }
Tile erfc(const Tile &x, Span caller) { return each(x, caller, erfc); }
Tile tanh(const Tile &x, Span caller) { return each(x, caller, tanh); }
Tile sigmoid(const Tile &x, Span caller) { return each(x, caller, sigmoid); }
Tile sqrt(const Tile &x, Span caller) { return each(x, caller, sqrt); }
Tile rsqrt(const Tile &x, Span caller) { return each(x, caller, rsqrt); }
Tile relu(const Tile &x, Span caller) { return each(x, caller, relu); }
Tile softplus(const Tile &x, Span caller) { return each(x, caller, softplus); }
Tile gelu(const Tile &x, Span caller) { return each(x, caller, gelu); }
Tile gelu_tanh(const Tile &x, Span caller) { return each(x, caller, gelu_tanh); }
Tile silu(const Tile &x, Span caller) { return each(x, caller, silu); }

Tile stop_gradient(const Tile &x, Span caller) { return each(x, caller, stop_gradient); }

Tile straight_through(const Tile &x, const Tile &by, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile joined = x * by;  // its dims, and that both are of one type
    return like(joined, straight_through(x.value(), by.value()));
}

Tile transpose(const Tile &x, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<std::string> dims = x.dims();
    if (dims.size() < 2) throw UserError("shape.rank", "transpose wants a tile of at least two dims, got " + x.describe() + ".");
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return Tile(&x.builder(), x.value(), dims);
}

Tile broadcast(const Tile &x, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<std::string> all;
    for (const Dim &d : dims) all.push_back(x.builder().dim(d).name);
    for (const std::string &d : x.dims())
        if (std::find(all.begin(), all.end(), d) == all.end())
            throw UserError("shape.broadcast",
                            x.describe() + " cannot be broadcast to " + join(all) + ": its dim '" + d + "' is not among them.");
    return Tile(&x.builder(), x.value(), all);
}

Tile stack(const std::vector<Tile> &tiles, const Dim &along, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const std::string count = std::to_string(tiles.size());
    if (tiles.empty() || along.kind != DimKind::fixed || along.value != static_cast<int64_t>(tiles.size()))
        throw UserError("shape.stack",
                        "stack: dim '" + along.name + "' " +
                            (along.kind == DimKind::fixed ? "has extent " + std::to_string(along.value) : std::string("is not fixed")) +
                            ", and there are " + count + " tiles; expected one for each element: declare it as dim(\"" + along.name +
                            "\", " + count + ").");
    const Expr index = variable(tiles[0].builder().dim(along).name);
    Tile result = tiles.back();
    for (size_t i = tiles.size() - 1; i-- > 0;)
        result = select(Tile(&result.builder(), index == Expr(static_cast<int64_t>(i)), {}), tiles[i], result);
    std::vector<std::string> dims = result.dims();
    if (std::find(dims.begin(), dims.end(), along.name) == dims.end()) dims.push_back(along.name);
    return Tile(&result.builder(), result.value(), dims);
}

Tile rename(const Tile &x, const Dim &from, const Dim &to, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<std::string> dims = x.dims();
    std::replace(dims.begin(), dims.end(), from.name, x.builder().dim(to).name);
    return x.at({{from.name, variable(to.name)}}, dims);
}

Tile dot(const Tile &a, const Tile &b, const std::vector<Dim> &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder *f = builder_of(a, b);
    std::vector<std::string> dims = names_of(over);
    if (dims.empty()) {
        const std::string &last = a.dims().empty() ? "" : a.dims().back();
        if (std::find(b.dims().begin(), b.dims().end(), last) == b.dims().end())
            throw UserError("shape.dot", "dot: " + a.describe() + "'s last dim '" + last + "' must be a dim of " + b.describe() +
                                             "; name the dims to sum over, or rename one.");
        dims = {last};
    }
    for (const std::string &d : dims)
        for (const Tile &t : {a, b})
            if (std::find(t.dims().begin(), t.dims().end(), d) == t.dims().end())
                throw UserError("shape.dot", "dot: both operands must have the summed dim '" + d + "'; " + t.describe() + " has " +
                                                 join(t.dims()) + ".");
    const bool is_wide = a.dtype() == DType::f64 || b.dtype() == DType::f64;
    const DType type = is_wide ? DType::f64 : is_float(a.dtype()) ? f->numerics().accumulate : a.dtype();
    // An operand of that type stands where it was made.
    const auto as_type = [&](const Tile &t) { return t.dtype() == type ? t : cast(type, t); };
    return f->fold(dot_monoid(type), {as_type(a), as_type(b)}, dims)[0];
}

static Tile fold_one(const Monoid &m, const Tile &x, const Dim &over) { return x.builder().fold(m, {x}, {over.name})[0]; }

Tile sum(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fold_one(sum_monoid(x.dtype()), x, over);
}
Tile product(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fold_one(product_monoid(x.dtype()), x, over);
}
Tile max(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fold_one(max_monoid(x.dtype()), x, over);
}
Tile min(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fold_one(min_monoid(x.dtype()), x, over);
}
// For what a NaN passes by another way.
static Tile greatest_number(const Tile &x, const Dim &over) { return fold_one(max_number_monoid(x.dtype()), x, over); }

Tile mean(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile count(&x.builder(), cast(x.dtype(), extent(over.name)), {});
    return sum(x, over) / count;
}

Tile softmax(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile top = greatest_number(x, over).named("max");
    Tile below = x - stop_gradient(top), e = like(below, exp_nonpositive(below.value())).named("exp");
    return e * (number(x, 1) / sum(e, over).named("sum"));
}

Tile online_softmax(const Tile &scores, const Tile &values, const Dim &over, const Dim &value, const Tile &where, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = scores.builder();
    const DType type = scores.dtype();
    const Tile zero = number(scores, 0);
    Tile total, acc;
    if (f.numerics().multiply == Multiply::bf16) {  // weights that a product rounds are those of all scores: pass by pass
        const auto fold = [&](const Monoid &monoid, const std::vector<Tile> &of) { return f.fold(monoid, of, {over.name}, where)[0]; };
        const Tile top = fold(max_number_monoid(type), {scores}).named("max");
        const Tile below = scores - select(top == -INFINITY, zero, top);
        const Tile weights = like(below, exp_nonpositive(below.value())).named("weights");
        total = fold(sum_monoid(type), {weights}).named("sum"), acc = fold(dot_monoid(type), {weights, values}).named("acc");
    } else {
        const std::vector<Tile> parts = f.fold(online_softmax_monoid(type, value.name), {scores, values}, {over.name}, where);
        total = parts[1], acc = parts[2];
    }
    return select(total == zero, zero, acc / total);
}

Tile mask_causal(const Tile &scores, const Dim &query, const Dim &key, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = scores.builder();
    return select(f.index(key) <= f.index(query), scores, number(scores, -INFINITY));
}

Moments moments(const Tile &x, const std::vector<Dim> &over, const Tile &epsilon, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const DType type = x.dtype();
    const std::vector<Tile> parts = x.builder().fold(moments_monoid(type), {x}, names_of(over));
    const Tile n = parts[0], near = like(parts[1], near_scale(parts[1].value())).named("near"), rest = (parts[4] / n).named("rest");
    // Rounding may leave less than 0. Equal elements beside which epsilon is nothing have a variance of 0.
    const Tile variance = max(fma(-rest, rest, parts[3] / n), 0);
    const Tile scale = rsqrt(max(fma(epsilon, near * near, variance), type == DType::f64 ? 0x1p-1022 : 0x1p-126)).named("scale");
    return {near, parts[2], rest, variance, scale};
}

Tile Moments::normalize(const Tile &x) const { return (fma(x, near, -shift) - rest) * scale; }
Tile Moments::mean() const { return (shift + rest) / near; }
Tile Moments::variance() const { return spread / near / near; }
Tile Moments::inverse_deviation() const { return scale * near; }
Moments Moments::changed(const std::function<Tile(const Tile &)> &change) const {
    return {change(near), change(shift), change(rest), change(spread), change(scale)};
}

Tile normalized(const Tile &x, const std::vector<Dim> &over, const Tile &epsilon, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return moments(x, over, epsilon).normalize(x);
}

Tile layernorm(const Tile &x, const Tile &gamma, const Tile &beta, const Dim &over, double epsilon, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fma(normalized(x, {over}, number(x, epsilon)), gamma, beta);
}

// So small that no sum of squares of numbers times it overflows; a power of two, so that the product is exact.
static double far_scale(DType type) { return type == DType::f64 ? 0x1p-540 : 0x1p-80; }
// What less than this is taken for in that sum: 2^31 of its squares are nothing beside a sum that overflows without the scale. Squares of
// less would be subnormal, which takes processors by Intel ten times as long.
static double far_least(DType type) { return type == DType::f64 ? 0x1p40 : 0x1p20; }

// Sums of squares as they are, and of numbers far from 1 (Blue 1978, without his sum for those near 0), which counts only where the former
// overflows.
static Monoid squares_monoid(DType type) {
    const Expr x = input(0, type), far = max(constant(type, far_least(type)), abs(x)) * constant(type, far_scale(type));
    const Part sum = sum_monoid(type).parts[0];
    Monoid m;
    m.name = "squares", m.inputs = {type};
    m.parts = {{"near", sum.identity, {}}, {"far", sum.identity, {}}};
    m.lift = {x * x, far * far};
    m.combine = {left(0, type) + right(0, type), left(1, type) + right(1, type)};
    m.step = {fma(x, x, left(0, type)), fma(far, far, left(1, type))};
    m.batch = {{"near", "dot", {x, x}, {}}, {"far", "dot", {far, far}, {}}};
    m.batch_parts = {0, 1};
    return m;
}

Tile rmsnorm(const Tile &x, const Tile &gamma, const Dim &over, double epsilon, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile count(&x.builder(), cast(x.dtype(), extent(over.name)), {});
    const std::vector<Tile> squares = x.builder().fold(squares_monoid(x.dtype()), {x}, {over.name});
    const double small = far_scale(x.dtype());
    const Tile far = rsqrt(squares[1] / count + epsilon * small * small) * small;
    const Tile scale = select(squares[0] < INFINITY, rsqrt(squares[0] / count + epsilon), far).named("scale");
    return x * scale * gamma;
}

namespace {

// log(sum(exp(x))) is log_sum + shift.
struct LogSum {
    LogSum(const Tile &x, const Dim &over) {
        const Tile top = greatest_number(x, over).named("max");
        shift = stop_gradient(select(abs(top) < INFINITY, top, number(x, 0))).named("shift");  // inf - inf would be NaN
        log_sum = log(sum(exp(x - shift), over).named("sum"));
    }
    Tile shift, log_sum;
};

}  // namespace

Tile logsumexp(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const LogSum all(x, over);
    return all.log_sum + all.shift;
}

Tile log_softmax(const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const LogSum all(x, over);
    return x - all.shift - all.log_sum;
}

Tile logsumexp_above(const Tile &own, const Tile &x, const Dim &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const LogSum all(x, over);
    return all.log_sum - (own - all.shift);
}

}  // namespace tessera
