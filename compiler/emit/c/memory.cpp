// Access to memory by vectors, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

// A vector of bools as the processor's own mask; "" where it has none.
std::string Operations::machine_mask(int lanes) const {
    if (!target_.has("avx512dq") || !target_.has("avx512vl")) return "";
    if (lanes == 16) return "_mm512_movepi32_mask((__m512i)m)";
    if (lanes == 8) return "_mm256_movepi32_mask((__m256i)m)";
    if (lanes == 4) return "_mm_movepi32_mask((__m128i)m)";
    return "";
}

// The intrinsic that reads or writes the lanes of a mask m side by side; "" where there is none.
std::string Operations::masked_access(CType t, bool store) const {
    const int element = t.element == DType::boolean ? 1 : bytes_of(t.element), bits = 8 * element * t.lanes;
    const std::string mask = machine_mask(t.lanes);
    if (bits != 128 && bits != 256 && bits != 512) return "";
    const std::string prefix = bits == 128 ? "_mm" : "_mm" + std::to_string(bits);
    if (!mask.empty() && (element >= 4 || target_.has("avx512bw"))) {
        if (store) return fmt::format("{}_mask_storeu_epi{}(p, {}, (__m{}i)v)", prefix, 8 * element, mask, bits);
        return fmt::format("{}_maskz_loadu_epi{}({}, p)", prefix, 8 * element, mask);
    }
    if (element == 4 && bits <= 256 && target_.has("avx2")) {
        if (store) return fmt::format("{0}_maskstore_epi32((int *)p, (__m{1}i)m, (__m{1}i)v)", prefix, bits);
        return fmt::format("{0}_maskload_epi32((const int *)p, (__m{1}i)m)", prefix, bits);
    }
    return "";
}

std::string Operations::load(CType t, const std::string &how, bool masked) {
    const std::string name = "load_" + how + (how.empty() ? "" : "_") + (masked ? "masked_" : "") + short_name(t), result = type(t),
                      element = stored_type(t.element);
    if (!fresh(name)) return name;
    if (t.element == DType::boolean) {
        // As bytes, then as lanes that are 0 or -1.
        const CType bytes{DType::u8, t.lanes};
        const std::string inner = load(bytes, how, masked);
        std::string parameters = "const uint8_t *p", arguments = "p";
        if (how == "strided") parameters += ", int64_t step", arguments += ", step";
        if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at", arguments += ", at";
        if (masked) parameters += ", " + result + " m", arguments += ", m";
        define(result, name, parameters,
               fmt::format("    return ({0})(__builtin_convertvector({1}({2}), {0}) != 0);\n", result, inner, arguments), true);
        return name;
    }
    std::string parameters = fmt::format("const {} *p", element), body;
    if (how == "strided") parameters += ", int64_t step";
    if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at";
    if (masked) parameters += ", " + mask_type(t.lanes) + " m";
    const std::string at = how.empty() ? "p[i]" : how == "strided" ? "p[i * step]" : "p[at[i]]";
    const std::string portable =
        masked ? fmt::format("    {} r = {{0}};\n    for (int i = 0; i < {}; i++)\n        if (m[i]) r[i] = {};\n    return r;\n", result,
                             t.lanes, at)
               : each_lane(t, at);
    const std::string native = masked && how.empty() ? masked_access(t, false) : "";
    if (how.empty() && !masked) body = fmt::format("    {} r;\n    __builtin_memcpy(&r, p, sizeof r);\n    return r;\n", result);
    else if (!native.empty()) body = fmt::format("#ifdef TESS_X86_64\n    return ({}){};\n#else\n{}#endif\n", result, native, portable);
    else body = portable;
    define(result, name, parameters, body, true);
    return name;
}

std::string Operations::store(CType t, const std::string &how, bool masked) {
    const std::string name = "store_" + how + (how.empty() ? "" : "_") + (masked ? "masked_" : "") + short_name(t), vector = type(t),
                      element = stored_type(t.element);
    if (!fresh(name)) return name;
    std::string parameters = fmt::format("{} *p", element), body;
    if (how == "strided") parameters += ", int64_t step";
    if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at";
    parameters += ", " + vector + " v";
    if (masked) parameters += ", " + mask_type(t.lanes) + " m";
    const std::string at = how.empty() ? "p[i]" : how == "strided" ? "p[i * step]" : "p[at[i]]";
    const std::string value = t.element == DType::boolean ? "(uint8_t)(v[i] & 1)" : "v[i]";
    const std::string portable =
        fmt::format("    for (int i = 0; i < {}; i++)\n        {}{} = {};\n", t.lanes, masked ? "if (m[i]) " : "", at, value);
    const std::string native = masked && how.empty() && t.element != DType::boolean ? masked_access(t, true) : "";
    if (how.empty() && !masked && t.element != DType::boolean) body = "    __builtin_memcpy(p, &v, sizeof v);\n";
    else if (!native.empty()) body = fmt::format("#ifdef TESS_X86_64\n    {};\n#else\n{}#endif\n", native, portable);
    else body = portable;
    define("void", name, parameters, body, true);
    return name;
}

}  // namespace tessera::emit_c
