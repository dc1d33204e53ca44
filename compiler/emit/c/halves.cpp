// Vectors that are wider than the target's registers, as structs of two halves, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera::emit_c {

CType halved(CType t) { return {t.element, t.lanes / 2}; }

static int register_bytes(const Target &target) { return target.has("avx512f") ? 64 : target.has("avx2") ? 32 : 16; }

bool Operations::is_halved(CType t) const {
    if (t.element == DType::boolean && has_masks(t.lanes)) return false;
    // LLVM splits vectors well, and nothing else compiles C to WebAssembly.
    return target_.arch != Arch::wasm32 && t.lanes * bytes_of(t.element) > register_bytes(target_);
}

// "0, 1, 2"
std::string numbers(int from, int count) {
    std::string all;
    for (int i = from; i < from + count; i++) all += (i > from ? ", " : "") + std::to_string(i);
    return all;
}

// One half of a vector, as an expression.
std::string Operations::half_of(const std::string &vector, CType t, bool high) {
    if (is_halved(t)) return vector + (high ? ".high" : ".low");
    const int n = t.lanes / 2;
    const std::string name = (high ? "high_" : "low_") + short_name(t), half = type(halved(t)), whole = type(t);
    if (fresh(name)) {
        std::string body = fmt::format("    return __builtin_shufflevector(x, x, {});\n", numbers(high ? n : 0, n));
        if (t.element == DType::boolean && has_masks(t.lanes)) {
            // 4 lanes are no mask.
            std::string mask = has_masks(n) ? fmt::format("    return ({})(x >> {});\n", half, high ? n : 0)
                                            : fmt::format("    return ({})_mm_movm_epi32((__mmask8)(x >> {}));\n", half, high ? n : 0);
            body = fmt::format("#ifdef TESS_X86_64\n{}#else\n{}#endif\n", mask, body);
        }
        define(half, name, whole + " x", body, true);
    }
    return name + "(" + vector + ")";
}

// A vector of two halves, as an expression.
std::string Operations::joined(CType t, const std::string &low, const std::string &high) {
    const std::string whole = type(t), half = type(halved(t));
    if (is_halved(t)) return fmt::format("({}){{{}, {}}}", whole, low, high);
    const std::string name = "joined_" + short_name(t);
    if (fresh(name)) {
        std::string body = fmt::format("    return __builtin_shufflevector(low, high, {});\n", numbers(0, t.lanes));
        if (t.element == DType::boolean && has_masks(t.lanes)) {
            require(has_masks(t.lanes / 2), "a mask is joined of masks");
            body =
                fmt::format("#ifdef TESS_X86_64\n    return ({0})(low | ({0})high << {1});\n#else\n{2}#endif\n", whole, t.lanes / 2, body);
        }
        define(whole, name, fmt::format("{0} low, {0} high", half), body, true);
    }
    return fmt::format("{}({}, {})", name, low, high);
}

// An operation lane by lane, by that on halves. A scalar operand is the same for both.
std::string Operations::in_halves(const std::string &name, CType result, const std::vector<CType> &operands, const std::string &half) {
    if (!fresh(name)) return name;
    std::string parameters, arguments[2];
    for (size_t i = 0; i < operands.size(); i++) {
        const std::string x(1, "abc"[i]), comma = i ? ", " : "";
        parameters += comma + type(operands[i]) + " " + x;
        for (const bool high : {false, true}) arguments[high] += comma + (operands[i].lanes ? half_of(x, operands[i], high) : x);
    }
    const std::string whole = joined(result, half + "(" + arguments[0] + ")", half + "(" + arguments[1] + ")");
    define(type(result), name, parameters.empty() ? "void" : parameters, fmt::format("    return {};\n", whole), true);
    return name;
}

std::string Operations::infix(const std::string &sign, CType t) {
    static const std::map<std::string, std::string> names = {{" + ", "sum"},  {" - ", "difference"}, {"*", "product"}, {"/", "quotient"},
                                                             {" & ", "both"}, {" | ", "either"},     {" ^ ", "one_of"}};
    const std::string name = names.at(sign) + "_" + short_name(t);
    if (is_halved(t)) return in_halves(name, t, {t, t}, infix(sign, halved(t)));
    if (fresh(name)) define(type(t), name, fmt::format("{0} a, {0} b", type(t)), fmt::format("    return a{}b;\n", sign), true);
    return name;
}

std::string Operations::prefix(char sign, CType t) {
    const std::string name = (sign == '~' ? "inverted_" : "negated_") + short_name(t);
    if (is_halved(t)) return in_halves(name, t, {t}, prefix(sign, halved(t)));
    if (fresh(name)) define(type(t), name, type(t) + " a", fmt::format("    return {}a;\n", sign), true);
    return name;
}

// Access to a vector by that to its halves.
std::string Operations::access_in_halves(const std::string &name, const std::string &half, CType t, const std::string &how, bool masked,
                                         bool store) {
    if (!fresh(name)) return name;
    const int n = t.lanes / 2;
    const CType at{DType::index, t.lanes}, mask{DType::boolean, t.lanes};
    std::string parameters = fmt::format("{}{} *p", store ? "" : "const ", stored_type(t.element)), arguments[2];
    for (const bool high : {false, true}) {
        std::string &a = arguments[high];
        a = !high || how == "indexed" ? "p" : how == "strided" ? fmt::format("p + {} * step", n) : fmt::format("p + {}", n);
        if (how == "strided") a += ", step";
        if (how == "indexed") a += ", " + half_of("at", at, high);
        if (store) a += ", " + half_of("v", t, high);
        if (masked) a += ", " + half_of("m", mask, high);
    }
    if (how == "strided") parameters += ", int64_t step";
    if (how == "indexed") parameters += ", " + type(at) + " at";
    if (store) parameters += ", " + type(t) + " v";
    if (masked) parameters += ", " + type(mask) + " m";
    const std::string low = half + "(" + arguments[0] + ")", up = half + "(" + arguments[1] + ")";
    if (store) define("void", name, parameters, fmt::format("    {};\n    {};\n", low, up), true);
    else define(type(t), name, parameters, fmt::format("    return {};\n", joined(t, low, up)), true);
    return name;
}

}  // namespace tessera::emit_c
