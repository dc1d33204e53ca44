// The tile functions of the standard vocabulary. Each is a few lines over the grammar; write your own the same way.
// Shapes are named dims; a mismatch is a UserError shape.* that names the tile, the dim and the rule.
#pragma once
#include <functional>

#include "algorithms/build/builder.h"

namespace tessera {

// What stands beside an operator: a tile, or a number as a constant tile of the other operand's type. It knows its line, which an operator
// has no argument for.
class Operand {
public:
    Operand(const Tile &tile, Span where = std::source_location::current()) : tile_(&tile), where_(where) {}
    Operand(double number, Span where = std::source_location::current()) : number_(number), where_(where) {}
    Tile beside(const Operand &other) const;  // UserError expr.number where the other's type does not hold the number
    const Span &where() const { return where_; }

private:
    const Tile *tile_ = nullptr;  // which the operand does not outlive
    double number_ = 0;
    Span where_;
};

// Element-wise, broadcasting by dim name. All operations that expressions have (op.h): division and % of integers round down, && and || are
// of bool tiles and bits of integers. % of floats has the sign of b too, as Python's has (fmod, below, has that of a). A number stands for
// a constant tile of the other's type, on either side of an operator, which that type must hold (UserError expr.number): a tile of integers
// times 0.5 is written with a cast.
Tile operator+(const Operand &a, const Operand &b);
Tile operator-(const Operand &a, const Operand &b);
Tile operator*(const Operand &a, const Operand &b);
Tile operator/(const Operand &a, const Operand &b);
Tile operator%(const Operand &a, const Operand &b);
Tile operator<(const Operand &a, const Operand &b);
Tile operator<=(const Operand &a, const Operand &b);
Tile operator>(const Operand &a, const Operand &b);
Tile operator>=(const Operand &a, const Operand &b);
Tile operator==(const Operand &a, const Operand &b);
Tile operator!=(const Operand &a, const Operand &b);
Tile operator^(const Operand &a, const Operand &b);
Tile operator<<(const Operand &a, const Operand &b);
Tile operator>>(const Operand &a, const Operand &b);
// NaN where either is, as are the folds min and max over a dim where an element is.
Tile min(const Operand &a, const Operand &b);
Tile max(const Operand &a, const Operand &b);
Tile operator-(const Operand &a);
// Beside these C++ has its own for what converts to bool, as a tile does, so they take no Operand: their line is that of the last operand.
Tile operator&&(const Tile &a, const Tile &b);  // both are computed
Tile operator&&(const Tile &a, double b);
Tile operator&&(double a, const Tile &b);
Tile operator||(const Tile &a, const Tile &b);
Tile operator||(const Tile &a, double b);
Tile operator||(double a, const Tile &b);
Tile operator!(const Tile &a);
Tile fma(const Tile &a, const Tile &b, const Tile &c, Span caller = std::source_location::current());  // a * b + c, rounded once
Tile select(const Tile &condition, const Tile &a, const Tile &b, Span caller = std::source_location::current());
Tile abs(const Tile &x, Span caller = std::source_location::current());
Tile floor(const Tile &x, Span caller = std::source_location::current());
Tile ceil(const Tile &x, Span caller = std::source_location::current());
Tile round(const Tile &x, Span caller = std::source_location::current());  // to nearest, ties to even
Tile trunc(const Tile &x, Span caller = std::source_location::current());
// x - y trunc(x / y), as C's fmod: exact where the quotient has at most 53 bits, NaN where x is infinite or y is 0.
Tile fmod(const Tile &x, const Tile &y, Span caller = std::source_location::current());
Tile cast(DType type, const Tile &a, Rounding rounding = Rounding::nearest_even, bool saturate = false,
          Span caller = std::source_location::current());
Tile bitcast(DType type, const Tile &a, Span caller = std::source_location::current());
// Integers as positions lo ..= hi - 1, at which a tensor may be read: x.at({{"V", bounded(id, 0, extent("V")).value()}}, …).
Tile bounded(const Tile &position, const Expr &lo, const Expr &hi, Span caller = std::source_location::current());

// Element-wise functions of functions.h, which states their accuracy.
Tile exp(const Tile &x, Span caller = std::source_location::current());
Tile exp_nonpositive(const Tile &x, Span caller = std::source_location::current());
Tile pow(const Tile &x, const Tile &y, Span caller = std::source_location::current());
Tile pow(const Tile &x, double y, Span caller = std::source_location::current());
Tile pow(const Tile &x, int n, Span caller = std::source_location::current());
Tile expm1(const Tile &x, Span caller = std::source_location::current());
Tile log(const Tile &x, Span caller = std::source_location::current());
Tile log1p(const Tile &x, Span caller = std::source_location::current());
Tile sin(const Tile &x, Span caller = std::source_location::current());
Tile cos(const Tile &x, Span caller = std::source_location::current());
Tile atan(const Tile &x, Span caller = std::source_location::current());
Tile atan2(const Tile &y, const Tile &x, Span caller = std::source_location::current());
Tile erf(const Tile &x, Span caller = std::source_location::current());
Tile erfc(const Tile &x, Span caller = std::source_location::current());
Tile tanh(const Tile &x, Span caller = std::source_location::current());
Tile sigmoid(const Tile &x, Span caller = std::source_location::current());
Tile sqrt(const Tile &x, Span caller = std::source_location::current());
Tile rsqrt(const Tile &x, Span caller = std::source_location::current());
Tile relu(const Tile &x, Span caller = std::source_location::current());
Tile softplus(const Tile &x, Span caller = std::source_location::current());
Tile gelu(const Tile &x, Span caller = std::source_location::current());
Tile gelu_tanh(const Tile &x, Span caller = std::source_location::current());
Tile silu(const Tile &x, Span caller = std::source_location::current());
// x, which derivatives take for a constant; and x with the derivative of `by`, as what is rounded has in training.
Tile stop_gradient(const Tile &x, Span caller = std::source_location::current());
Tile straight_through(const Tile &x, const Tile &by, Span caller = std::source_location::current());
// A function of your own (make_function), point by point.
Tile applied(const FunctionRef &function, const std::vector<Tile> &arguments, Span caller = std::source_location::current());

// Another order of dims (the last two exchanged); no data moves.
Tile transpose(const Tile &x, Span caller = std::source_location::current());
// The tile with further dims, along which it is constant.
Tile broadcast(const Tile &x, const std::vector<Dim> &dims, Span caller = std::source_location::current());
// The tile with a dim called otherwise.
Tile rename(const Tile &x, const Dim &from, const Dim &to, Span caller = std::source_location::current());

// Stacks tiles of one type along a dim that has as many points and comes last: element i of `along` is tile i. A schedule that
// writes the dim out (`micro`) computes what they share once.
Tile stack(const std::vector<Tile> &tiles, const Dim &along, Span caller = std::source_location::current());

// Sum of products over `over`, or over every dim that a and b share and is a's last: (…, K) x (K, …). fma by fma in the
// accumulate type, or in f64 where an operand is, in increasing index.
Tile dot(const Tile &a, const Tile &b, const std::vector<Dim> &over = {}, Span caller = std::source_location::current());

// Folds over one dim.
Tile sum(const Tile &x, const Dim &over, Span caller = std::source_location::current());
Tile product(const Tile &x, const Dim &over, Span caller = std::source_location::current());
Tile max(const Tile &x, const Dim &over, Span caller = std::source_location::current());
Tile min(const Tile &x, const Dim &over, Span caller = std::source_location::current());
Tile mean(const Tile &x, const Dim &over, Span caller = std::source_location::current());

// exp(x - max) * (1 / sum) over `over`, terms under 2^-126.5 of the largest being 0; stages max, exp, sum. A row of -inf only gives NaN.
Tile softmax(const Tile &x, const Dim &over, Span caller = std::source_location::current());
// sum over `over` of softmax(scores) * values, folded online: scores (…, over), values (…, over, value).
// Rows for which `where` holds nowhere give 0.
Tile online_softmax(const Tile &scores, const Tile &values, const Dim &over, const Dim &value, const Tile &where = {},
                    Span caller = std::source_location::current());
// Scores where key <= query, -inf elsewhere.
Tile mask_causal(const Tile &scores, const Dim &query, const Dim &key, Span caller = std::source_location::current());
// What normalizing over some dims needs of x, and what it knows on the way. Stages welford, near, rest and scale.
struct Moments {
    Tile near, shift, rest, spread, scale;  // the moments are of x near: mean shift + rest, variance `spread`; scale is 1 / deviation

