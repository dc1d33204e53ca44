// Intervals of real numbers whose ends are doubles: an operation's result contains every real result of the operands' members. Each end is
// rounded outwards by a step to the next double, which is more than the half that rounding to nearest may lose.
#pragma once
#include <cmath>
#include <limits>

namespace tessera {

// lo <= hi; an end may be infinite. All reals are whole(): what is known of a value that nothing is known of.
struct RealInterval {
    double lo = 0, hi = 0;

    static RealInterval whole() { return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}; }
    static RealInterval of(double value) { return std::isnan(value) ? whole() : RealInterval{value, value}; }
    bool is_point() const { return lo == hi; }
    bool is_bounded() const { return std::isfinite(lo) && std::isfinite(hi); }
    bool contains(double value) const { return lo <= value && value <= hi; }
    double magnitude() const { return std::fmax(std::fabs(lo), std::fabs(hi)); }
    double width() const { return hi - lo; }
};

double step_down(double value);
double step_up(double value);

RealInterval operator-(RealInterval a);
RealInterval operator+(RealInterval a, RealInterval b);
RealInterval operator-(RealInterval a, RealInterval b);
RealInterval operator*(RealInterval a, RealInterval b);  // 0 times what has no end is 0
RealInterval operator/(RealInterval a, RealInterval b);  // whole() where b may be 0
RealInterval square_root(RealInterval a);                // of what is not negative in it; whole() where all is
RealInterval absolute(RealInterval a);
RealInterval hull(RealInterval a, RealInterval b);
RealInterval common(RealInterval a, RealInterval b);  // of two that both hold the value; a where they do not meet

}  // namespace tessera
