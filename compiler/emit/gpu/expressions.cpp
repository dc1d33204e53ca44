#include "compiler/emit/gpu/expressions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera::emit_gpu {

enum { primary, prefix, product, sum, comparison, conditional, anything };

const char *value_type(DType type) {
    switch (held_as(type)) {
    case Held::f32: return "float";
    case Held::f64: return "double";
    case Held::half: return "ushort";
    case Held::i8: return "char";
    case Held::u8: return "uchar";
    case Held::i64: return "long";
    case Held::i32:
    case Held::position:
    case Held::truth: return "int";
    }
    throw InternalError("unknown dtype");
}

const char *stored_type(DType type) { return type == DType::boolean ? "uchar" : value_type(type); }

// Integers of data wrap around; floats are rounded once and never together; conversions are defined everywhere.
static const char *common = R"(
FN int add_i32(int a, int b) { return (int)((uint)a + (uint)b); }
FN int sub_i32(int a, int b) { return (int)((uint)a - (uint)b); }
FN int mul_i32(int a, int b) { return (int)((uint)a * (uint)b); }
FN int div_i32(int a, int b) { return b == 0 ? 0 : b == -1 ? sub_i32(0, a) : a / b - (a % b != 0 && (a < 0) != (b < 0)); }
FN int mod_i32(int a, int b) { return b == 0 || b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); }
FN int min_i32(int a, int b) { return a < b ? a : b; }
FN int max_i32(int a, int b) { return a > b ? a : b; }
FN int shl_i32(int a, int b) { return (int)((uint)a << (b & 31)); }
FN int shr_i32(int a, int b) { return a >> (b & 31); }
FN long add_i64(long a, long b) { return (long)((ulong)a + (ulong)b); }
FN long sub_i64(long a, long b) { return (long)((ulong)a - (ulong)b); }
FN long mul_i64(long a, long b) { return (long)((ulong)a * (ulong)b); }
FN long div_i64(long a, long b) { return b == 0 ? 0 : b == -1 ? sub_i64(0, a) : a / b - (a % b != 0 && (a < 0) != (b < 0)); }
FN long mod_i64(long a, long b) { return b == 0 || b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); }
FN long min_i64(long a, long b) { return a < b ? a : b; }
FN long max_i64(long a, long b) { return a > b ? a : b; }
FN long shl_i64(long a, long b) { return (long)((ulong)a << (b & 63)); }
FN long shr_i64(long a, long b) { return a >> (b & 63); }
FN long clamp_i64(long a, long lo, long hi) { return a < lo ? lo : a > hi ? hi : a; }
FN int bounded(long a, int lo, int hi) { return (int)max_i64(min_i64(a, (long)hi - 1), lo); }
FN long bounded_i64(long a, long lo, long hi) { return max_i64(min_i64(a, hi - 1), lo); }
FN float min_f32(float a, float b) { return b < a || b != b ? b : a; }
FN float max_f32(float a, float b) { return b > a || b != b ? b : a; }

/* A float that is a whole number as an integer between lo and hi, which are floats; outside: the lowest, or the nearest. */
FN long whole_f32(float r, float lo, float hi, long lowest, long highest, int saturate) {
    if (r != r) return saturate ? 0 : lowest;
    if (r < lo) return lowest;
    if (r > hi) return saturate ? highest : lowest;
    return (long)r;
}

