// f32 += bf16 * bf16, two products, the second first, each by a flushed_fma (algorithms/functions/conversions.h), whatever the rounding
// mode: vdpbf16ps of AVX512-BF16 (Intel, Architecture Instruction Set Extensions, 319433-040, 2.4).
#include <fmt/format.h>

#include "algorithms/expr/function.h"
#include "algorithms/functions/conversions.h"
#include "compiler/instructions/families.h"

namespace tessera {

static Expr dot2_meaning() {
    auto element = [](int i) { return cast(DType::f32, input(i, DType::bf16)); };
    auto step = [&](int i, const Expr &sum) { return flushed_fma(element(2 * i), element(2 * i + 1), sum); };
    return expand_functions(step(0, step(1, left(0, DType::f32))));
}

// Sapphire Rapids and its successors, which avx512_fp16 tells from AMD's, begin one in two cycles, and two multiply-adds in each; Zen 4
// and Zen 5 begin as many as multiply-adds.
static InstructionCost dot2_cost(const Target &target) { return {.slots = target.has("avx512_fp16") ? 4.0 : 1.0}; }

static CStep::Native dot2_intrinsics(int lanes, const Target &target) {
    const int bits = 32 * lanes;
    const bool fits = bits == 512 || ((bits == 256 || bits == 128) && target.has("avx512vl"));
    if (!fits || !target.has("avx512_bf16")) return {};
    const std::string m = bits == 128 ? "_mm" : fmt::format("_mm{}", bits), v = fmt::format("__m{}", bits);
    return {"#ifdef TESS_X86_64", fmt::format("{0}_dpbf16_ps(({1})sum, ({1}bh)a, ({1}bh)b)", m, v)};
}

std::vector<CStep::Function> built_in_families::flushed_fma_in_c() {
    return {{"float", "flushed_f32", "float x",
             R"(    const int32_t bits = $bits_of_f32(x);
    return bits & 0x7f800000 ? x : $f32_of_bits(bits & INT32_MIN);
)"},
            {"float", "flushed_fma_f32", "float a, float b, float c",
             R"(    const float x = flushed_f32(a), y = flushed_f32(b), z = flushed_f32(c), r = $fma(x, y, z);
    if (!(r >= -0x1p-126f && r <= 0x1p-126f)) return r;
    const float scaled = $fma(x * 0x1p60f, y, z * 0x1p60f); /* shows what rounds up to 2^-126 */
    return scaled > -0x1p-66f && scaled < 0x1p-66f ? $f32_of_bits($bits_of_f32(r) & INT32_MIN) : r;
)"}};
}

static CStep dot2_in_c() {
    CStep step;
    step.helpers = built_in_families::flushed_fma_in_c();
    step.portable = R"(    $result r;
    uint16_t x[$elements], y[$elements];
    __builtin_memcpy(x, &a, sizeof x);
    __builtin_memcpy(y, &b, sizeof y);
    for (int i = 0; i < $lanes; i++) {
        float s = sum[i];
        for (int j = 2 * i + 1; j >= 2 * i; j--)
            s = flushed_fma_f32($f32_of_bits((int32_t)((uint32_t)x[j] << 16)), $f32_of_bits((int32_t)((uint32_t)y[j] << 16)), s);
        r[i] = s;
    }
    return r;
)";
    step.native = dot2_intrinsics;
    return step;
}

static VectorForm dot2_in_vectors(const std::vector<std::string> &, int64_t) {
    using namespace vector_form;
    auto wide = [](VectorForm x) { return cast({'f', 32}, bits_as({'b', 16}, std::move(x))); };
    return sum() + added_up(wide(a()) * wide(b()), 1);
}

Instruction built_in_families::dot2() {
    return {.name = "dot2",
            .shape = {1, 1, 2},
            .accumulator = DType::f32,
            .first = DType::bf16,
            .second = DType::bf16,
            .meaning = dot2_meaning(),
            .features = {"avx512_bf16"},
            .flushes = true,
            .peak = "bf16",
            .cost = dot2_cost,
            .c = dot2_in_c(),
            .vectors = dot2_in_vectors};
}

}  // namespace tessera
