// Vectors of bools, and what makes and takes them, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

// Whether bools of so many lanes are a mask of AVX-512, where the file is compiled for it.
bool Operations::has_masks(int lanes) const {
    const bool has = target_.has("avx512f") && target_.has("avx512bw") && target_.has("avx512dq") && target_.has("avx512vl");
    return has && lanes >= 8;
}

std::string Operations::first(int count) {
    const CType t{DType::boolean, count};
    const std::string name = "first_boolx" + std::to_string(count), result = mask_type(count);
    if (!fresh(name)) return name;
    std::string body = fmt::format("    const {0} lane = {{{1}}};\n    return ({0})(lane < (int32_t)(n < 0 ? 0 : n > {2} ? {2} : n));\n",
                                   result, numbers(0, count), count);
    if (has_masks(count))
        body = fmt::format(
            "#ifdef TESS_X86_64\n    return n <= 0 ? 0 : n >= {1} ? ({0})-1 : ({0})((UINT64_C(1) << n) - 1);\n#else\n{2}#endif\n", result,
            count, body);
    if (is_halved(t)) {
        const std::string half = first(count / 2);
        body = fmt::format("    return {};\n", joined(t, half + "(n)", fmt::format("{}(n - {})", half, count / 2)));
    }
    define(result, name, "int64_t n", body, true);
    return name;
}

std::string Operations::any(int count) {
    const CType t{DType::boolean, count};
    const std::string name = "any_boolx" + std::to_string(count), mask = mask_type(count);
    if (!fresh(name)) return name;
    std::string body = fmt::format("    int r = 0;\n    for (int i = 0; i < {}; i++) r |= m[i];\n    return r != 0;\n", count);
    if (has_masks(count)) body = fmt::format("#ifdef TESS_X86_64\n    return m != 0;\n#else\n{}#endif\n", body);
    if (is_halved(t)) body = fmt::format("    return {0}(m.low) || {0}(m.high);\n", any(count / 2));
    define("int", name, mask + " m", body, true);
    return name;
}

// The function that gives one bool of a mask.
std::string Operations::lane_of_mask(int lanes) {
    const std::string name = "lane_of_boolx" + std::to_string(lanes);
    if (fresh(name))
        define("int", name, mask_type(lanes) + " m, int i",
               "#ifdef TESS_X86_64\n    return (int)(m >> i & 1);\n#else\n    return m[i];\n#endif\n", true);
    return name;
}

std::string Operations::ones(int lanes) {
    const CType result{DType::i32, lanes}, mask{DType::boolean, lanes};
    const std::string name = "i32_of_boolx" + std::to_string(lanes);
    if (is_halved(result)) return in_halves(name, result, {mask}, ones(lanes / 2));
    if (!fresh(name)) return name;
    std::string body = "    return -m;\n";
    if (has_masks(lanes))
        body = fmt::format("#ifdef TESS_X86_64\n    return ({})_mm{}_maskz_set1_epi32(m, 1);\n#else\n{}#endif\n", type(result), 32 * lanes,
                           body);
    define(type(result), name, mask_type(lanes) + " m", body, true);
    return name;
}

// The intrinsic that takes lanes of a where m holds, and of b elsewhere; "" where the target has none of this width.
static std::string machine_select(CType t, bool masks, const Target &target) {
    const int element = bytes_of(t.element), bits = 8 * element * t.lanes;
    const std::string prefix = bits == 128 ? "_mm" : fmt::format("_mm{}", bits), vector = fmt::format("__m{}i", bits);
    if (bits != 128 && bits != 256 && bits != 512) return "";
    if (masks) return fmt::format("{0}_mask_blend_epi{1}(m, ({2})b, ({2})a)", prefix, 8 * element, vector);
    const bool fits = (bits == 256 && target.has("avx2")) || (bits == 128 && target.has("sse4_1"));
    if (!fits) return "";
    if (element == 4) return fmt::format("{0}_blendv_ps(({1})b, ({1})a, ({1})m)", prefix, fmt::format("__m{}", bits));
    return element == 8 && bits == 256 ? "_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)_mm256_cvtepi32_epi64((__m128i)m))" : "";
}

