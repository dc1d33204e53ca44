// Conversions between types, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera::emit_c {

// Between f32 and the halves in integer code, for scalars and vectors alike: the same on every target. Vectors of f16 are widened by F16C
// where there is, which gives the same.
std::string Operations::half(DType to, DType from, int lanes) {
    const bool widens = to == DType::f32;
    require(widens ? is_narrow_float(from) : from == DType::f32 && is_narrow_float(to), "between f32 and a float that is only stored");
    const std::string f32 = type({DType::f32, lanes}), u16 = type({DType::bf16, lanes}), u32 = unsigned_type({DType::i32, lanes});
    const std::string name = short_name({to, 0}) + "_of_" + short_name({from, lanes});
    if (!fresh(name)) return name;
    if (!lanes && fresh("bits_of_f32")) {
        define("uint32_t", "bits_of_f32", "float x",
               "    uint32_t bits;\n    __builtin_memcpy(&bits, &x, sizeof bits);\n    return bits;\n", false);
        define("float", "f32_of_bits", "uint32_t bits", "    float x;\n    __builtin_memcpy(&x, &bits, sizeof x);\n    return x;\n", false);
    }
    if (lanes && fresh("choose_" + u32)) {
        define(u32, "choose_" + u32, fmt::format("{0} m, {0} a, {0} b", u32), "    return (m & a) | (~m & b);\n", true);
    }
    auto bits = [&](const std::string &x) { return lanes ? fmt::format("({}){}", u32, x) : "bits_of_f32(" + x + ")"; };
    auto real = [&](const std::string &x) { return lanes ? fmt::format("({})({})", f32, x) : "f32_of_bits(" + x + ")"; };
    auto wide = [&](const std::string &x) { return lanes ? fmt::format("__builtin_convertvector({}, {})", x, u32) : "(uint32_t)" + x; };
    auto narrow = [&](const std::string &x) {
        return lanes ? fmt::format("__builtin_convertvector({}, {})", x, u16) : "(uint16_t)(" + x + ")";
    };
    auto choose = [&](const std::string &c, const std::string &a, const std::string &b) {
        return lanes ? fmt::format("choose_{0}(({0})({1}), {2}, {3})", u32, c, a, b) : fmt::format("({} ? {} : {})", c, a, b);
    };
    const bool machine = lanes > 0;
    const DType narrow_type = widens ? from : to;
    if (narrow_type == DType::bf16) {
        if (widens) {
            define(f32, name, u16 + " x", fmt::format("    return {};\n", real(wide("x") + " << 16")), machine);
            return name;
        }
        define(u16, name, f32 + " x",
               fmt::format("    const {0} bits = {1};\n    const {0} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, quiet = (bits "
                           ">> 16) | 0x40u;\n    return {2};\n",
                           u32, bits("x"), narrow(choose("(bits & 0x7fffffffu) > 0x7f800000u", "quiet", "rounded"))),
               machine);
    } else {
        require(narrow_type == DType::f16, "a float that is only stored, and how it is made");
        if (!widens) {
            define(u16, name, f32 + " x",
                   fmt::format(
                       "    const {0} bits = {1};\n    const {0} sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;\n"
                       "    const {0} normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;\n"
                       "    const {2} moved = {3};\n    const {2} shifted = moved + 0.5f; /* leaves a subnormal's bits, rounded by the "
                       "addition, "
                       "at the bottom of the mantissa */\n"
                       "    const {0} subnormal = {4} - 0x3f000000u;\n    const {0} finite = {5};\n    const {0} large = {6};\n    return "
                       "{7};\n",
                       u32, bits("x"), f32, real("magnitude"), bits("shifted"), choose("magnitude < (113u << 23)", "subnormal", "normal"),
                       choose("magnitude >= 0x477ff000u", lanes ? fmt::format("(({}){{0}} + 0x7c00u)", u32) : "0x7c00u", "finite"),
                       narrow(choose("magnitude > 0x7f800000u", lanes ? fmt::format("(({}){{0}} + 0x7e00u)", u32) : "0x7e00u", "large") +
                              " | sign")),
                   machine);
            return name;
        }
        std::string body = fmt::format(
            "    const {0} wide = {1};\n    const {0} magnitude = (wide & 0x7fffu) << 13, sign = (wide & 0x8000u) << 16;\n"
            "    const {2} moved = {3}; /* 2^112 moves the exponent's bias and makes subnormals normal; it is exact */\n    const {2} "
            "scaled = moved * 0x1p112f;\n    return {4};\n",
            u32, wide("x"), f32, real("magnitude"),
            real(choose("(wide & 0x7c00u) == 0x7c00u", "(magnitude | 0x7f800000u)", bits("scaled")) + " | sign"));
        const bool fits = (lanes == 8 && target_.has("f16c")) || (lanes == 16 && target_.has("avx512f"));
        if (fits)
            body = fmt::format("#ifdef TESS_X86_64\n    return ({})_mm{}_cvtph_ps((__m{}i)x);\n#else\n{}#endif\n", f32, 32 * lanes,
                               16 * lanes, body);
        define(f32, name, u16 + " x", body, machine);
    }
    return name;
}

