// i32 += u8 * i8, four products, wrapping: vpdpbusd; ARM's sdot, twice; AVX2's vpmaddwd of the even bytes and of the odd ones.
#include <fmt/format.h>

#include "compiler/instructions/families.h"
#include "support/containers/contains.h"

namespace tessera {

static Expr dot4_meaning() {
    Expr sum = left(0, DType::i32);
    for (int i = 0; i < 4; i++) sum = fma(cast(DType::i32, input(2 * i, DType::u8)), cast(DType::i32, input(2 * i + 1, DType::i8)), sum);
    return sum;
}

// In words: two products of words, and two sums.
static InstructionCost dot4_cost(const Target &target) {
    return {.instructions = target.has("avx512_vnni") || target.has("asimddp") ? 1 : 4};
}

static CStep::Native dot4_intrinsics(int lanes, const Target &target) {
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
        return {"#ifdef TESS_ARM64",
                "vsubq_s32(vdotq_s32((int32x4_t)sum, veorq_s8((int8x16_t)a, vdupq_n_s8(-128)), (int8x16_t)b), vdotq_s32(vdupq_n_s32(0), "
                "vdupq_n_s8(-128), (int8x16_t)b))"};
    return {};
}

static CStep dot4_in_c() {
    CStep step;
    step.portable = R"(    $result r;
    uint8_t x[$elements];
    int8_t y[$elements];
    __builtin_memcpy(x, &a, sizeof x);
    __builtin_memcpy(y, &b, sizeof y);
    for (int i = 0; i < $lanes; i++) {
        uint32_t s = (uint32_t)sum[i];
        for (int j = 4 * i; j < 4 * i + 4; j++) s += (uint32_t)(x[j] * y[j]);
        r[i] = (int32_t)s;
    }
    return r;
)";
    step.native = dot4_intrinsics;
    return step;
}

static VectorForm unsigned_words(VectorForm x) { return vector_form::bits_as({'u', 32}, std::move(x)); }
static VectorForm as_sum(VectorForm x) { return vector_form::bits_as({'i', 32}, std::move(x)); }

static VectorForm plus_products(VectorForm sum, VectorForm a, VectorForm b) {
    using namespace vector_form;
    return std::move(sum) + added_up(cast({'i', 32}, widened_product(std::move(a), std::move(b), {'i', 16})), 1);
}

// a b is (a - 128) b - (-128) b; the latter is the same for all rows of a register tile. Sums wrap.
static VectorForm by_signed_bytes() {
    using namespace vector_form;
    const VectorForm shifted = bits_as({'i', 8}, a() ^ constant({'u', 8}, 128, 4)), least = constant({'i', 8}, -128, 4);
    return as_sum(unsigned_words(plus_products(sum(), shifted, b())) -
                  unsigned_words(plus_products(constant({'i', 32}, 0, 1), least, b())));
}

// The even bytes as words of 16 bits, then the odd ones. A sum of two of their products fits 32 bits, and is one instruction.
static VectorForm by_words() {
    using namespace vector_form;
    const LaneType word = {'i', 16};
    const VectorForm u = bits_as({'u', 16}, a()), s = bits_as(word, b());
    auto pairs = [&](const VectorForm &x, const VectorForm &y) {
        return unsigned_words(added_up(widened_product(bits_as(word, x), y, {'i', 32}), 1));
    };
    return as_sum(unsigned_words(sum()) + pairs(u & constant({'u', 16}, 0xff, 2), (s << 8) >> 8) + pairs(u >> 8, s >> 8));
}

// Where a is at most 127: a sum of two products of bytes fits 16 bits, and is one instruction, which saturates.
static VectorForm in_words() {
    using namespace vector_form;
    const VectorForm pairs = added_up_saturated(widened_product(a(), b(), {'i', 16}), 2);
    return as_sum(unsigned_words(sum()) + unsigned_words(added_up(widened_product(pairs, constant({'i', 16}, 1, 2), {'i', 32}), 1)));
}

static VectorForm dot4_in_vectors(const std::vector<std::string> &features, int64_t largest) {
    if (contains(features, "asimddp")) return by_signed_bytes();
    // Halide has a name for processors with both only.
    if (contains(features, "avx512_vnni") && contains(features, "avx512_bf16"))
        return plus_products(vector_form::sum(), vector_form::a(), vector_form::b());
    return largest <= INT8_MAX ? in_words() : by_words();
}

Instruction built_in_families::dot4() {
    return {.name = "dot4",
            .shape = {1, 1, 4},
            .accumulator = DType::i32,
            .first = DType::u8,
            .second = DType::i8,
            .meaning = dot4_meaning(),
            .features = {"avx2", "avx512_vnni", "asimddp"},
            .peak = "u8s8",
            .cost = dot4_cost,
            .c = dot4_in_c(),
            .vectors = dot4_in_vectors};
}

}  // namespace tessera
