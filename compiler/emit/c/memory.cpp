// Access to memory by vectors, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

// A vector of bools as the processor's own mask; "" where it has none.
std::string Operations::machine_mask(int lanes) const {
    if (has_masks(lanes)) return "m";
    if (lanes == 4 && target_.has("avx512dq") && target_.has("avx512vl")) return "_mm_movepi32_mask((__m128i)m)";
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
    if (is_halved(t) || (how == "indexed" && is_halved({DType::index, t.lanes})) || (masked && is_halved({DType::boolean, t.lanes})))
        return access_in_halves(name, load({t.element, t.lanes / 2}, how, masked), t, how, masked, false);
    if (!fresh(name)) return name;
    if (t.element == DType::boolean) {
        // As bytes, then as lanes that are 0 or -1.
        const CType bytes{DType::u8, t.lanes};
        const std::string inner = load(bytes, how, masked);
        std::string parameters = "const uint8_t *p", arguments = "p";
        if (how == "strided") parameters += ", int64_t step", arguments += ", step";
        if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at", arguments += ", at";
        if (masked) parameters += ", " + result + " m", arguments += ", m";
        const std::string read = inner + "(" + arguments + ")";
        define(result, name, parameters,
               has_masks(t.lanes) ? fmt::format("    return {}({}, ({}){});\n", compare(Op::ne, bytes), read, type(bytes), zero(bytes))
                                  : fmt::format("    return ({0})(__builtin_convertvector({1}, {0}) != 0);\n", result, read),
               true);
        return name;
    }
    std::string parameters = fmt::format("const {} *p", element), body;
    if (how == "strided") parameters += ", int64_t step";
    if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at";
    if (masked) parameters += ", " + mask_type(t.lanes) + " m";
    const std::string at = how.empty() ? "p[i]" : how == "strided" ? "p[i * step]" : "p[at[i]]";
    const std::string holds = masked && has_masks(t.lanes) ? lane_of_mask(t.lanes) + "(m, i)" : "m[i]";
    const std::string portable =
        masked ? fmt::format("    {} r = {{0}};\n    for (int i = 0; i < {}; i++)\n        if ({}) r[i] = {};\n    return r;\n", result,
                             t.lanes, holds, at)
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
    if (is_halved(t) || (how == "indexed" && is_halved({DType::index, t.lanes})) || (masked && is_halved({DType::boolean, t.lanes})))
        return access_in_halves(name, store({t.element, t.lanes / 2}, how, masked), t, how, masked, true);
    if (!fresh(name)) return name;
    std::string parameters = fmt::format("{} *p", element), body;
    if (how == "strided") parameters += ", int64_t step";
    if (how == "indexed") parameters += ", " + type({DType::index, t.lanes}) + " at";
    parameters += ", " + vector + " v";
    if (masked) parameters += ", " + mask_type(t.lanes) + " m";
    const std::string at = how.empty() ? "p[i]" : how == "strided" ? "p[i * step]" : "p[at[i]]";
    const bool masks = has_masks(t.lanes);
    const std::string lane = masks && (masked || t.element == DType::boolean) ? lane_of_mask(t.lanes) : "";
    const std::string value = t.element != DType::boolean ? "v[i]"
                              : masks                     ? fmt::format("(uint8_t)({}(v, i) & 1)", lane)
                                                          : "(uint8_t)(v[i] & 1)";
    const std::string holds = !masked ? "" : masks ? fmt::format("if ({}(m, i)) ", lane) : "if (m[i]) ";
    const std::string portable = fmt::format("    for (int i = 0; i < {}; i++)\n        {}{} = {};\n", t.lanes, holds, at, value);
    const std::string native = masked && how.empty() && t.element != DType::boolean ? masked_access(t, true) : "";
    if (how.empty() && !masked && t.element != DType::boolean) body = "    __builtin_memcpy(p, &v, sizeof v);\n";
    else if (!native.empty()) body = fmt::format("#ifdef TESS_X86_64\n    {};\n#else\n{}#endif\n", native, portable);
    else body = portable;
    define("void", name, parameters, body, true);
    return name;
}

}  // namespace tessera::emit_c
