// Operators that work element by element, with NumPy's broadcasting.
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

using Tiles = std::vector<Tile>;

template <class Make>
std::vector<Value> of_one(Context &c, Make make) {
    return c.element_wise({c.in(0)}, c.in(0).dtype, [&](const Tiles &t) { return make(t[0]); });
}
template <class Make>
std::vector<Value> of_two(Context &c, Make make) {
    return c.element_wise({c.in(0), c.in(1)}, c.in(0).dtype, [&](const Tiles &t) { return make(t[0], t[1]); });
}
template <class Make>
std::vector<Value> compared(Context &c, Make make) {
    return c.element_wise({c.in(0), c.in(1)}, DType::boolean, [&](const Tiles &t) { return make(t[0], t[1]); });
}

// Integers round to zero, as C does.
Tile divided(const Tile &a, const Tile &b) {
    if (is_float(a.dtype())) return a / b;
    const Tile down = a / b;
    return select((a % b) != 0.0 && ((a < 0.0) != (b < 0.0)), down + 1.0, down);
}

Tile remainder(Context &c, const Tile &a, const Tile &b) {
    if (c.node.integer("fmod", 0) == 0) return a % b;
    return is_float(a.dtype()) ? fmod(a, b) : a - divided(a, b) * b;
}

std::vector<Value> power(Context &c) {
    const Value &x = c.in(0), &y = c.in(1);
    if (y.is_constant() && y.constant->size() == 1 && is_float(x.dtype)) {
        const double exponent = y.constant->values()[0];
        if (exponent == std::trunc(exponent) && std::abs(exponent) <= 16)
            return of_one(c, [&](const Tile &t) { return pow(t, static_cast<int>(exponent)); });
    }
    return of_two(c, [&](const Tile &a, const Tile &b) {
        if (is_float(a.dtype())) return pow(a, cast(a.dtype(), b));
        return cast(a.dtype(), round(pow(cast(DType::f64, a), cast(DType::f64, b))));
    });
}

template <class Combine>
std::vector<Value> of_all(Context &c, Combine combine) {
    std::vector<Value> values;
    for (size_t i = 0; i < c.inputs(); i++) values.push_back(c.in(i));
    return c.element_wise(values, c.in(0).dtype, [&](const Tiles &t) {
        Tile all = t[0];
        for (size_t i = 1; i < t.size(); i++) all = combine(all, t[i]);
        return all;
    });
}

std::vector<Value> mean_of_all(Context &c) {
    const double part = 1.0 / static_cast<double>(c.inputs());
    std::vector<Value> sum = of_all(c, [](const Tile &a, const Tile &b) { return a + b; });
    sum[0].tile = sum[0].tile * part;
    return sum;
}

Tile sign(const Tile &x) {
    const Tile one = x.builder().scalar(x.dtype(), 1), zero = x.builder().scalar(x.dtype(), 0);
    const Tile known = select(x > 0.0, one, select(x < 0.0, zero - one, zero));
    return is_float(x.dtype()) ? select(x == x, known, x) : known;
}

std::vector<Value> clip(Context &c) {
    std::vector<Value> values = {c.in(0)};
    const bool has_low = c.has(1) || c.node.find("min"), has_high = c.has(2) || c.node.find("max");
    if (c.has(1)) values.push_back(c.in(1));
    if (c.has(2)) values.push_back(c.in(2));
    return c.element_wise(values, c.in(0).dtype, [&](const Tiles &t) {
        Tile x = t[0];
        size_t next = 1;
        if (c.has(1)) x = max(x, t[next++]);
        else if (has_low) x = max(x, c.node.real("min", 0));
        if (c.has(2)) x = min(x, t[next]);
        else if (has_high) x = min(x, c.node.real("max", 0));
        return x;
    });
}

// 1 where it is true.
Tile truth(const Tile &x) { return x.dtype() == DType::boolean ? x : x != 0.0; }

Tile converted(Context &c, const Tile &x, DType to) {
    const DType type = computed_as(to);
    if (to == DType::boolean) return truth(x);
    const bool saturates = is_coded_float(to) && c.node.integer("saturate", 1) != 0;
    if (x.dtype() == DType::boolean) return cast(type, cast(DType::i32, x));
    if (is_float(x.dtype()) && !is_float(to)) return cast(type, trunc(x));
    if (to != type) return cast(type, cast(to, x, Rounding::nearest_even, saturates));
    return cast(type, x);
}

