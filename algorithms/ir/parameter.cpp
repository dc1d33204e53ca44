#include "algorithms/ir/parameter.h"

#include <charconv>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

namespace {

Scalar lowest_of(DType type) {
    return is_float(type) ? Scalar::of_real(type, -highest_finite(traits_of(type))) : Scalar::of_integer(type, traits_of(type).lowest);
}

Scalar highest_of(DType type) {
    return is_float(type) ? Scalar::of_real(type, highest_finite(traits_of(type))) : Scalar::of_integer(type, traits_of(type).highest);
}

Scalar next_to(Scalar value, double toward) {
    if (value.type == DType::f64) value.real = std::nextafter(value.real, toward);
    else value.real = std::nextafter(static_cast<float>(value.real), static_cast<float>(toward));
    return value;
}

bool is_less(const Scalar &a, const Scalar &b) { return is_float(a.type) ? a.real < b.real : a.integer < b.integer; }

// The number of an end as one of the type; none where it is no such number.
std::optional<Scalar> number_of(DType type, const RangeNumber &number) {
    if (const auto *integer = std::get_if<int64_t>(&number)) {
        if (is_float(type)) return Scalar::of_real(type, static_cast<double>(*integer));
        if (*integer < traits_of(type).lowest || *integer > traits_of(type).highest) return std::nullopt;
        return Scalar::of_integer(type, *integer);
    }
    const double real = std::get<double>(number);
    if (is_float(type)) return Scalar::of_real(type, real);
    if (std::trunc(real) != real || std::fabs(real) >= 0x1p63) return std::nullopt;
    return number_of(type, static_cast<int64_t>(real));
}

}  // namespace

bool ParameterRange::has_least() const { return above || is_less(lowest_of(least.type), least); }
bool ParameterRange::has_most() const { return below || is_less(most, highest_of(most.type)); }

bool ParameterRange::contains(const Scalar &value) const {
    if (value.type != least.type) return false;
    if (is_float(value.type) && !std::isfinite(value.real)) return false;
    return !is_less(value, least) && !is_less(most, value) && !(above && !is_less(least, value)) && !(below && !is_less(value, most));
}

bool ParameterRange::contains(const ParameterRange &other) const {
    if (other.least.type != least.type || is_less(other.least, least) || is_less(most, other.most)) return false;
    const bool has_lower = above && !other.above && !is_less(least, other.least);
    const bool has_upper = below && !other.below && !is_less(other.most, most);
    return !has_lower && !has_upper;
}

Scalar ParameterRange::nearest(const Scalar &value) const {
    if (contains(value)) return value;
    if (is_less(value, least) || (above && !is_less(least, value))) return above ? next_to(least, INFINITY) : least;
    return below ? next_to(most, -INFINITY) : most;
}

LowerEnd above(LowerEnd least) {
    least.open = true;
    return least;
}

UpperEnd below(UpperEnd most) {
    most.open = true;
    return most;
}

ParameterRange parameter_range(const std::string &subject, DType type, const LowerEnd &least, const UpperEnd &most) {
    const auto fail = [&](const std::string &words) -> ParameterRange {
        throw UserError("algorithm.parameter-range", subject + ": " + words);
    };
    if (!is_arithmetic(type) || type == DType::boolean || type == DType::index)
        return fail(std::string("a range of values of type ") + name_of(type) + "; expected f32, f64, i32 or i64. Declare it without one.");
    const auto end_of = [&](const RangeNumber &number, const Scalar &otherwise, const char *which) {
        if (std::holds_alternative<std::monostate>(number)) return otherwise;
        const std::optional<Scalar> value = number_of(type, number);
        if (!value || (is_float(type) && !std::isfinite(value->real)))
            fail(std::string("the range's ") + which + " is no finite number of type " + name_of(type) + "; state one, or leave it out.");
        return *value;
    };
    const ParameterRange range = with_closed_integers(
        {end_of(least.number, lowest_of(type), "lower end"), end_of(most.number, highest_of(type), "upper end"), least.open, most.open});
    if (const std::string wrong = range_error(type, range); !wrong.empty()) fail(wrong);
    return range;
}

ParameterRange with_closed_integers(ParameterRange range) {
    const DType type = range.least.type;
    if (is_float(type)) return range;
    if (range.above && range.least.integer < INT64_MAX) range.least.integer++, range.above = false;
    if (range.below && range.most.integer > INT64_MIN) range.most.integer--, range.below = false;
    return range;
}

std::string range_error(DType type, const ParameterRange &range) {
    if (!is_arithmetic(type) || type == DType::boolean || type == DType::index)
        return std::string("a range of values of type ") + name_of(type) + "; expected f32, f64, i32 or i64.";
    if (range.least.type != type || range.most.type != type)
        return std::string("its range has ends of ") + name_of(range.least.type) + " and " + name_of(range.most.type) + "; expected " +
               name_of(type) + ".";
    if (is_float(type) && !(std::isfinite(range.least.real) && std::isfinite(range.most.real)))
        return "its range has an end that is no finite number; leave the end out.";
    if (!is_float(type) && (range.above || range.below)) return "its range has an open end of integers; state the integer beside it.";
    const bool some = range.contains(range.above ? next_to(range.least, INFINITY) : range.least);
    return some ? "" : "no value is " + to_string(range) + "; expected a lower end below the upper one.";
}

std::string value_text(const Scalar &value) {
    if (!is_float(value.type)) return std::to_string(value.integer);
    if (std::isnan(value.real)) return "nan";
    char digits[40];
    char *end = value.type == DType::f64 ? std::to_chars(digits, digits + sizeof digits, value.real).ptr
                                         : std::to_chars(digits, digits + sizeof digits, static_cast<float>(value.real)).ptr;
    return std::string(digits, end);
}

std::string to_string(const ParameterRange &range) {
    const bool least = range.has_least(), most = range.has_most();
    if (!least && !most) return is_float(range.least.type) ? "finite" : "any";
    std::string text = least ? (range.above ? "above " : "at least ") + value_text(range.least) : "";
    if (most) text += (least ? " and " : "") + std::string(range.below ? "below " : "at most ") + value_text(range.most);
    return text;
}

std::string to_string(const Parameter &parameter) {
    return parameter.name + ": " + name_of(parameter.dtype) + (parameter.range ? " " + to_string(*parameter.range) : "");
}

}  // namespace tessera