struct IntegerRange {
    const char *lowest, *highest;
};

static IntegerRange range_of(DType t) {
    switch (held_as(t)) {
    case Held::i8: return {"INT8_MIN", "INT8_MAX"};
    case Held::u8: return {"0", "UINT8_MAX"};
    case Held::i32: return {"INT32_MIN", "INT32_MAX"};
    case Held::i64:
    case Held::position: return {"INT64_MIN", "INT64_MAX"};
    case Held::f32:
    case Held::f64:
    case Held::half:
    case Held::truth: break;
    }
    throw InternalError("a range of integers");
}

// A scalar conversion that is more than a cast of C's.
std::string Operations::convert_scalar(DType to, DType from, Rounding rounding, bool saturate) {
    const bool to_integer = !is_float(to), modes = to_integer && from != DType::index;
    const std::string name = short_name({to, 0}) + "_of_" + short_name({from, 0}) +
                             (modes && is_float(from) && rounding == Rounding::toward_zero ? "_truncated" : "") +
                             (modes && saturate ? "_saturated" : "");
    const std::string result = c_element(to), operand = c_element(from);
    auto body = [&](const std::string &text) {
        if (fresh(name)) define(result, name, operand + " x", text, false);
        return name;
    };
    if (is_narrow_float(from) && to == DType::f32) return half(DType::f32, from, 0);
    if (is_narrow_float(from)) {
        const std::string wide = half(DType::f32, from, 0), then = cast(to, {DType::f32, 0}, rounding, saturate);
        return body(fmt::format("    return {}({}(x));\n", then.empty() ? "(" + result + ")" : then, wide));
    }
    if (is_narrow_float(to)) {
        const std::string narrow = half(to, DType::f32, 0);
        if (from == DType::f32) return narrow;
        if (fresh("odd_f32_of_f64"))
            define("float", "odd_f32_of_f64", "double x",
                   "    /* a double on its way to a half must not round twice: to odd first */\n    const float near = (float)x;\n    "
                   "uint32_t bits = bits_of_f32(near);\n"
                   "    if ((double)near == x || x != x) return near;\n    if (__builtin_fabs((double)near) > __builtin_fabs(x)) bits -= "
                   "1;\n    return f32_of_bits(bits | 1u);\n",
                   false);
        return body(fmt::format("    return {}(odd_f32_of_f64({}));\n", narrow, from == DType::f64 ? "x" : "(double)x"));
    }
    if (!to_integer) return "";
    if (to == DType::index && is_float(from)) {
        const std::string narrow = convert_scalar(DType::i32, from, rounding, saturate);
        return body(fmt::format("    return {}(x);\n", narrow));
    }
    if (to == DType::index)
        return from == DType::i64 ? body("    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x;\n") : "";
    const IntegerRange range = range_of(to);
    if (!is_float(from)) {
        if (!saturate) return "";
        return body(fmt::format("    const int64_t wide = x;\n    return ({0})(wide < {1} ? {1} : wide > {2} ? {2} : wide);\n", result,
                                range.lowest, range.highest));
    }
    const bool wide = to == DType::i64;
    const std::string suffix = from == DType::f32 ? "f" : "";
    const std::string lo = to == DType::i8 ? "-128.0" : to == DType::u8 ? "0.0" : wide ? "-0x1p63" : "-0x1p31";
    // The largest value of the source format that fits.
    const std::string hi = to == DType::i8      ? "127.0"
                           : to == DType::u8    ? "255.0"
                           : from == DType::f32 ? (wide ? "0x1.fffffep62" : "0x1.fffffep30")
                           : wide               ? "0x1.fffffffffffffp62"
                                                : "2147483647.0";
    return body(
        fmt::format("    const {0} r = {1}(x);\n    if (r != r) return {2};\n    if (r < {3}{7}) return {4};\n    if (r > {5}{7}) return "
                    "{6};\n    return ({8})r;\n",
                    operand, scalar_builtin(rounding == Rounding::nearest_even ? Op::round : Op::trunc, from),
                    saturate ? "0" : range.lowest, lo, range.lowest, hi, saturate ? range.highest : range.lowest, suffix, result));
}

std::string Operations::cast(DType to, CType from, Rounding rounding, bool saturate) {
    if (!from.lanes) return convert_scalar(to, from.element, rounding, saturate);
    const CType result{to, from.lanes};
    if (is_narrow_float(from.element) && to == DType::f32) return half(DType::f32, from.element, from.lanes);
    if (from.element == DType::f32 && is_narrow_float(to)) return half(to, DType::f32, from.lanes);
    const std::string scalar = convert_scalar(to, from.element, rounding, saturate);
    const std::string name =
        (scalar.empty() ? short_name({to, 0}) + "_of_" + short_name({from.element, 0}) : scalar) + "x" + std::to_string(from.lanes);
    if (!fresh(name)) return name;
    const std::string t = type(result), operand = type(from);
    if (scalar.empty()) define(t, name, operand + " x", fmt::format("    return __builtin_convertvector(x, {});\n", t), true);
    else define(t, name, operand + " x", each_lane(result, scalar + "(x[i])"), true);
    return name;
}

}  // namespace tessera::emit_c