/* Where an element lies in a buffer whose rows have their chunks in another order. */
FN int swizzled(int at, int columns, int chunk, int rows, int phase) {
    const uint row = (uint)at / (uint)columns, element = (uint)at % (uint)columns;
    return (int)(row * (uint)columns + (element / (uint)chunk ^ (row / (uint)phase & ((uint)rows - 1u))) * (uint)chunk +
                 element % (uint)chunk);
}
FN float f32_of_bf16(ushort x) { return as_float((int)((uint)x << 16)); }
FN ushort bf16_of_f32(float x) {
    const uint bits = (uint)as_int(x);
    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
FN float f32_of_f16(ushort x) {
    const uint magnitude = ((uint)x & 0x7fffu) << 13;
    const float scaled = as_float((int)magnitude) * 0x1p112f; /* moves the exponent's bias, and makes subnormals normal; exact */
    return as_float((int)((((uint)x & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : (uint)as_int(scaled)) | ((uint)x & 0x8000u) << 16));
}
FN ushort f16_of_f32(float x) {
    const uint bits = (uint)as_int(x), magnitude = bits & 0x7fffffffu;
    const uint normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    const uint subnormal = (uint)as_int(as_float((int)magnitude) + 0.5f) - 0x3f000000u; /* rounded by the addition */
    const uint finite = magnitude < (113u << 23) ? subnormal : normal;
    return (ushort)((magnitude > 0x7f800000u ? 0x7e00u : magnitude >= 0x477ff000u ? 0x7c00u : finite) | (bits >> 16 & 0x8000u));
}
)";

static const char *with_double = R"(
FN double min_f64(double a, double b) { return b < a || b != b ? b : a; }
FN double max_f64(double a, double b) { return b > a || b != b ? b : a; }
FN long whole_f64(double r, double lo, double hi, long lowest, long highest, int saturate) {
    if (r != r) return saturate ? 0 : lowest;
    if (r < lo) return lowest;
    if (r > hi) return saturate ? highest : lowest;
    return (long)r;
}
/* On its way to a narrower format a double must not be rounded twice: to odd first. */
FN float odd_f32(double x) {
    const float near = (float)x;
    if ((double)near == x || x != x) return near;
    return as_float((int)((uint)(as_int(near) - (fabs((double)near) > fabs(x))) | 1u));
}
)";

std::string definitions(bool cuda, bool uses_double) {
    std::string text =
        cuda ? "#define FN static __device__ __forceinline__\n#pragma nv_diag_suppress 177, 550 /* not every kernel needs every function "
               "*/\n"
               "typedef unsigned char uchar;\ntypedef unsigned short ushort;\ntypedef unsigned int uint;\ntypedef unsigned long ulong;\n"
               "#define as_int __float_as_int\n#define as_float __int_as_float\n#define as_long __double_as_longlong\n#define as_double "
               "__longlong_as_double\n"
             : "#pragma OPENCL FP_CONTRACT OFF\n#define FN static inline\n";
    if (uses_double && !cuda) text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    text += common;
    if (uses_double) text += with_double;
    return text;
}

std::string Expressions::inner(const Expr &e, int most) {
    Piece p = piece(e);
    return p.precedence > most ? "(" + p.text + ")" : p.text;
}

std::string Expressions::call(const std::string &function, const std::vector<Expr> &args) {
    std::string text;
    for (const Expr &e : args) text += (text.empty() ? "" : ", ") + inner(e, anything);
    return function + "(" + text + ")";
}

Expressions::Piece Expressions::infix(const Expr &a, const char *sign, const Expr &b, int precedence) {
    return {inner(a, precedence) + sign + inner(b, precedence - 1), precedence};
}

static std::string decimal(double v, bool narrow) {
    std::string text = narrow ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + (narrow ? "f" : "");
}

static std::string literal(const Scalar &s) {
    switch (held_as(s.type)) {
    case Held::f32:
        if (std::isnan(s.real)) return "as_float(0x7fc00000)";
        if (std::isinf(s.real)) return s.real < 0 ? "as_float((int)0xff800000u)" : "as_float(0x7f800000)";
        return decimal(s.real, true);
    case Held::f64:
        if (std::isnan(s.real)) return "as_double(0x7ff8000000000000L)";
        if (std::isinf(s.real)) return s.real < 0 ? "-as_double(0x7ff0000000000000L)" : "as_double(0x7ff0000000000000L)";
        return decimal(s.real, false);
    case Held::half: return fmt::format("0x{:04x}", stored_bits(s));
    case Held::u8:
        if (is_coded(s.type)) return fmt::format("0x{:02x}", stored_bits(s));
        break;
    case Held::i64: return s.integer == INT64_MIN ? "(-9223372036854775807L - 1)" : fmt::format("{}L", s.integer);
    case Held::i8:
    case Held::i32:
    case Held::truth:
    case Held::position: break;
    }
    if (s.integer > INT32_MAX || s.integer < INT32_MIN) return literal(Scalar::of_integer(DType::i64, s.integer));
    return s.integer == INT32_MIN ? "(-2147483647 - 1)" : std::to_string(s.integer);
}