std::vector<Value> cast_to(Context &c, DType to) {
    if (!is_float(to) && !is_arithmetic(to) && is_float(c.in(0).dtype))  // to a narrow integer, by way of a wide one
        return c.element_wise({c.in(0)}, to, [&](const Tiles &t) { return cast(DType::i32, trunc(t[0])); });
    return c.element_wise({c.in(0)}, to, [&](const Tiles &t) { return converted(c, t[0], to); });
}

// The power of two that ONNX makes of a number for float8e8m0, by its bits alone: the sign is lost, 0 is the least one, and what is no
// number or infinite is NaN. Nearest rounds a half up, but down to the least.
Tile power_of_two(Context &c, const Tile &x, const std::string &rounding, bool saturates) {
    const Tile bits = bitcast(DType::i32, x);
    const Tile exponent = bits >> 23.0 && 255.0, fraction = bits && static_cast<double>(0x7fffff);
    const double half = 0x400000;
    Tile up = fraction > 0.0;
    if (rounding == "down") up = fraction < 0.0;
    if (rounding == "nearest") up = fraction > half || (fraction == half && exponent > 0.0);
    if (saturates) up = up && exponent != 254.0;
    const Tile rounded = exponent + cast(DType::i32, up);
    const Tile power = select(rounded == 0.0, c.f.scalar(DType::i32, half), rounded << 23.0);
    return select(exponent == 255.0 || rounded == 255.0, c.f.scalar(DType::f32, NAN), bitcast(DType::f32, power));
}

std::vector<Value> bitcast_handler(Context &c) {
    const auto number = static_cast<int32_t>(c.node.integer("to"));
    const std::optional<DType> to = dtype_of(number);
    if (!to) c.refuse("it makes " + type_name(number) + ", which Tessera does not have.", "Keep the first type.", "onnx.type");
    const DType from = c.in(0).dtype;
    if (*to == from) return {c.in(0)};
    const DTypeTraits own = traits_of(from), made = traits_of(*to);
    const auto is_byte = [](const DTypeTraits &t) { return t.kind != DTypeKind::real && t.bytes == 1 && !t.in_half_bytes; };
    const bool bytes = is_byte(own) && is_byte(made), wide = is_arithmetic(from) && is_arithmetic(*to) && own.bytes == made.bytes;
    if (!bytes && (!wide || is_byte(own)))
        c.refuse(std::string("it takes the bits of ") + name_of(from) + " for those of " + name_of(*to) + ".",
                 "Types of 4 or 8 bytes can be exchanged, and integers of one.", "onnx.type");
    // A byte that is not 0 is true, as ONNX stores truths.
    return c.element_wise({c.in(0)}, *to, [&](const Tiles &t) {
        if (*to == DType::boolean) return truth(t[0]);
        return bytes ? (from == DType::boolean ? cast(DType::i32, t[0]) : t[0]) : bitcast(*to, t[0]);
    });
}

std::vector<Value> cast_handler(Context &c) {
    const auto number = static_cast<int32_t>(c.node.integer("to"));
    const std::optional<DType> to = dtype_of(number);
    if (to == DType::f8e8m0fnu) {
        const std::string rounding = c.node.text("round_mode", "up");
        if (rounding != "up" && rounding != "down" && rounding != "nearest")
            c.refuse("its round_mode is '" + rounding + "'; expected up, down or nearest.", "Check the exporter.");
        const bool saturates = c.node.integer("saturate", 1) != 0;
        return c.element_wise({c.in(0)}, *to, [&](const Tiles &t) { return power_of_two(c, cast(DType::f32, t[0]), rounding, saturates); });
    }
    if (!to) c.refuse("it casts to " + type_name(number) + ", which Tessera does not have.", "Cast to another type.", "onnx.type");
    return cast_to(c, *to);
}

std::vector<Value> binarizer(Context &c) {
    const double threshold = c.node.real("threshold", 0);
    return of_one(c, [&](const Tile &x) { return select(x > threshold, c.f.scalar(x.dtype(), 1), c.f.scalar(x.dtype(), 0)); });
}

