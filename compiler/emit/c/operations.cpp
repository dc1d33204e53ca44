#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

#include "runtime/abi/kernel.h"
#include "support/text/error.h"

namespace tessera::emit_c {

int bytes_of(DType element) { return element == DType::index ? 8 : element == DType::boolean ? 4 : size_of(element); }

// "f32", and "f32x16" for vectors.
std::string short_name(CType t) {
    const std::string name = name_of(t.element);
    return t.lanes ? name + "x" + std::to_string(t.lanes) : name;
}

const char *c_element(DType element) {
    switch (held_as(element)) {
    case Held::f32: return "float";
    case Held::f64: return "double";
    case Held::half: return "uint16_t";
    case Held::i8: return "int8_t";
    case Held::u8: return "uint8_t";
    case Held::i32: return "int32_t";
    case Held::truth: return "int";
    case Held::i64:
    case Held::position: return "int64_t";
    }
    throw InternalError("unknown dtype");
}

std::string Operations::raw_type(const std::string &element, int bytes, int lanes) {
    static const std::map<std::string, std::string> names = {{"float", "f32"},    {"double", "f64"},   {"int8_t", "i8"},
                                                             {"uint8_t", "u8"},   {"uint16_t", "u16"}, {"int32_t", "i32"},
                                                             {"uint32_t", "u32"}, {"int64_t", "i64"},  {"uint64_t", "u64"}};
    std::string name = names.at(element) + "x" + std::to_string(lanes);
    if (fresh(name)) types_ += fmt::format("typedef {} {} __attribute__((vector_size({})));\n", element, name, bytes * lanes);
    return name;
}

std::string Operations::type(CType t) {
    if (!t.lanes) return c_element(t.element);
    return raw_type(t.element == DType::boolean ? "int32_t" : c_element(t.element), bytes_of(t.element), t.lanes);
}

std::string Operations::stored_type(DType element) { return element == DType::boolean ? "uint8_t" : c_element(element); }

std::string Operations::unsigned_type(CType t) {
    const std::string element = fmt::format("uint{}_t", 8 * bytes_of(t.element));
    return t.lanes ? raw_type(element, bytes_of(t.element), t.lanes) : element;
}

void Operations::define(const std::string &result, const std::string &name, const std::string &parameters, const std::string &body,
                        bool machine) {
    functions_ += fmt::format("TESS_INLINE {}{} {}({}) {{\n{}}}\n\n", machine ? "TESS_MACHINE " : "", result, name, parameters, body);
}

// `call` for each lane i, put together.
std::string Operations::each_lane(CType result, const std::string &call) {
    return fmt::format("    {} r = {{0}};\n    for (int i = 0; i < {}; i++) r[i] = {};\n    return r;\n", type(result), result.lanes, call);
}

std::string Operations::splat(CType v) {
    const std::string name = "splat_" + short_name(v), result = type(v);
    if (!fresh(name)) return name;
    std::string all;
    for (int i = 0; i < v.lanes; i++) all += i ? ", x" : "x";
    const std::string scalar = v.element == DType::boolean ? "int32_t" : c_element(v.element);
    define(result, name, scalar + " x", fmt::format("    return ({}){{{}}};\n", result, all), true);
    return name;
}

std::string Operations::lanes(int count) {
    const std::string name = "lanes_indexx" + std::to_string(count), result = type({DType::index, count});
    if (!fresh(name)) return name;
    std::string all;
    for (int i = 0; i < count; i++) all += (i ? ", " : "") + std::to_string(i);
    define(result, name, "void", fmt::format("    return ({}){{{}}};\n", result, all), true);
    return name;
}

std::string Operations::first(int count) {
    const std::string name = "first_boolx" + std::to_string(count), result = mask_type(count);
    if (!fresh(name)) return name;
    std::string all;
    for (int i = 0; i < count; i++) all += (i ? ", " : "") + std::to_string(i);
    define(result, name, "int64_t n",
           fmt::format("    const {0} lane = {{{1}}};\n    return ({0})(lane < (int32_t)(n < 0 ? 0 : n > {2} ? {2} : n));\n", result, all,
                       count),
           true);
    return name;
}

std::string Operations::any(int count) {
    const std::string name = "any_boolx" + std::to_string(count), mask = mask_type(count);
    if (fresh(name))
        define("int", name, mask + " m",
               fmt::format("    int r = 0;\n    for (int i = 0; i < {}; i++) r |= m[i];\n    return r != 0;\n", count), true);
    return name;
}

// The name of the intrinsic of an operation on vectors of so many bytes; "" where the target has none.
static std::string intrinsic(const std::string &operation, DType element, int bytes, const Target &target) {
    if ((element != DType::f32 && element != DType::f64) || target.arch != Arch::x86_64) return "";
    const bool fits = bytes == 16 || (bytes == 32 && target.has("avx2")) || (bytes == 64 && target.has("avx512f"));
    if (!fits || (operation == "fmadd" && !target.has("fma")) || (operation == "round" && bytes == 16 && !target.has("sse4_1"))) return "";
    return fmt::format("_mm{}_{}_{}", bytes == 16 ? "" : std::to_string(8 * bytes),
                       operation == "round" && bytes == 64 ? "roundscale" : operation, element == DType::f32 ? "ps" : "pd");
}

// An elementwise operation on floats: an intrinsic where the target has one for this width, two halves where it has one for
// a smaller width, and lane by lane everywhere else.
void Operations::define_native(const std::string &name, CType t, int operands, const std::string &portable, const std::string &operation) {
    const std::string result = type(t);
    const int bytes = t.lanes * bytes_of(t.element);
    const std::string short_operation = operation.substr(0, operation.find(' '));
    const std::string mode = operation.find(' ') == std::string::npos ? "" : ", " + operation.substr(operation.find(' ') + 1);
    const std::string one = intrinsic(short_operation, t.element, bytes, target_);
    const CType halved{t.element, t.lanes / 2};
    std::string parameters, casts, body;
    for (int i = 0; i < operands; i++) {
        const std::string machine = fmt::format("__m{}{}", 8 * bytes, t.element == DType::f64 ? "d" : "");
        parameters += fmt::format("{}{} {}", i ? ", " : "", result, "abc"[i]);
        casts += fmt::format("{}({}){}", i ? ", " : "", machine, "abc"[i]);
    }
    std::string smaller;
    for (int b = bytes / 2; b >= 16 && smaller.empty(); b /= 2) smaller = intrinsic(short_operation, t.element, b, target_);
    if (!one.empty()) {
        body = fmt::format("#ifdef TESS_X86_64\n    return ({}){}({}{});\n#else\n{}#endif\n", result, one, casts, mode,
                           each_lane(t, portable));
    } else if (bytes > 16 && !smaller.empty()) {
        const std::string half_name = name.substr(0, name.rfind('x') + 1) + std::to_string(halved.lanes), h = type(halved);
        if (fresh(half_name)) define_native(half_name, halved, operands, portable, operation);
        std::string calls[2];
        body = fmt::format("    {} r;\n    {} low, high", result, h);
        for (int i = 0; i < operands; i++) body += fmt::format(", {0}0, {0}1", "abc"[i]);
        body += ";\n";
        for (int i = 0; i < operands; i++) {
            body += fmt::format(
                "    __builtin_memcpy(&{0}0, &{0}, sizeof {0}0);\n    __builtin_memcpy(&{0}1, (const char *)&{0} + sizeof {0}0, sizeof "
                "{0}1);\n",
                "abc"[i]);
            calls[0] += fmt::format("{}{}0", i ? ", " : "", "abc"[i]), calls[1] += fmt::format("{}{}1", i ? ", " : "", "abc"[i]);
        }
        body += fmt::format("    low = {0}({1});\n    high = {0}({2});\n", half_name, calls[0], calls[1]);
        body +=
            "    __builtin_memcpy(&r, &low, sizeof low);\n    __builtin_memcpy((char *)&r + sizeof low, &high, sizeof high);\n    return "
            "r;\n";
    } else {
        body = each_lane(t, portable);
    }
    define(result, name, parameters, body, true);
}

// How C writes an operation on floats: between its operands, or as a function of one to three; and the vector instruction of x86-64 that is
// the same, with how it rounds.
struct FloatCode {
    const char *sign = nullptr, *function = nullptr, *instruction = nullptr;
};

static constexpr OpTable<FloatCode> float_codes(
    is_on_floats, {{Op::neg, {}},
                   {Op::abs, {nullptr, "__builtin_fabs"}},
                   {Op::sqrt, {nullptr, "__builtin_sqrt", "sqrt"}},
                   {Op::floor, {nullptr, "__builtin_floor", "round _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC"}},
                   {Op::ceil, {nullptr, "__builtin_ceil", "round _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC"}},
                   {Op::round, {nullptr, "__builtin_rint", "round _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC"}},
                   {Op::trunc, {nullptr, "__builtin_trunc", "round _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC"}},
                   {Op::add, {" + "}},
                   {Op::sub, {" - "}},
                   {Op::mul, {"*"}},
                   {Op::div, {"/"}},
                   {Op::min, {nullptr, nullptr, "min"}},
                   {Op::max, {nullptr, nullptr, "max"}},
                   {Op::eq, {" == "}},
                   {Op::ne, {" != "}},
                   {Op::lt, {" < "}},
                   {Op::le, {" <= "}},
                   {Op::fma, {nullptr, "__builtin_fma", "fmadd"}}});

static const char *stated(const char *code, Op op, const char *what) {
    if (!code) throw InternalError(std::string(name_of(op)) + " is no " + what);
    return code;
}

const char *sign_of(Op op) {
    if (op == Op::bit_and) return " & ";
    if (op == Op::bit_or) return " | ";
    if (op == Op::bit_xor) return " ^ ";
    return stated(float_codes.at(op, "floats").sign, op, "operator of C");
}

std::string scalar_builtin(Op op, DType type) {
    return stated(float_codes.at(op, "floats").function, op, "function of C on floats") + std::string(type == DType::f32 ? "f" : "");
}

static const char *instruction_of(Op op) { return stated(float_codes.at(op, "floats").instruction, op, "vector instruction of x86-64"); }

std::string Operations::unary(Op op, CType t) {
    if (is_float(t.element)) {
        if (!t.lanes) return scalar_builtin(op, t.element);
        const std::string name = std::string(name_of(op)) + "_" + short_name(t), result = type(t);
        if (!fresh(name)) return name;
        if (op == Op::abs) {
            const std::string bits = unsigned_type({t.element, t.lanes}),
                              mask = t.element == DType::f32 ? "0x7fffffffu" : "0x7fffffffffffffffu";
            define(result, name, result + " a", fmt::format("    return ({})(({})a & {});\n", result, bits, mask), true);
            return name;
        }
        define_native(name, t, 1, scalar_builtin(op, t.element) + "(a[i])", instruction_of(op));
        return name;
    }
    const std::string name = std::string(name_of(op)) + "_" + short_name(t), result = type(t), bits = unsigned_type(t);
    if (!fresh(name)) return name;
    if (op == Op::neg) define(result, name, result + " a", fmt::format("    return ({})(0 - ({})a);\n", result, bits), t.lanes > 0);
    else if (op == Op::abs && !t.lanes)
        define(result, name, result + " a", fmt::format("    return a < 0 ? ({})(0 - ({})a) : a;\n", result, bits), false);
    else if (op == Op::abs)
        define(result, name, result + " a",
               fmt::format("    const {0} m = ({0})(a < 0);\n    return ({0})((({1})a ^ ({1})m) - ({1})m);\n", result, bits), true);
    else throw InternalError("no such operation on integers");
    return name;
}

std::string Operations::one_comparison(bool least, CType t) {
    const std::string name = (least ? "lesser_" : "greater_") + short_name(t), result = type(t), both = fmt::format("{0} a, {0} b", result);
    if (!fresh(name)) return name;
    const bool machine = t.lanes && target_.arch == Arch::x86_64;
    const std::string one = choose(machine ? CType{t.element, 0} : t), sign = least ? "<" : ">";
    if (!t.lanes) define(result, name, both, fmt::format("    return {}(a {} b, a, b);\n", one, sign), false);
    else if (machine)
        define_native(name, t, 2, fmt::format("{}(a[i] {} b[i], a[i], b[i])", one, sign), instruction_of(least ? Op::min : Op::max));
    else
        define(result, name, both, fmt::format("    return {}({}({}), a, b);\n", one, compare(Op::lt, t), least ? "a, b" : "b, a"), true);
    return name;
}

// Integers wrap: they are added as unsigned ones. The same text serves scalars and vectors.
std::string Operations::binary(Op op, CType t) {
    const std::string name = std::string(name_of(op)) + "_" + short_name(t), result = type(t), both = fmt::format("{0} a, {0} b", result);
    if (!fresh(name)) return name;
    if (is_float(t.element)) {
        require(op == Op::min || op == Op::max, "other operations on floats are operators");
        const std::string one = one_comparison(op == Op::min, t), bits = unsigned_type(t);
        // All bits set are a NaN.
        if (t.lanes)
            define(result, name, both, fmt::format("    return ({0})(({1}){2}(b, a) | ({1})(b != b));\n", result, bits, one), true);
        else define(result, name, both, fmt::format("    return b != b ? b : {}(b, a);\n", one), false);
        return name;
    }
    const std::string bits = unsigned_type(t);
    const int width = 8 * bytes_of(t.element);
    std::string body;
    switch (op) {
    case Op::add: body = fmt::format("    return ({0})(({1})a + ({1})b);\n", result, bits); break;
    case Op::sub: body = fmt::format("    return ({0})(({1})a - ({1})b);\n", result, bits); break;
    case Op::mul: body = fmt::format("    return ({0})(({1})a * ({1})b);\n", result, bits); break;
    case Op::shl: body = fmt::format("    return ({0})(({1})a << (({1})b & {2}));\n", result, bits, width - 1); break;
    case Op::shr: body = fmt::format("    return a >> (b & {});\n", width - 1); break;
    case Op::min:
    case Op::max:
        if (!t.lanes) body = fmt::format("    return a {} b ? a : b;\n", op == Op::min ? "<" : ">");
        else body = fmt::format("    const {0} m = ({0})(a {1} b);\n    return (a & m) | (b & ~m);\n", result, op == Op::min ? "<" : ">");
        break;
    case Op::div:
    case Op::mod: {
        const CType scalar{t.element, 0};
        if (t.lanes) {
            body = each_lane(t, binary(op, scalar) + "(a[i], b[i])");
        } else if (op == Op::div) {
            body = fmt::format(
                "    if (b == 0) return 0;\n    if (b == -1) return ({0})(0 - ({1})a);\n    return a / b - (a % b != 0 && (a < 0) != (b < "
                "0));\n",
                result, bits);
        } else {
            body = "    if (b == 0 || b == -1) return 0;\n    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);\n";
        }
        break;
    }
    case Op::neg:
    case Op::abs:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::logical_not:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::fma:
    case Op::select: throw InternalError("other operations on integers are operators");
    }
    define(result, name, both, body, t.lanes > 0);
    return name;
}

// The same text serves a scalar and vectors.
void Operations::define_exact_fma(const std::string &name, CType t) {
    const CType wide{DType::f64, t.lanes};
    const std::string result = type(t), f64 = type(wide), bits = unsigned_type(wide);
    auto converted = [&](const std::string &to, const std::string &x) {
        return t.lanes ? fmt::format("__builtin_convertvector({}, {})", x, to) : fmt::format("({}){}", to, x);
    };
    const std::string bits_of = bitcast(DType::i64, wide), value_of = bitcast(DType::f64, {DType::i64, t.lanes});
    const std::string i64 = type({DType::i64, t.lanes});
    const std::string off =
        t.lanes ? fmt::format("({0})(error == error) & ({0})(error != 0)", bits) : fmt::format("-({})(error > 0 || error < 0)", bits);
    define(result, name, fmt::format("{0} a, {0} b, {0} c", result),
           fmt::format("    /* the product is exact, and its sum rounded to odd is right when it is rounded again */\n"
                       "    const {0} product = {1} * {2}, addend = {3}, sum = product + addend, part = sum - product;\n"
                       "    const {0} error = (product - (sum - part)) + (addend - part);\n"
                       "    const {4} bits = ({4}){5}(sum), inexact = {6};\n"
                       "    const {4} odd = (bits - (((({4}){5}(error) ^ bits) >> 63) & inexact)) | (inexact & 1);\n"
                       "    return {7};\n",
                       f64, converted(f64, "a"), converted(f64, "b"), converted(f64, "c"), bits, bits_of, off,
                       converted(result, fmt::format("{}(({})odd)", value_of, i64))),
           t.lanes > 0);
}

std::string Operations::fma(CType t) {
    const bool exact = t.element == DType::f32 && target_.arch == Arch::wasm32;  // which has no fma, and whose C libraries have wrong ones
    if (is_float(t.element) && !t.lanes && !exact) return scalar_builtin(Op::fma, t.element);
    const std::string name = "fma_" + short_name(t), result = type(t);
    if (!fresh(name)) return name;
    if (exact) {
        define_exact_fma(name, t);
    } else if (is_float(t.element)) {
        define_native(name, t, 3, scalar_builtin(Op::fma, t.element) + "(a[i], b[i], c[i])", instruction_of(Op::fma));
    } else {
        const std::string bits = unsigned_type(t);
        define(result, name, fmt::format("{0} a, {0} b, {0} c", result),
               fmt::format("    return ({0})(({1})a * ({1})b + ({1})c);\n", result, bits), t.lanes > 0);
    }
    return name;
}

std::string Operations::select(CType t) {
    const std::string name = "select_" + short_name(t), result = type(t), mask = mask_type(t.lanes), bits = unsigned_type(t);
    if (!fresh(name)) return name;
    const std::string wide = bytes_of(t.element) == 4 ? fmt::format("({})m", bits) : fmt::format("__builtin_convertvector(m, {})", bits);
    define(result, name, fmt::format("{} m, {} a, {} b", mask, result, result),
           fmt::format("    const {0} k = {1};\n    return ({2})((({0})a & k) | (({0})b & ~k));\n", bits, wide, result), true);
    return name;
}

// LLVM 14 takes x < 0 ? 0 : x for the maximum that orders -0 before 0, where the processor has one. It cannot when it does not
// see where the condition is from.
std::string Operations::choose(CType t) {
    const std::string name = "choose_" + short_name(t), result = type(t);
    if (!fresh(name)) return name;
    const std::string chosen = t.lanes ? select(t) + "(m, a, b)" : "m ? a : b";
    const std::string where = !t.lanes ? "\"+r\"" : t.lanes == 4 ? "TESS_LANES" : "\"+m\"";
    define(result, name, fmt::format("{} m, {} a, {} b", t.lanes ? mask_type(t.lanes) : "int", result, result),
           fmt::format("    TESS_UNSEEN({}, m);\n    return {};\n", where, chosen), t.lanes > 0);
    return name;
}

std::string Operations::compare(Op op, CType t) {
    const std::string name = std::string(name_of(op)) + "_" + short_name(t), operand = type(t), mask = mask_type(t.lanes);
    if (!fresh(name)) return name;
    const std::string body = bytes_of(t.element) == 4 ? fmt::format("    return ({})(a{}b);\n", mask, sign_of(op))
                                                      : fmt::format("    return __builtin_convertvector(a{}b, {});\n", sign_of(op), mask);
    define(mask, name, fmt::format("{0} a, {0} b", operand), body, true);
    return name;
}

std::string Operations::bitcast(DType to, CType from) {
    const CType result{to, from.lanes};
    const std::string name = short_name({to, 0}) + "_bits_of_" + short_name(from), t = type(result), operand = type(from);
    if (fresh(name))
        define(t, name, operand + " x", fmt::format("    {} r;\n    __builtin_memcpy(&r, &x, sizeof r);\n    return r;\n", t),
               from.lanes > 0);
    return name;
}

std::string Operations::prefetch(bool for_store) {
    const std::string name = for_store ? "prefetch_for_store" : "prefetch";
    const char *body = "    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)position * size), {:d}, 3);\n";
    if (fresh(name)) define("void", name, "const void *p, int64_t position, size_t size", fmt::format(fmt::runtime(body), for_store), true);
    return name;
}

std::string Operations::round_up() {
    if (fresh("rounded_up"))
        define("int64_t", "rounded_up", "int64_t bytes",
               fmt::format("    return (bytes + {0}) / {1} * {1};\n", TESS_WORKSPACE_ALIGNMENT - 1, TESS_WORKSPACE_ALIGNMENT), false);
    return "rounded_up";
}

static const char *const unseen_macros =
    R"(/* clang 14 takes x < 0 ? 0 : x for a maximum with -0 before 0, unless it cannot see where the condition is from */
#if defined(__clang__) && (defined(__aarch64__) || defined(__wasm__))
#define TESS_UNSEEN(where, condition) __asm__("" : where(condition))
#else
#define TESS_UNSEEN(where, condition) (void)0
#endif
#ifdef __aarch64__
#define TESS_LANES "+w"
#elif defined(__wasm_simd128__)
#define TESS_LANES "+r"
#else
#define TESS_LANES "+m"
#endif

)";

std::string Operations::text() const {
    const bool unseen = functions_.find("TESS_UNSEEN") != std::string::npos;
    return types_ + (types_.empty() ? "" : "\n") + (unseen ? unseen_macros : "") + functions_;
}

}  // namespace tessera::emit_c
