#include "algorithms/expr/number.h"

#include <cmath>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

bool holds(DType type, double value) {
    if (is_float(type)) {
        const double kept = Scalar::of_real(type, value).real;
        const bool was_clipped = traits_of(type).specials == Specials::none && std::abs(value) > highest_finite(traits_of(type));
        return std::isnan(kept) == std::isnan(value) && std::isinf(kept) == std::isinf(value) && !was_clipped;
    }
    if (value != std::floor(value) || value < -0x1p63 || value >= 0x1p63) return false;  // of NaN too
    return static_cast<double>(Scalar::of_integer(type, static_cast<int64_t>(value)).integer) == value;
}

static std::string number_text(double value) { return fmt::format("{}", value); }

// "whole numbers from -128 to 127".
static std::string held_by(DType type) {
    const DTypeTraits &traits = traits_of(type);
    if (is_float(type)) return "numbers up to " + number_text(highest_finite(traits));
    if (type == DType::boolean) return "0 and 1";
    if (type == DType::index || type == DType::i64) return "whole numbers of 64 bits";
    return "whole numbers from " + std::to_string(traits.lowest) + " to " + std::to_string(traits.highest);
}

static DType type_for(double value) {
    for (const DType type : {DType::i32, DType::i64, DType::f32})
        if (holds(type, value)) return type;
    return DType::f64;
}

Expr number(const std::string &subject, DType type, double value) {
    if (holds(type, value)) return constant(type, value);
    throw UserError("expr.number", subject + ": expected one that " + name_of(type) + " holds, " + held_by(type) + ", got " +
                                       number_text(value) + "; convert what it meets, as in cast(DType::" + name_of(type_for(value)) +
                                       ", x), or write another number.");
}

Expr constant(DType type, double value) {
    const bool fills = value == 0;  // what nobody reads: types without a zero have something for it
    if (!fills && !holds(type, value)) return number("a constant", type, value);  // says why
    return constant(is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value)));
}

}  // namespace tessera
