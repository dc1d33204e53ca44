#include "compiler/interpret/operation_error.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

constexpr double least = 0x1p-1074;

// The product of bounds, which are not negative: 0 only where one of them is.
double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b + least; }

double highest_of(DType type) {
    // Beyond, doubles no longer hold integers one by one.
    return std::min(static_cast<double>(traits_of(type).highest), 0x1p52);
}

// What a sum of two doubles loses, exactly (Knuth's TwoSum).
double lost_by_sum(double a, double b) {
    const double sum = a + b, second = sum - a;
    return std::fabs((a - (sum - second)) + (b - second));
}

// What the operation lost by rounding to `v`. Of f32 it is seen in double, where products are exact; of f64 it is at most half a unit.
double rounded_away(Op op, DType type, double v, double a, double b, double c) {
    const double most = half_unit(type, v);
    if (type != DType::f32) return most;
    const double wide = real_value(op, a, b, c);
    double lost = std::fabs(wide) * 0x1p-52;
    if (op == Op::mul) lost = 0;
    if (op == Op::add) lost = lost_by_sum(a, b);
    if (op == Op::sub) lost = lost_by_sum(a, -b);
    if (op == Op::fma) lost = lost_by_sum(a * b, c);
    return std::min(most, std::fabs(wide - v) + lost);
}

}  // namespace

double distance(double value, const RealInterval &exact) {
    const double far = std::max(value - exact.lo, exact.hi - value);
    return std::isnan(far) ? unknown_error : raised(std::max(far, 0.0));
}

double half_unit(DType type, double value) {
    const DTypeTraits &t = traits_of(type);
    const int lowest = 1 - t.bias;  // the exponent of the least normal
    const int exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;
    const int power = std::max(exponent, lowest) - t.mantissa - 1;
    if (power < -1022) return least;  // half of the least subnormal double is none
    return std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52);
}

double float_error(Op op, DType type, double v, const Approximate &a, const Approximate &b, const Approximate &c) {
    const double size_a = std::fabs(a.value), size_b = std::fabs(b.value);
    const double product_error = product(size_a, b.error) + product(size_b, a.error) + product(a.error, b.error);
    if (!(std::max({a.error, b.error, c.error}) < unknown_error)) return unknown_error;
    // Infinities that are no overflow are exact.
    if (!std::isfinite(v)) {
        const bool finite_a = std::isfinite(a.value), finite_b = std::isfinite(b.value);
        if (std::isnan(v)) return unknown_error;
        switch (op) {
        case Op::neg:
        case Op::abs:
        case Op::floor:
        case Op::ceil:
        case Op::round:
        case Op::trunc:
        case Op::sqrt: return a.is_infinity() ? 0 : unknown_error;
        case Op::min:
        case Op::max: return (a.value == v && a.error == 0) || (b.value == v && b.error == 0) ? 0 : unknown_error;
        case Op::add:
        case Op::sub: return (a.is_infinity() || finite_a) && (b.is_infinity() || finite_b) && !(finite_a && finite_b) ? 0 : unknown_error;
        case Op::fma: return c.is_infinity() && finite_a && finite_b ? 0 : unknown_error;
        case Op::mul: return (a.is_infinity() && size_b > b.error) || (b.is_infinity() && size_a > a.error) ? 0 : unknown_error;
        default: return unknown_error;
        }
    }
    const double rounded = rounded_away(op, type, v, a.value, b.value, c.value);
    switch (op) {
    case Op::neg:
    case Op::abs: return a.error;
    case Op::min: {
        const RealInterval x = a.interval(), y = b.interval();
        return a.is_exact() && b.is_exact() ? 0 : distance(v, {std::min(x.lo, y.lo), std::min(x.hi, y.hi)});
    }
    case Op::max: {
        const RealInterval x = a.interval(), y = b.interval();
        return a.is_exact() && b.is_exact() ? 0 : distance(v, {std::max(x.lo, y.lo), std::max(x.hi, y.hi)});
    }
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: {  // they never fall
        if (a.is_exact()) return 0;
        const RealInterval x = a.interval();
        return distance(v, {real_value(op, x.lo, 0.0, 0.0), real_value(op, x.hi, 0.0, 0.0)});
    }
    case Op::add:
    case Op::sub: return raised(a.error + b.error + (a.is_zero() || b.is_zero() ? 0 : rounded));
    case Op::mul: return a.is_zero() || b.is_zero() ? 0 : raised(product_error + rounded);
    case Op::fma: return a.is_zero() || b.is_zero() ? c.error : raised(product_error + c.error + rounded);
    case Op::div: {
        if (b.is_infinity()) return std::isfinite(a.value) ? 0 : unknown_error;
        const double nearest = (size_b - b.error) * (1 - 0x1p-50);
        if (!(nearest > 0)) return unknown_error;
        return a.is_zero() ? 0 : raised((a.error + product(std::fabs(v) + rounded, b.error)) / nearest + rounded);
    }
    case Op::sqrt: {
        const RealInterval x = a.interval();
        if (x.lo < 0) return unknown_error;  // of what may be negative
        return a.is_zero() ? 0 : raised(a.error / (std::sqrt(a.value) + std::sqrt(x.lo)) + rounded);
    }
    case Op::logical_not:
    case Op::mod:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: break;
    }
    undefined_on(op, "floats");
}

