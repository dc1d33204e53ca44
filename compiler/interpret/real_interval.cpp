#include "compiler/interpret/real_interval.h"

#include <algorithm>

namespace tessera {

double step_down(double value) { return std::nextafter(value, -std::numeric_limits<double>::infinity()); }
double step_up(double value) { return std::nextafter(value, std::numeric_limits<double>::infinity()); }

// An end that is no number comes of infinities and says nothing.
static RealInterval outwards(double lo, double hi) {
    const RealInterval all = RealInterval::whole();
    return {std::isnan(lo) ? all.lo : step_down(lo), std::isnan(hi) ? all.hi : step_up(hi)};
}

// Results of operands that are not negative are not negative.
static RealInterval not_negative(RealInterval a, RealInterval b, RealInterval result) {
    if (a.lo >= 0 && b.lo >= 0) result.lo = std::max(result.lo, 0.0);
    return result;
}

RealInterval operator-(RealInterval a) { return {-a.hi, -a.lo}; }
RealInterval operator+(RealInterval a, RealInterval b) { return not_negative(a, b, outwards(a.lo + b.lo, a.hi + b.hi)); }
RealInterval operator-(RealInterval a, RealInterval b) { return outwards(a.lo - b.hi, a.hi - b.lo); }

RealInterval operator*(RealInterval a, RealInterval b) {
    auto product = [](double x, double y) { return x == 0 || y == 0 ? 0 : x * y; };
    const auto [lo, hi] = std::minmax({product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)});
    return a.is_point() && a.lo == 0 ? a : b.is_point() && b.lo == 0 ? b : not_negative(a, b, outwards(lo, hi));
}

RealInterval operator/(RealInterval a, RealInterval b) {
    if (b.contains(0)) return RealInterval::whole();
    return a * outwards(1 / b.hi, 1 / b.lo);
}

RealInterval square_root(RealInterval a) {
    if (a.hi < 0) return RealInterval::whole();
    const RealInterval root = outwards(std::sqrt(std::max(a.lo, 0.0)), std::sqrt(a.hi));
    return {std::max(root.lo, 0.0), root.hi};
}

RealInterval absolute(RealInterval a) {
    if (a.lo >= 0) return a;
    return a.hi <= 0 ? -a : RealInterval{0, a.magnitude()};
}

RealInterval hull(RealInterval a, RealInterval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

RealInterval common(RealInterval a, RealInterval b) {
    const RealInterval both = {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
    return both.lo <= both.hi ? both : a;
}

}  // namespace tessera
