// ARM's products of small matrices: 2 rows of a by 2 columns of b, each of 8 bytes side by side (Arm Architecture Reference Manual,
// DDI 0487, C7.2: SMMLA, USMMLA, BFMMLA; FEAT_I8MM, FEAT_BF16).
//
//   smmla, usmmla   i32 += i8 * i8 or u8 * i8, 8 products, wrapping
//   bfmmla          f32 += bf16 * bf16, 4 products. Two at a time: both are rounded to odd, and so are their sum and its sum with the
//                   accumulator; subnormal operands and results are zeros of their sign (BFMatMulAdd where FPCR.EBF is 0, as systems
//                   start programs; the rounding mode counts for nothing)
#include "algorithms/expr/function.h"
#include "algorithms/functions/conversions.h"
#include "compiler/instructions/families.h"

namespace tessera {

static Instruction of_two_rows(const char *name, DType accumulator, DType first, DType second, const char *feature) {
    return {.name = name,
            .shape = {2, 2, 8 / size_of(first)},
            .accumulator = accumulator,
            .first = first,
            .second = second,
            .a = {{"M", 0, false}, {"K", 0, false}},
            .b = {{"N", 0, false}, {"K", 0, false}},
            .registers = 32,
            .features = {feature}};
}

static Instruction mmla_of_bytes(const char *name, DType first, const char *native) {
    Instruction family = of_two_rows(name, DType::i32, first, DType::i8, "i8mm");
    family.meaning = left(0, DType::i32);
    for (int i = 0; i < family.shape.k; i++)
        family.meaning = fma(cast(DType::i32, input(2 * i, first)), cast(DType::i32, input(2 * i + 1, DType::i8)), family.meaning);
    FragmentForm form;
    form.held = FragmentForm::Held::vector;
    form.portable = R"(    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++) {
            uint32_t s = (uint32_t)sum[2 * m + n];
            for (int k = 0; k < 8; k++) s += (uint32_t)(a[8 * m + k] * b[8 * n + k]);
            sum[2 * m + n] = (int32_t)s;
        }
)";
    form.native = native;
    family.fragments = form;
    return family;
}

// x + y rounded to odd: of the two neighbours of an inexact sum, the one whose last bit is 1. A sum that is rounded to nearest is one of
// both, and its error, which is a number of f32 (Knuth 1997, 4.2.2 B), says on which side the other is. What is less than 2^128 is at most
// the largest number.
static Expr sum_to_odd(const Expr &x, const Expr &y) {
    auto number = [](double value) { return constant(DType::f32, value); };
    auto bits = [](const Expr &e) { return bitcast(DType::i32, e); };
    auto integer = [](int64_t value) { return constant_int(DType::i32, value); };
    auto error_of = [](const Expr &a, const Expr &b, const Expr &sum) {
        const Expr second = sum - a;
        return (a - (sum - second)) + (b - second);
    };
    const Expr nearest = x + y, error = error_of(x, y, nearest);
    const Expr is_even = bits(nearest) % integer(2) == integer(0), is_inexact = error < number(0) || error > number(0);
    // Magnitudes grow with their bits.
    const Expr away = (nearest < number(0) && error < number(0)) || (nearest > number(0) && error > number(0));
    const Expr odd = bitcast(DType::f32, select(away, bits(nearest) + integer(1), bits(nearest) - integer(1)));
    const Expr half_x = x * number(0.5), half_y = y * number(0.5), half = half_x + half_y, half_error = error_of(half_x, half_y, half);
    const Expr is_below =
        abs(half) == number(0x1p127) && ((half < number(0) && half_error > number(0)) || (half > number(0) && half_error < number(0)));
    const Expr largest = number(0x1.fffffep127);
    return select(is_below, select(half < number(0), -largest, largest), select(is_even && is_inexact, odd, nearest));
}

static Expr bfmmla_meaning() {
    auto flushed = [](const Expr &e) { return flush_subnormals(e, DType::f32); };
    auto element = [&](int i) { return flushed(cast(DType::f32, input(i, DType::bf16))); };
    auto product = [&](int i) { return flushed(element(2 * i) * element(2 * i + 1)); };  // exact, but for infinities
    auto add = [&](const Expr &x, const Expr &y) { return flushed(sum_to_odd(x, y)); };
    Expr sum = flushed(left(0, DType::f32));
    for (int i = 0; i < 4; i += 2) sum = add(sum, add(product(i), product(i + 1)));
    return expand_functions(sum);
}

Instruction built_in_families::bfmmla() {
    Instruction family = of_two_rows("bfmmla", DType::f32, DType::bf16, DType::bf16, "bf16");
    family.meaning = bfmmla_meaning();
    family.flushes = true;
    FragmentForm form;
    form.held = FragmentForm::Held::vector;
    form.helpers = {flushed_fma_in_c().front(),
                    {"float", "sum_to_odd_f32", "float x, float y",
                     R"(    const float s = x + y, second = s - x, error = (x - (s - second)) + (y - second);
    const float half_x = x * 0.5f, half_y = y * 0.5f, half = half_x + half_y, half_second = half - half_x,
                half_error = (half_x - (half - half_second)) + (half_y - half_second);
    if (half == 0x1p127f && half_error < 0) return 0x1.fffffep127f;
    if (half == -0x1p127f && half_error > 0) return -0x1.fffffep127f;
    const int32_t bits = $bits_of_f32(s);
    if (bits & 1 || !(error < 0 || error > 0)) return s;
    return $f32_of_bits((s < 0) == (error < 0) ? bits + 1 : bits - 1);
)"}};
    form.portable = R"(    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++) {
            float s = flushed_f32(sum[2 * m + n]), p[4];
            for (int k = 0; k < 4; k++) {
                const float x = $f32_of_bits((int32_t)((uint32_t)a[4 * m + k] << 16));
                const float y = $f32_of_bits((int32_t)((uint32_t)b[4 * n + k] << 16));
                p[k] = flushed_f32(flushed_f32(x) * flushed_f32(y));
            }
            for (int k = 0; k < 4; k += 2) s = flushed_f32(sum_to_odd_f32(s, flushed_f32(sum_to_odd_f32(p[k], p[k + 1]))));
            sum[2 * m + n] = s;
        }
)";
    form.native = "vreinterpretq_u8_f32(vbfmmlaq_f32(vreinterpretq_f32_u8(sum), vreinterpretq_bf16_u8(a), vreinterpretq_bf16_u8(b)))";
    family.fragments = form;
    return family;
}

Instruction built_in_families::smmla() {
    return mmla_of_bytes("smmla", DType::i8,
                         "vreinterpretq_u8_s32(vmmlaq_s32(vreinterpretq_s32_u8(sum), vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)))");
}
Instruction built_in_families::usmmla() {
    return mmla_of_bytes("usmmla", DType::u8, "vreinterpretq_u8_s32(vusmmlaq_s32(vreinterpretq_s32_u8(sum), a, vreinterpretq_s8_u8(b)))");
}

}  // namespace tessera