double integer_error(Op op, DType type, double v, const Approximate &a, const Approximate &b, const Approximate &c) {
    if (a.is_exact() && b.is_exact() && c.is_exact()) return 0;
    const auto within = [&](double error) { return std::fabs(v) + error <= highest_of(type) ? raised(error) : unknown_error; };
    const double product_error = product(std::fabs(a.value), b.error) + product(std::fabs(b.value), a.error) + product(a.error, b.error);
    if (type == DType::boolean) {
        const auto decides = [&](bool which) {
            return (a.is_exact() && (a.value != 0) == which) || (b.is_exact() && (b.value != 0) == which);
        };
        if (op == Op::bit_and) return decides(false) ? 0 : 1;
        if (op == Op::bit_or) return decides(true) ? 0 : 1;
        return 1;
    }
    switch (op) {
    case Op::neg:
    case Op::abs: return within(a.error);
    case Op::add:
    case Op::sub: return within(a.error + b.error);
    case Op::mul: return within(product_error);
    case Op::fma: return within(product_error + c.error);
    case Op::min:
    case Op::max: return within(std::max(a.error, b.error));
    default: return unknown_error;
    }
}

double comparison_error(Op op, const Approximate &a, const Approximate &b) {
    if (a.is_exact() && b.is_exact()) return 0;
    const RealInterval x = a.interval(), y = b.interval();
    const bool below = x.hi < y.lo, above = y.hi < x.lo;
    if (op == Op::eq || op == Op::ne || below || above) return below || above ? 0 : 1;
    return op == Op::lt ? (y.hi <= x.lo ? 0 : 1) : (x.hi <= y.lo ? 0 : 1);
}

double choice_error(double value, const Approximate &a, const Approximate &b) {
    const double error = std::max(std::fabs(value - a.value) + a.error, std::fabs(value - b.value) + b.error);
    return std::isnan(error) ? unknown_error : raised(error);
}

static double whole_number(double x, Rounding rounding) {
    switch (rounding) {
    case Rounding::nearest_even: return std::nearbyint(x);
    case Rounding::toward_zero: return std::trunc(x);
    case Rounding::up: return std::ceil(x);
    case Rounding::down: return std::floor(x);
    }
    return x;
}

double conversion_error(DType from, DType to, Rounding rounding, bool saturate, double v, const Approximate &a) {
    if (!(a.error < unknown_error) || std::isnan(v)) return unknown_error;
    if (is_float(to)) {
        if (v == a.value) return a.error;
        // For floats the loss is seen. Integers of more than 53 bits are no doubles, and may be rounded in any direction, to a whole unit.
        const double lost = is_float(from) ? std::fabs(v - a.value) : 4 * half_unit(to, v);
        return std::isfinite(v) ? raised(a.error + lost) : unknown_error;
    }
    if (a.is_exact()) return 0;
    const RealInterval x = a.interval();
    const double lowest = to == DType::i64 ? -0x1p52 : static_cast<double>(traits_of(to).lowest), highest = highest_of(to);
    if (!saturate && !(lowest <= x.lo && x.hi <= highest)) return unknown_error;
    const auto converted = [&](double end) {
        const double whole = is_float(from) ? whole_number(end, rounding) : end;
        return std::clamp(whole, static_cast<double>(traits_of(to).lowest), static_cast<double>(traits_of(to).highest));
    };
    return distance(v, {converted(x.lo), converted(x.hi)});
}

}  // namespace tessera