    Tile normalize(const Tile &x) const;  // (x - mean) / sqrt(variance + epsilon)
    Tile mean() const;
    Tile variance() const;           // of the population: the mean of squared differences
    Tile inverse_deviation() const;  // 1 / sqrt(variance + epsilon)
    // The same with each of the tiles changed: read at other dims.
    Moments changed(const std::function<Tile(const Tile &)> &change) const;
};
Moments moments(const Tile &x, const std::vector<Dim> &over, const Tile &epsilon, Span caller = std::source_location::current());
// (x - mean) / sqrt(variance + epsilon) over `over`, epsilon > 0, of any finite x. Each is off by a few units in the last place of the
// larger of itself and the results' root mean square, however far from 0 the mean is: what rounding it leaves of the differences is
// subtracted too. Rows that reach beyond 2^47 are taken times 2^-82 (of f64: 2^495, 2^-530). A row with an infinity or NaN gives NaN.
Tile normalized(const Tile &x, const std::vector<Dim> &over, const Tile &epsilon, Span caller = std::source_location::current());
// normalized(x) * gamma + beta.
Tile layernorm(const Tile &x, const Tile &gamma, const Tile &beta, const Dim &over, double epsilon = 1e-5,
               Span caller = std::source_location::current());
// log(sum(exp(x))) over `over` with no overflow on the way; stages max, shift, sum. Of infinities it is what the formula says: of -inf only
// -inf, with an inf inf, with a NaN NaN.
Tile logsumexp(const Tile &x, const Dim &over, Span caller = std::source_location::current());
// x - logsumexp(x) over `over`, as (x - shift) - log_sum: logarithms of softmax, which log(softmax(x)) would have as -inf below 2^-126.5.
Tile log_softmax(const Tile &x, const Dim &over, Span caller = std::source_location::current());
// logsumexp(x) - own, exact where both are far from 0: a cross entropy.
Tile logsumexp_above(const Tile &own, const Tile &x, const Dim &over, Span caller = std::source_location::current());
// x / sqrt(mean(x^2) + epsilon) * gamma (Zhang, Sennrich 2019), epsilon > 0, of any finite x: sums of squares that overflow are taken of
// x 2^-80 instead (of f64, 2^-540). Stages squares, with parts near and far, and scale.
Tile rmsnorm(const Tile &x, const Tile &gamma, const Dim &over, double epsilon = 1e-5, Span caller = std::source_location::current());

}  // namespace tessera