std::string Expressions::extended(const Expr &e, int most) {
    if (e.is_constant()) return literal(Scalar::of_integer(DType::i64, e->value.integer));
    return widths.is_wide(e) ? inner(e, most) : "(long)" + inner(e, prefix);
}

std::vector<std::string> Expressions::texts(const std::vector<Expr> &roots, std::vector<std::string> &lines) {
    table_ = {};
    named_.clear();
    std::vector<int> numbers;
    for (const Expr &e : roots) numbers.push_back(table_.number(e));
    // What is evaluated whatever the guards of loads say, and what loads at all.
    std::set<int> always, loads;
    std::function<void(int)> reach = [&](int n) {
        if (!always.insert(n).second) return;
        const Expr &e = table_.expr(n);
        const std::vector<int> operands = table_.operands(n);
        size_t from = e.kind() == ExprKind::load && e->guarded ? operands.size() - 2 : 0;
        for (size_t i = from; i < operands.size(); i++) reach(operands[i]);
    };
    for (int n : numbers) reach(n);
    for (int n = 0; n < table_.size(); n++) {
        bool has = table_.expr(n).kind() == ExprKind::load;
        for (int operand : table_.operands(n)) has |= loads.count(operand) > 0;
        if (has) loads.insert(n);
    }
    for (int n : worth_naming(table_, numbers, 12)) {
        if (loads.count(n) && !always.count(n)) continue;
        const Expr e = table_.expr(n);
        const std::string value = piece(e).text, name = temporaries_.take("t");
        lines.push_back(fmt::format("const {} {} = {};",
                                    widths.is_wide(e)          ? "long"
                                    : e.type() == DType::index ? position_type
                                                               : value_type(e.type()),
                                    name, value));
        named_[n] = name;
    }
    std::vector<std::string> result;
    for (const Expr &e : roots) result.push_back(piece(e).text);
    return result;
}

Expressions::Piece Expressions::piece(const Expr &e) {
    if (auto it = named_.find(table_.number(e)); it != named_.end()) return {it->second, primary};
    uses_double |= e.type() == DType::f64;
    return node(e);
}