std::vector<Value> where(Context &c) {
    return c.element_wise({c.in(1), c.in(2), c.in(0)}, c.in(1).dtype, [](const Tiles &t) { return select(truth(t[2]), t[0], t[1]); });
}

Tile leaky(const Tile &x, double slope) { return select(x < 0.0, x * slope, x); }
Tile hard_sigmoid(const Tile &x, double alpha, double beta) { return max(min(x * alpha + beta, 1.0), 0.0); }

std::vector<Value> gelu_handler(Context &c) {
    const bool tanh_form = c.node.text("approximate", "none") == "tanh";
    return of_one(c, [&](const Tile &x) { return tanh_form ? gelu_tanh(x) : gelu(x); });
}

// onnxruntime's: of x, or of x and a bias.
std::vector<Value> biased_gelu(Context &c, bool tanh_form) {
    auto made = [&](const Tile &x) { return tanh_form ? gelu_tanh(x) : gelu(x); };
    if (!c.has(1)) return of_one(c, made);
    return of_two(c, [&](const Tile &x, const Tile &bias) { return made(x + bias); });
}

std::vector<Value> is_infinite(Context &c) {
    const bool positive = c.node.integer("detect_positive", 1) != 0, negative = c.node.integer("detect_negative", 1) != 0;
    return c.element_wise({c.in(0)}, DType::boolean, [&](const Tiles &t) {
        const Tile infinity(&c.f, tessera::constant(t[0].dtype(), INFINITY), {}),
            minus(&c.f, tessera::constant(t[0].dtype(), -INFINITY), {});
        const Tile no(&c.f, constant_int(DType::boolean, 0), {});
        return (positive ? t[0] == infinity : no) || (negative ? t[0] == minus : no);
    });
}

// Counts outside of the type's bits shift everything out: zeros, or the sign to the right.
std::vector<Value> shift(Context &c) {
    const bool left = c.node.text("direction", "LEFT") == "LEFT";
    const int bits = 8 * traits_of(c.in(0).dtype).bytes;
    return of_two(c, [&](const Tile &a, const Tile &b) {
        const Tile zero = c.f.scalar(a.dtype(), 0), sign = select(a < 0.0, zero - 1.0, zero);
        const Tile legal = b >= 0.0 && b < static_cast<double>(bits);
        const Tile count = select(legal, b, zero);
        return select(legal, left ? a << count : a >> count, left ? zero : sign);
    });
}

// e^a / 2 without e^a, which overflows before its half does.
Tile half_exp(const Tile &a) {
    const Tile root = exp(a * 0.5);
    return root * 0.5 * root;
}

// By e^x - 1, which is exact near 0; of large ones e^-x is nothing.
Tile hyperbolic_sine(const Tile &x) {
    const Tile a = abs(x), e = expm1(a), made = select(a > 40.0, half_exp(a), (e + e / (e + 1.0)) * 0.5);
    return select(x < 0.0, -made, made);
}

Tile hyperbolic_cosine(const Tile &x) {
    const Tile a = abs(x), half = half_exp(a);
    return half + 0.25 / half;
}

// log(2a) is what the inverse of either is of a large a, whose square overflows.
Tile log_of_twice(const Tile &a) { return log(a) + std::log(2.0); }
constexpr double large = 1e9;  // 1 is nothing beside its square

Tile inverse_hyperbolic_sine(const Tile &x) {
    const Tile a = abs(x), made = select(a > large, log_of_twice(a), log1p(a + a * a / (1.0 + sqrt(a * a + 1.0))));
    return select(x < 0.0, -made, made);
}

Tile inverse_hyperbolic_cosine(const Tile &x) {
    return select(x > large, log_of_twice(x), log1p((x - 1.0) + sqrt(x - 1.0) * sqrt(x + 1.0)));
}

Tile zero_like(const Tile &x) { return x.builder().scalar(x.dtype(), 0); }

std::vector<Value> same(Context &c) { return {c.in(0)}; }

std::vector<Value> dropout(Context &c) {
    if (c.has(2)) {
        const std::vector<int64_t> training = c.numbers(2, "training_mode");
        if (!training.empty() && training[0] && !(c.has(1) && c.reals(1, "ratio")[0] == 0))
            c.refuse("it drops out, in training mode.", "Export the model for inference.");
    }
    Value mask =
        c.element_wise({c.in(0)}, DType::boolean, [&](const Tiles &) { return Tile(&c.f, constant_int(DType::boolean, 1), {}); })[0];
    return {c.in(0), mask};
}

}  // namespace