std::string Operations::select(CType t) {
    const CType mask{DType::boolean, t.lanes};
    const std::string name = "select_" + short_name(t), result = type(t);
    if (is_halved(t)) return in_halves(name, t, {mask, t, t}, select(halved(t)));
    if (!fresh(name)) return name;
    const bool masks = has_masks(t.lanes);
    std::string body;
    if (t.element == DType::boolean) {
        body = fmt::format("    return ({})((m & a) | (~m & b));\n", result);
    } else {
        const std::string bits = unsigned_type(t);
        const std::string wide =
            bytes_of(t.element) == 4 ? fmt::format("({})m", bits) : fmt::format("__builtin_convertvector(m, {})", bits);
        body = fmt::format("    const {0} k = {1};\n    return ({2})((({0})a & k) | (({0})b & ~k));\n", bits, wide, result);
        std::string native = machine_select(t, masks, target_);
        if (!native.empty()) native = fmt::format("    return ({}){};\n", result, native);
        else if (masks) native = each_lane(t, lane_of_mask(t.lanes) + "(m, i) ? a[i] : b[i]");
        if (!native.empty()) body = fmt::format("#ifdef TESS_X86_64\n{}#else\n{}#endif\n", native, body);
    }
    define(result, name, fmt::format("{0} m, {1} a, {1} b", mask_type(t.lanes), result), body, true);
    return name;
}

// LLVM 14 takes x < 0 ? 0 : x for the maximum that orders -0 before 0, where the processor has one. It cannot when it does not
// see where the condition is from.
std::string Operations::choose(CType t) {
    const std::string name = "choose_" + short_name(t), result = type(t);
    if (is_halved(t)) return in_halves(name, t, {{DType::boolean, t.lanes}, t, t}, choose(halved(t)));
    if (!fresh(name)) return name;
    const std::string chosen = t.lanes ? select(t) + "(m, a, b)" : "m ? a : b";
    const std::string where = !t.lanes ? "\"+r\"" : t.lanes == 4 ? "TESS_LANES" : "\"+m\"";
    define(result, name, fmt::format("{} m, {} a, {} b", t.lanes ? mask_type(t.lanes) : "int", result, result),
           fmt::format("    TESS_UNSEEN({}, m);\n    return {};\n", where, chosen), t.lanes > 0);
    return name;
}

// The intrinsic that compares a with b into a mask; "" where there is none of this width.
static std::string machine_compare(Op op, CType t) {
    const int bits = 8 * bytes_of(t.element) * t.lanes;
    if ((bits != 128 && bits != 256 && bits != 512) || is_narrow_float(t.element)) return "";
    const bool real = is_float(t.element), wide = t.element == DType::f64;
    const char *relation = op == Op::eq ? "EQ" : op == Op::ne ? (real ? "NEQ" : "NE") : op == Op::lt ? "LT" : "LE";
    const std::string vector = fmt::format("__m{}{}", bits, real ? (wide ? "d" : "") : "i"),
                      prefix = bits == 128 ? "_mm" : fmt::format("_mm{}", bits);
    const std::string lanes =
        real ? (wide ? "pd" : "ps") : fmt::format("ep{}{}", t.element == DType::u8 ? "u" : "i", 8 * bytes_of(t.element));
    const std::string how = real ? fmt::format("_CMP_{}_{}", relation, op == Op::ne ? "UQ" : "OQ") : fmt::format("_MM_CMPINT_{}", relation);
    return fmt::format("{0}_cmp_{1}_mask(({2})a, ({2})b, {3})", prefix, lanes, vector, how);
}

std::string Operations::compare(Op op, CType t) {
    const CType result{DType::boolean, t.lanes};
    const std::string name = std::string(name_of(op)) + "_" + short_name(t), operand = type(t), mask = mask_type(t.lanes);
    if (is_halved(t)) return in_halves(name, result, {t, t}, compare(op, halved(t)));
    if (!fresh(name)) return name;
    std::string body = bytes_of(t.element) == 4 ? fmt::format("    return ({})(a{}b);\n", mask, sign_of(op))
                                                : fmt::format("    return __builtin_convertvector(a{}b, {});\n", sign_of(op), mask);
    if (has_masks(t.lanes)) {
        std::string native = machine_compare(op, t);
        if (native.empty())
            native =
                fmt::format("    {0} r = 0;\n    for (int i = 0; i < {1}; i++) r |= ({0})((uint64_t)(a[i]{2}b[i]) << i);\n    return r;\n",
                            mask, t.lanes, sign_of(op));
        else native = fmt::format("    return {};\n", native);
        body = fmt::format("#ifdef TESS_X86_64\n{}#else\n{}#endif\n", native, body);
    }
    define(mask, name, fmt::format("{0} a, {0} b", operand), body, true);
    return name;
}

}  // namespace tessera::emit_c
