// The bound of one operation's result, from those of its operands.
//
// Bounds are sums of products of at most eight operations on numbers that are not negative. Rounded to nearest, each loses at most 2^-53 of
// its result or, where that underflows, less than 2^-1074; raised() adds 2^-49 of the sum and several times that, so a bound is never
// below what real arithmetic would make of the same operands.
#pragma once
#include <cmath>
#include <limits>

#include "algorithms/expr/scalar.h"
#include "compiler/interpret/real_interval.h"

namespace tessera {

// A value that was computed, and how far it may be from the exact one. Integers and truth values have such a distance too.
struct Approximate {
    double value = 0, error = 0;
    bool is_exact() const { return error == 0; }
    bool is_infinity() const { return std::isinf(value) && error == 0; }
    bool is_zero() const { return value == 0 && error == 0; }
    RealInterval interval() const {
        if (error == 0) return RealInterval::of(value);
        if (!(error < std::numeric_limits<double>::infinity()) || std::isnan(value)) return RealInterval::whole();
        return {step_down(value - error), step_up(value + error)};
    }
};

constexpr double unknown_error = std::numeric_limits<double>::infinity();

inline double raised(double bound) { return bound == 0 ? 0 : bound * (1 + 0x1p-49) + 0x1p-1070; }
// The error of a value, from any member of the interval that its exact one is in.
double distance(double value, const RealInterval &exact);
// What rounding to nearest loses at most where it gives `value`: half a unit in the last place of its float type; of subnormals, half of
// the least one.
double half_unit(DType type, double value);

// The error of the operation on floats, which gave `value`.
double float_error(Op op, DType type, double value, const Approximate &a, const Approximate &b, const Approximate &c);
// For the operation on integers, positions and truth values: unknown for those of bits, whose results do not go with their operands.
double integer_error(Op op, DType type, double value, const Approximate &a, const Approximate &b, const Approximate &c);
// The error of a comparison: 0 where it comes out the same for all exact values, otherwise 1.
double comparison_error(Op op, const Approximate &a, const Approximate &b);
// The error of one of two values, by a condition that may come out otherwise.
double choice_error(double value, const Approximate &a, const Approximate &b);
// The error of a conversion that gave `value`.
double conversion_error(DType from, DType to, Rounding rounding, bool saturate, double value, const Approximate &a);

}  // namespace tessera