std::vector<Operator> arithmetic_operators() {
    return {
        {"Add", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a + b; }); }},
        {"Sub", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a - b; }); }},
        {"Mul", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a * b; }); }},
        {"Div", [](Context &c) { return of_two(c, divided); }},
        {"Mod", [](Context &c) { return of_two(c, [&](const Tile &a, const Tile &b) { return remainder(c, a, b); }); }},
        {"Pow", power},
        {"Neg", [](Context &c) { return of_one(c, [](const Tile &x) { return -x; }); }},
        {"Abs", [](Context &c) { return of_one(c, [](const Tile &x) { return abs(x); }); }},
        {"Sqrt", [](Context &c) { return of_one(c, [](const Tile &x) { return sqrt(x); }); }},
        {"Reciprocal", [](Context &c) { return of_one(c, [](const Tile &x) { return 1.0 / x; }); }},
        {"Exp", [](Context &c) { return of_one(c, [](const Tile &x) { return exp(x); }); }},
        {"Log", [](Context &c) { return of_one(c, [](const Tile &x) { return log(x); }); }},
        {"Sin", [](Context &c) { return of_one(c, [](const Tile &x) { return sin(x); }); }},
        {"Cos", [](Context &c) { return of_one(c, [](const Tile &x) { return cos(x); }); }},
        {"Tan", [](Context &c) { return of_one(c, [](const Tile &x) { return sin(x) / cos(x); }); }},
        {"Asin", [](Context &c) { return of_one(c, [](const Tile &x) { return atan2(x, sqrt((1.0 - x) * (1.0 + x))); }); }},
        {"Acos", [](Context &c) { return of_one(c, [](const Tile &x) { return atan2(sqrt((1.0 - x) * (1.0 + x)), x); }); }},
        {"Sinh", [](Context &c) { return of_one(c, hyperbolic_sine); }},
        {"Cosh", [](Context &c) { return of_one(c, hyperbolic_cosine); }},
        {"Asinh", [](Context &c) { return of_one(c, inverse_hyperbolic_sine); }},
        {"Acosh", [](Context &c) { return of_one(c, inverse_hyperbolic_cosine); }},
        {"Atanh", [](Context &c) { return of_one(c, [](const Tile &x) { return 0.5 * log1p(2.0 * x / (1.0 - x)); }); }},
        {"Atan", [](Context &c) { return of_one(c, [](const Tile &x) { return atan(x); }); }},
        {"Erf", [](Context &c) { return of_one(c, [](const Tile &x) { return erf(x); }); }},
        {"Tanh", [](Context &c) { return of_one(c, [](const Tile &x) { return tanh(x); }); }},
        {"Sigmoid", [](Context &c) { return of_one(c, [](const Tile &x) { return sigmoid(x); }); }},
        {"Softplus", [](Context &c) { return of_one(c, [](const Tile &x) { return softplus(x); }); }},
        {"Softsign", [](Context &c) { return of_one(c, [](const Tile &x) { return x / (abs(x) + 1.0); }); }},
        {"Floor", [](Context &c) { return of_one(c, [](const Tile &x) { return floor(x); }); }},
        {"Ceil", [](Context &c) { return of_one(c, [](const Tile &x) { return ceil(x); }); }},
        {"Round", [](Context &c) { return of_one(c, [](const Tile &x) { return round(x); }); }},
        {"Sign", [](Context &c) { return of_one(c, sign); }},
        {"Relu", [](Context &c) { return of_one(c, [](const Tile &x) { return max(x, 0.0); }); }},
        {"LeakyRelu", [](Context &c) { return of_one(c, [&](const Tile &x) { return leaky(x, c.node.real("alpha", 0.01)); }); }},
        {"PRelu", [](Context &c) { return of_two(c, [](const Tile &x, const Tile &s) { return select(x < 0.0, x * s, x); }); }},
        {"ThresholdedRelu",
         [](Context &c) { return of_one(c, [&](const Tile &x) { return select(x > c.node.real("alpha", 1), x, zero_like(x)); }); }},
        {"Elu",
         [](Context &c) { return of_one(c, [&](const Tile &x) { return select(x < 0.0, expm1(x) * c.node.real("alpha", 1), x); }); }},
        {"Celu",
         [](Context &c) {
             const double alpha = c.node.real("alpha", 1);
             return of_one(c, [&](const Tile &x) { return max(x, 0.0) + min(expm1(x * (1 / alpha)) * alpha, 0.0); });
         }},
        {"Selu",
         [](Context &c) {
             const double alpha = c.node.real("alpha", 1.67326319217681884765625), gamma = c.node.real("gamma", 1.05070102214813232421875);
             return of_one(c, [&](const Tile &x) { return select(x > 0.0, x, expm1(x) * alpha) * gamma; });
         }},
        {"HardSigmoid",
         [](Context &c) {
             return of_one(c, [&](const Tile &x) { return hard_sigmoid(x, c.node.real("alpha", 0.2), c.node.real("beta", 0.5)); });
         }},
        {"HardSwish", [](Context &c) { return of_one(c, [](const Tile &x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); }); }},
        {"Mish", [](Context &c) { return of_one(c, [](const Tile &x) { return x * tanh(softplus(x)); }); }},
        {"Swish", [](Context &c) { return of_one(c, [&](const Tile &x) { return x * sigmoid(x * c.node.real("alpha", 1)); }); }},
        {"SwiGLU",
         [](Context &c) { return of_two(c, [&](const Tile &a, const Tile &b) { return a * sigmoid(a * c.node.real("alpha", 1)) * b; }); }},
        {"Shrink",
         [](Context &c) {
             const double lambda = c.node.real("lambd", 0.5), bias = c.node.real("bias", 0);
             return of_one(c, [&](const Tile &x) { return select(x < -lambda, x + bias, select(x > lambda, x - bias, zero_like(x))); });
         }},
        {"Gelu", gelu_handler},
        {"Gelu", [](Context &c) { return biased_gelu(c, false); }, "com.microsoft"},
        {"BiasGelu", [](Context &c) { return biased_gelu(c, false); }, "com.microsoft"},
        {"FastGelu", [](Context &c) { return biased_gelu(c, true); }, "com.microsoft"},
        {"QuickGelu", [](Context &c) { return of_one(c, [&](const Tile &x) { return x * sigmoid(x * c.node.real("alpha", 1.702)); }); },
         "com.microsoft"},
        {"Clip", clip},
        {"Min", [](Context &c) { return of_all(c, [](const Tile &a, const Tile &b) { return min(a, b); }); }},
        {"Max", [](Context &c) { return of_all(c, [](const Tile &a, const Tile &b) { return max(a, b); }); }},
        {"Sum", [](Context &c) { return of_all(c, [](const Tile &a, const Tile &b) { return a + b; }); }},
        {"Mean", mean_of_all},
        {"Equal", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a == b; }); }},
        {"Less", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a < b; }); }},
        {"LessOrEqual", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a <= b; }); }},
        {"Greater", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a > b; }); }},
        {"GreaterOrEqual", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a >= b; }); }},
        {"And", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a && b; }); }},
        {"Or", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a || b; }); }},
        {"Xor", [](Context &c) { return compared(c, [](const Tile &a, const Tile &b) { return a != b; }); }},
        {"Not", [](Context &c) { return of_one(c, [](const Tile &x) { return !x; }); }},
        {"BitwiseAnd", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a && b; }); }},
        {"BitwiseOr", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a || b; }); }},
        {"BitwiseXor", [](Context &c) { return of_two(c, [](const Tile &a, const Tile &b) { return a ^ b; }); }},
        {"BitwiseNot", [](Context &c) { return of_one(c, [](const Tile &x) { return -1.0 - x; }); }},
        {"BitShift", shift},
        {"IsNaN", [](Context &c) { return c.element_wise({c.in(0)}, DType::boolean, [](const Tiles &t) { return t[0] != t[0]; }); }},
        {"IsInf", is_infinite},
        {"Where", where},
        {"Cast", cast_handler},
        {"BitCast", bitcast_handler},
        {"CastLike", [](Context &c) { return cast_to(c, c.in(1).dtype); }},
        {"Identity", same},
        {"Dropout", dropout},
        {"Binarizer", binarizer, "ai.onnx.ml"},
    };
}

}  // namespace tessera::onnx