Expressions::Piece Expressions::node(const Expr &e) {
    switch (e.kind()) {
    case ExprKind::constant: {
        std::string text = e.type() == DType::index && position_type == "int64_t" ? std::to_string(e->value.integer) : literal(e->value);
        return {text, text[0] == '-' ? prefix : primary};
    }
    case ExprKind::variable: return {names_.of("variable", e->name), primary};
    case ExprKind::extent: return {names_.of("extent", e->name), primary};
    case ExprKind::parameter: return {names_.of("parameter", e->name), primary};
    case ExprKind::load: {
        size_t rank = e->args.size() - (e->guarded ? 2 : 0);
        std::vector<std::string> index;
        for (size_t i = 0; i < rank; i++) index.push_back(inner(e->args[i], anything));
        Piece read{element(e->name, index), primary};
        if (e.type() == DType::boolean) read = {read.text + " != 0", comparison};
        if (!e->guarded) return read;
        return {inner(e->args[rank], comparison) + " ? " + read.text + " : " + inner(e->args[rank + 1], prefix), conditional};
    }
    case ExprKind::bounded:
        return {call(widths.is_wide(e) ? "bounded_i64" : "bounded",
                     {e->args[0]->kind == ExprKind::cast && e->args[0]->args[0].type() == DType::i64 ? e->args[0]->args[0] : e->args[0],
                      e->args[1], e->args[2]}),
                primary};
    case ExprKind::operation: return operation(e);
    case ExprKind::cast: return conversion(e);
    case ExprKind::bitcast: {
        if (held_as(e.type()) == Held::u8) return {inner(e->args[0], primary), primary};
        const char *name = e.type() == DType::f32   ? "as_float"
                           : e.type() == DType::i32 ? "as_int"
                           : e.type() == DType::f64 ? "as_double"
                                                    : "as_long";
        return {call(name, {e->args[0]}), primary};
    }
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    throw InternalError("a definition's operand or a function in a tile program");
}

static constexpr OpTable<const char *> comparisons(is_comparison, {{Op::eq, " == "}, {Op::ne, " != "}, {Op::lt, " < "}, {Op::le, " <= "}});

// An operator, or a function, which may be one for each type.
struct FloatCode {
    const char *sign = nullptr;
    int precedence = primary;
    const char *function = nullptr;
    bool is_typed = false;
};

static constexpr OpTable<FloatCode> float_codes(keeps_floats, {{Op::neg, {"-", prefix}},
                                                               {Op::add, {" + ", sum}},
                                                               {Op::sub, {" - ", sum}},
                                                               {Op::mul, {" * ", product}},
                                                               {Op::div, {" / ", product}},
                                                               {Op::min, {nullptr, primary, "min", true}},
                                                               {Op::max, {nullptr, primary, "max", true}},
                                                               {Op::abs, {nullptr, primary, "fabs"}},
                                                               {Op::sqrt, {nullptr, primary, "sqrt"}},
                                                               {Op::floor, {nullptr, primary, "floor"}},
                                                               {Op::ceil, {nullptr, primary, "ceil"}},
                                                               {Op::round, {nullptr, primary, "rint"}},
                                                               {Op::trunc, {nullptr, primary, "trunc"}},
                                                               {Op::fma, {nullptr, primary, "fma"}}});

static constexpr OpTable<const char *> bool_signs(
    keeps_truths,
    {{Op::logical_not, "!"}, {Op::bit_and, " & "}, {Op::min, " & "}, {Op::bit_or, " | "}, {Op::max, " | "}, {Op::bit_xor, " ^ "}});

Expressions::Piece Expressions::operation(const Expr &e) {
    const std::vector<Expr> &x = e->args;
    if (e->op == Op::select) return {inner(x[0], comparison) + " ? " + inner(x[1], prefix) + " : " + inner(x[2], prefix), conditional};
    DType type = x[0].type();
    const bool wide = widths.is_wide(e) || std::any_of(x.begin(), x.end(), [&](const Expr &arg) { return widths.is_wide(arg); });
    auto compared = [&](const char *sign) {
        auto side = [&](const Expr &arg) { return wide ? extended(arg, sum) : inner(arg, sum); };
        return Piece{side(x[0]) + sign + side(x[1]), comparison};
    };
    if (is_comparison(e->op)) return compared(comparisons.at(e->op, "numbers to compare"));
    if (is_float(type)) {
        const FloatCode &code = float_codes.at(e->op, "floats");
        if (!code.sign) return {call(code.function + std::string(!code.is_typed ? "" : type == DType::f64 ? "_f64" : "_f32"), x), primary};
        if (arity(e->op) == 1) return {code.sign + inner(x[0], primary), prefix};
        return infix(x[0], code.sign, x[1], code.precedence);
    }
    if (type == DType::boolean) {
        const char *sign = bool_signs.at(e->op, "bools");
        if (arity(e->op) == 1) return {sign + inner(x[0], primary), prefix};
        return {inner(x[0], primary) + sign + inner(x[1], primary), comparison};
    }
    // Positions never overflow; data wraps.
    bool position = type == DType::index;
    std::string suffix = type == DType::i64 || wide || (position && position_type == "int64_t") ? "_i64" : "_i32";
    if (wide) {
        auto infix_in_64 = [&](const char *sign, int precedence) {
            return Piece{extended(x[0], precedence) + sign + extended(x[1], precedence - 1), precedence};
        };
        if (e->op == Op::neg) return {"-" + extended(x[0], primary), prefix};
        if (e->op == Op::add) return infix_in_64(" + ", sum);
        if (e->op == Op::sub) return infix_in_64(" - ", sum);
        if (e->op == Op::mul) return infix_in_64("*", product);
    }
    auto zero = [&] { return constant_int(type, 0); };
    switch (e->op) {
    case Op::neg: return position ? Piece{"-" + inner(x[0], primary), prefix} : Piece{call("sub" + suffix, {zero(), x[0]}), primary};
    case Op::abs:
        return {"(" + inner(x[0] < zero(), comparison) + " ? " + call("sub" + suffix, {zero(), x[0]}) + " : " + inner(x[0], primary) + ")",
                primary};
    case Op::logical_not: return {"~" + inner(x[0], primary), prefix};
    case Op::add: return position ? infix(x[0], " + ", x[1], sum) : Piece{call("add" + suffix, x), primary};
    case Op::sub: return position ? infix(x[0], " - ", x[1], sum) : Piece{call("sub" + suffix, x), primary};
    case Op::mul: return position ? infix(x[0], "*", x[1], product) : Piece{call("mul" + suffix, x), primary};
    case Op::fma: {
        std::string whole = call("mul" + suffix, {x[0], x[1]});
        return {"add" + suffix + "(" + whole + ", " + inner(x[2], anything) + ")", primary};
    }
    case Op::div:
        if (position && !wide && x[1].is_constant() && x[1]->value.integer > 0 && not_negative(x[0]))
            return infix(x[0], "/", x[1], product);
        return {call("div" + suffix, x), primary};
    case Op::mod:
        if (position && !wide && x[1].is_constant() && x[1]->value.integer > 0 && not_negative(x[0]))
            return infix(x[0], "%", x[1], product);
        return {call("mod" + suffix, x), primary};
    case Op::bit_and: return {inner(x[0], primary) + " & " + inner(x[1], primary), comparison};
    case Op::bit_or: return {inner(x[0], primary) + " | " + inner(x[1], primary), comparison};
    case Op::bit_xor: return {inner(x[0], primary) + " ^ " + inner(x[1], primary), comparison};
    case Op::min:
    case Op::max:
    case Op::shl:
    case Op::shr: return {call(name_of(e->op) + suffix, x), primary};
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: break;
    }
    undefined_on(e->op, "integers");
}

Expressions::Piece Expressions::conversion(const Expr &e) {
    require(!is_expanded(e), "lowering expands conversions that no emitter has");
    DType type = e.type(), from = e->args[0].type();
    std::string v = inner(e->args[0], anything);
    auto in_parentheses = [](const std::string &text) { return "(" + text + ")"; };
    if (from == DType::bf16) v = "f32_of_bf16(" + v + ")", from = DType::f32;
    else if (from == DType::f16) v = "f32_of_f16(" + v + ")", from = DType::f32;
    else v = in_parentheses(v);
    if (from == DType::boolean) from = DType::i32;
    if (from == DType::index && type == DType::i32 && !widths.is_wide(e->args[0])) return {v, primary};
    if (type == DType::boolean) return {v + (is_float(from) ? (from == DType::f64 ? " != 0.0" : " != 0.0f") : " != 0"), comparison};
    if (is_narrow_float(type)) {
        std::string narrow = from == DType::f32 ? v : "odd_f32((double)" + v + ")";
        uses_double |= from != DType::f32;
        return {std::string(name_of(type)) + "_of_f32(" + narrow + ")", primary};
    }
    if (is_float(type)) return {"(" + std::string(value_type(type)) + ")" + v, prefix};
    int64_t lowest = INT64_MIN, highest = INT64_MAX;
    if (type == DType::i8) lowest = -128, highest = 127;
    if (type == DType::u8) lowest = 0, highest = 255;
    if (type == DType::i32 || type == DType::index) lowest = INT32_MIN, highest = INT32_MAX;
    auto number = [](int64_t n) { return literal(Scalar::of_integer(DType::i64, n)); };
    std::string target = "(" + std::string(value_type(type)) + ")";
    if (is_float(from)) {
        bool narrow = from == DType::f32;
        // The largest value of the source format that fits.
        double hi = highest == INT64_MAX             ? (narrow ? 9223371487098961920.0 : 9223372036854774784.0)
                    : highest == INT32_MAX && narrow ? 2147483520.0
                                                     : static_cast<double>(highest);
        const char *round = e->rounding == Rounding::nearest_even ? "rint" : "trunc";
        return {fmt::format("{}whole_{}({}{}, {}, {}, {}, {}, {})", type == DType::i64 ? "" : target, name_of(from), round, v,
                            decimal(static_cast<double>(lowest), narrow), decimal(hi, narrow), number(lowest), number(highest),
                            e->saturate ? 1 : 0),
                type == DType::i64 ? primary : prefix};
    }
    bool clamps = e->saturate || (type == DType::index && from == DType::i64);
    if (clamps && type != DType::i64) return {fmt::format("{}clamp_i64({}, {}, {})", target, v, number(lowest), number(highest)), prefix};
    return {target + v, prefix};
}

}  // namespace tessera::emit_gpu
