// The instruction families that take a group of elements for each lane, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera::emit_c {

std::string Operations::words(CType t) {
    const std::string name = "words_" + short_name(t), result = type(t);
    if (fresh(name))
        define(result, name, "const void *p", fmt::format("    {} r;\n    __builtin_memcpy(&r, p, sizeof r);\n    return r;\n", result),
               t.lanes > 0);
    return name;
}

// The condition under which a compiler has the instruction, and what it gives; "" where the target has none of this width.
using MachineStep = std::pair<std::string, std::string>;

static MachineStep machine_dot2(int lanes, const Target &target) {
    const int bits = 32 * lanes;
    const bool fits = bits == 512 || ((bits == 256 || bits == 128) && target.has("avx512vl"));
    if (!fits || !target.has("avx512_bf16")) return {};
    const std::string m = bits == 128 ? "_mm" : fmt::format("_mm{}", bits), v = fmt::format("__m{}", bits);
    return {"#ifdef TESS_X86_64", fmt::format("{0}_dpbf16_ps(({1})sum, ({1}bh)a, ({1}bh)b)", m, v)};
}

static MachineStep machine_dot4(int lanes, const Target &target) {
    const int bits = 32 * lanes;
    const bool fits = bits == 512 || ((bits == 256 || bits == 128) && target.has("avx512vl"));
    const std::string m = bits == 128 ? "_mm" : fmt::format("_mm{}", bits), v = fmt::format("__m{}", bits);
    if (fits && target.has("avx512_vnni"))
        return {"#ifdef TESS_X86_64", fmt::format("{0}_dpbusd_epi32(({1}i)sum, ({1}i)a, ({1}i)b)", m, v)};
    // Even and odd bytes as words of 16 bits: a sum of two of their products fits 32 bits.
    if (bits == 512 ? target.has("avx512bw") : (bits == 256 || bits == 128) && target.has("avx2")) {
        const std::string all = fmt::format("{}_and_si{}", m, bits);
        return {
            "#ifdef TESS_X86_64",
            fmt::format(
                "{0}_add_epi32({0}_add_epi32(({1}i)sum, {0}_madd_epi16({2}(({1}i)a, {0}_set1_epi16(255)), "
                "{0}_srai_epi16({0}_slli_epi16(({1}i)b, 8), 8))), {0}_madd_epi16({0}_srli_epi16(({1}i)a, 8), {0}_srai_epi16(({1}i)b, 8)))",
                m, v, all)};
    }
    if (lanes == 4 && target.has("asimddp"))
        return {"#ifdef TESS_DOTPROD",
                "vsubq_s32(vdotq_s32((int32x4_t)sum, veorq_s8((int8x16_t)a, vdupq_n_s8(-128)), (int8x16_t)b), vdotq_s32(vdupq_n_s32(0), "
                "vdupq_n_s8(-128), (int8x16_t)b))"};
    return {};
}

std::string Operations::group_step(InstructionFamily family, CType t) {
    const std::string name = name_of(family) + ("_" + short_name(t)), result = type(t), words = type({DType::i32, t.lanes});
    if (!fresh(name)) return name;
    std::string portable;
    MachineStep machine;
    switch (family) {
    case InstructionFamily::fma:
    case InstructionFamily::mul_add: throw InternalError(std::string(name_of(family)) + " takes no group of elements");
    case InstructionFamily::dot4:
        machine = machine_dot4(t.lanes, target_);
        portable = fmt::format(
            "    {0} r;\n    uint8_t x[{1}];\n    int8_t y[{1}];\n    __builtin_memcpy(x, &a, sizeof x);\n    __builtin_memcpy(y, &b, "
            "sizeof y);\n"
            "    for (int i = 0; i < {2}; i++) {{\n        uint32_t s = (uint32_t)sum[i];\n"
            "        for (int j = 4 * i; j < 4 * i + 4; j++) s += (uint32_t)(x[j] * y[j]);\n        r[i] = (int32_t)s;\n    }}\n    return "
            "r;\n",
            result, 4 * t.lanes, t.lanes);
        break;
    case InstructionFamily::dot2: {
        machine = machine_dot2(t.lanes, target_);
        // The second element first.
        const std::string value_of = bitcast(DType::f32, {DType::i32, 0}), bits_of = bitcast(DType::i32, {DType::f32, 0});
        const std::string fused = fma({DType::f32, 0});
        if (fresh("flushed_fma_f32")) {
            define("float", "flushed_f32", "float x",
                   fmt::format("    const int32_t bits = {}(x);\n    return bits & 0x7f800000 ? x : {}(bits & INT32_MIN);\n", bits_of,
                               value_of),
                   false);
            define("float", "flushed_fma_f32", "float a, float b, float c",
                   fmt::format("    const float x = flushed_f32(a), y = flushed_f32(b), z = flushed_f32(c), r = {0}(x, y, z);\n"
                               "    if (!(r >= -0x1p-126f && r <= 0x1p-126f)) return r;\n"
                               "    const float scaled = {0}(x * 0x1p60f, y, z * 0x1p60f);  /* shows what rounds up to 2^-126 */\n"
                               "    return scaled > -0x1p-66f && scaled < 0x1p-66f ? {1}({2}(r) & INT32_MIN) : r;\n",
                               fused, value_of, bits_of),
                   false);
        }
        portable = fmt::format(
            "    {0} r;\n    uint16_t x[{1}], y[{1}];\n    __builtin_memcpy(x, &a, sizeof x);\n    __builtin_memcpy(y, &b, sizeof y);\n"
            "    for (int i = 0; i < {2}; i++) {{\n        float s = sum[i];\n        for (int j = 2 * i + 1; j >= 2 * i; j--)\n"
            "            s = flushed_fma_f32({3}((int32_t)((uint32_t)x[j] << 16)), {3}((int32_t)((uint32_t)y[j] << 16)), s);\n"
            "        r[i] = s;\n    }}\n    return r;\n",
            result, 2 * t.lanes, t.lanes, value_of);
        break;
    }
    }
    const auto &[when, native] = machine;
    if (!native.empty()) portable = fmt::format("{}\n    return ({}){};\n#else\n{}#endif\n", when, result, native, portable);
    define(result, name, fmt::format("{} sum, {} a, {} b", result, words, words), portable, true);
    return name;
}

}  // namespace tessera::emit_c
