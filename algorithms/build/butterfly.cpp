#include "algorithms/build/butterfly.h"

#include <cmath>
#include <numbers>

#include "support/text/error.h"

namespace tessera {

Turn turn(int64_t numerator, int64_t denominator) {
    // By the nearest quarter, so that what is equal by symmetry comes out equal, and no large angle is rounded.
    int64_t eighths = ((numerator % denominator + denominator) % denominator) * 8;
    int64_t quarter = (eighths + denominator) / (2 * denominator);
    int64_t rest = eighths - 2 * quarter * denominator;
    double angle = static_cast<double>(rest) / static_cast<double>(denominator) * (std::numbers::pi / 4);
    double c = std::cos(angle), s = std::sin(angle);
    if (std::abs(rest) == denominator) c = std::numbers::sqrt2 / 2, s = std::copysign(c, s);
    switch (quarter % 4) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
    }
}

namespace {

// factor * i^quarter * (re + i im)
struct Waiting {
    Expr re, im;
    double factor = 1;
    int quarter = 0;
};

Expr times_plus(double k, const Expr &b, const Expr &a) {
    if (k == 1) return a + b;
    if (k == -1) return a - b;
    return fma(constant(b.type(), k), b, a);
}

// a + k i^quarter b, waiting as a does.
Waiting plus(const Waiting &a, double k, const Waiting &b, int quarter = 0) {
    double ratio = k * b.factor / a.factor;
    switch ((quarter + b.quarter - a.quarter) & 3) {
    case 0: return {times_plus(ratio, b.re, a.re), times_plus(ratio, b.im, a.im), a.factor, a.quarter};
    case 1: return {times_plus(-ratio, b.im, a.re), times_plus(ratio, b.re, a.im), a.factor, a.quarter};
    case 2: return {times_plus(-ratio, b.re, a.re), times_plus(-ratio, b.im, a.im), a.factor, a.quarter};
    default: return {times_plus(ratio, b.im, a.re), times_plus(-ratio, b.re, a.im), a.factor, a.quarter};
    }
}

// v exp(2 pi i numerator / denominator): what is left of the angle after quarters is at most an eighth of a turn, whose
// tangent goes into fma, and whose cosine waits.
Waiting turned(const Waiting &v, int64_t numerator, int64_t denominator) {
    int64_t eighths = ((numerator % denominator + denominator) % denominator) * 8;
    int64_t quarters = (eighths + denominator) / (2 * denominator), rest = eighths - 2 * quarters * denominator;
    Waiting result = v;
    result.quarter = static_cast<int>((v.quarter + quarters) & 3);
    if (rest == 0) return result;
    Turn t = turn(rest, 8 * denominator);
    double tangent = rest == denominator ? 1 : rest == -denominator ? -1 : t.sine / t.cosine;
    result.re = times_plus(-tangent, v.im, v.re), result.im = times_plus(tangent, v.re, v.im);
    result.factor *= t.cosine;
    return result;
}

class Butterfly {
public:
    explicit Butterfly(FourierSign s) : sign(static_cast<int>(s)) {}

    std::vector<Waiting> of(const std::vector<Waiting> &x) const {
        switch (x.size()) {
        case 1: return x;
        case 2: return {plus(x[0], 1, x[1]), plus(x[0], -1, x[1])};
        case 3: return three(x);
        case 4: return four(x);
        case 5: return five(x);
        default: return composite(x);
        }
    }

private:
    int sign;

    std::vector<Waiting> three(const std::vector<Waiting> &x) const {
        Waiting s = plus(x[1], 1, x[2]), d = plus(x[1], -1, x[2]), m = plus(x[0], -0.5, s);
        double sine = sign * turn(1, 3).sine;
        return {plus(x[0], 1, s), plus(m, sine, d, 1), plus(m, -sine, d, 1)};
    }

    std::vector<Waiting> four(const std::vector<Waiting> &x) const {
        Waiting a = plus(x[0], 1, x[2]), b = plus(x[0], -1, x[2]), c = plus(x[1], 1, x[3]), d = plus(x[1], -1, x[3]);
        return {plus(a, 1, c), plus(b, sign, d, 1), plus(a, -1, c), plus(b, -sign, d, 1)};
    }

    std::vector<Waiting> five(const std::vector<Waiting> &x) const {
        Waiting s1 = plus(x[1], 1, x[4]), d1 = plus(x[1], -1, x[4]), s2 = plus(x[2], 1, x[3]), d2 = plus(x[2], -1, x[3]);
        Turn one = turn(1, 5), two = turn(2, 5);
        Waiting m1 = plus(plus(x[0], one.cosine, s1), two.cosine, s2), m2 = plus(plus(x[0], two.cosine, s1), one.cosine, s2);
        // sin 72 d1 + sin 36 d2 and sin 36 d1 - sin 72 d2, the first factor of each left outside.
        Waiting n1 = plus(d1, two.sine / one.sine, d2), n2 = plus(d1, -one.sine / two.sine, d2);
        double k1 = sign * one.sine, k2 = sign * two.sine;
        return {plus(plus(x[0], 1, s1), 1, s2), plus(m1, k1, n1, 1), plus(m2, k2, n2, 1), plus(m2, -k2, n2, 1), plus(m1, -k1, n1, 1)};
    }

    std::vector<Waiting> composite(const std::vector<Waiting> &x) const {
        size_t n = x.size(), a = 0;
        for (size_t r : {4, 2, 3, 5})
            if (a == 0 && n % r == 0) a = r;
        require(a != 0, "a butterfly has the prime factors 2, 3 and 5");
        size_t b = n / a;
        std::vector<std::vector<Waiting>> inner(b);
        for (size_t j = 0; j < b; j++) {
            std::vector<Waiting> column;
            for (size_t i = 0; i < a; i++) column.push_back(x[i * b + j]);
            inner[j] = of(column);
        }
        std::vector<Waiting> result(n);
        for (size_t k = 0; k < a; k++) {
            std::vector<Waiting> row;
            for (size_t j = 0; j < b; j++) row.push_back(turned(inner[j][k], sign * static_cast<int64_t>(j * k), static_cast<int64_t>(n)));
            std::vector<Waiting> outer = of(row);
            for (size_t i = 0; i < b; i++) result[k + a * i] = outer[i];
        }
        return result;
    }
};

}  // namespace

std::vector<Complex> butterfly(const std::vector<Complex> &x, FourierSign sign) {
    std::vector<Waiting> values;
    for (const Complex &c : x) values.push_back({c.re, c.im});
    std::vector<Complex> result;
    for (const Waiting &w : Butterfly(sign).of(values)) {
        require(w.factor == 1 && w.quarter == 0, "the first value of a butterfly waits for nothing");
        result.push_back({w.re, w.im});
    }
    return result;
}

}  // namespace tessera
