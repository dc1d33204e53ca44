// AMX: tiles of 16 rows of 64 bytes, each accumulator by itself (Intel, Architecture Instruction Set Extensions, 319433-040, 3).
//
//   amx_bf16   f32 += bf16 * bf16, 32 products: tdpbf16ps. The products of even and of odd positions are two chains of flushed_fma
//              (algorithms/functions/conversions.h) that begin with 0; their sum is added to the accumulator, by two additions of that
//              kind. So 32 products are one step of the order of additions. Neither reads nor writes the rounding mode
//   amx_u8s8, amx_s8s8   i32 += u8 * i8 or i8 * i8, 64 products, wrapping: tdpbusd, tdpbssd
#include "algorithms/expr/function.h"
#include "algorithms/functions/conversions.h"
#include "compiler/instructions/families.h"

namespace tessera {

static constexpr int rows = 16, columns = 16, row_bytes = 64;

// Elements of `size` bytes, of which a row of `b` interleaves as many of each column as 32 bits have.
static Instruction of_tiles(const char *name, DType accumulator, DType first, DType second) {
    const int products = row_bytes / size_of(first), group = 4 / size_of(first);
    return {.name = name,
            .shape = {rows, columns, products},
            .accumulator = accumulator,
            .first = first,
            .second = second,
            .a = {{"M", 0, false}, {"K", 0, false}},
            .b = {{"K", group, false}, {"N", 0, false}, {"K", group, true}},
            .registers = 8,
            // A step takes 16 cycles, in each of which two multiply-adds may start: 2 slots for each row.
            .cost = [](const Target &) { return InstructionCost{1, 2}; }};
}

static Expr amx_bf16_meaning(int products) {
    const Expr zero = constant(DType::f32, 0), one = constant(DType::f32, 1);
    auto element = [](int i) { return cast(DType::f32, input(i, DType::bf16)); };
    auto chain = [&](int first) {
        Expr sum = zero;
        for (int i = first; i < products; i += 2) sum = flushed_fma(element(2 * i), element(2 * i + 1), sum);
        return sum;
    };
    auto add = [&](const Expr &x, const Expr &y) { return flushed_fma(x, one, y); };
    return expand_functions(add(add(chain(0), chain(1)), left(0, DType::f32)));
}

static FragmentForm amx_bf16_in_c() {
    FragmentForm form;
    form.helpers = built_in_families::flushed_fma_in_c();
    form.portable = R"(    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float chains[2] = {0, 0};
            for (int k = 0; k < 32; k++) {
                const float x = $f32_of_bits((int32_t)((uint32_t)a[32 * m + k] << 16));
                const float y = $f32_of_bits((int32_t)((uint32_t)b[32 * (k / 2) + 2 * n + k % 2] << 16));
                chains[k % 2] = flushed_fma_f32(x, y, chains[k % 2]);
            }
            sum[16 * m + n] = flushed_fma_f32(flushed_fma_f32(chains[0], 1, chains[1]), 1, sum[16 * m + n]);
        }
)";
    form.native = "_tile_dpbf16ps";
    return form;
}

static Instruction of_bytes(const char *name, DType first, const char *native) {
    Instruction family = of_tiles(name, DType::i32, first, DType::i8);
    family.peak = "amx_u8s8";
    family.meaning = left(0, DType::i32);
    for (int i = 0; i < family.shape.k; i++)
        family.meaning = fma(cast(DType::i32, input(2 * i, first)), cast(DType::i32, input(2 * i + 1, DType::i8)), family.meaning);
    family.features = {"amx_int8"};
    FragmentForm form;
    form.portable = R"(    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            uint32_t s = (uint32_t)sum[16 * m + n];
            for (int k = 0; k < 64; k++) s += (uint32_t)(a[64 * m + k] * b[64 * (k / 4) + 4 * n + k % 4]);
            sum[16 * m + n] = (int32_t)s;
        }
)";
    form.native = native;
    family.fragments = form;
    return family;
}

Instruction built_in_families::amx_bf16() {
    Instruction family = of_tiles("amx_bf16", DType::f32, DType::bf16, DType::bf16);
    family.meaning = amx_bf16_meaning(family.shape.k);
    family.features = {"amx_bf16"};
    family.peak = "amx_bf16";
    family.flushes = true;
    family.fragments = amx_bf16_in_c();
    return family;
}

Instruction built_in_families::amx_u8s8() { return of_bytes("amx_u8s8", DType::u8, "_tile_dpbusd"); }
Instruction built_in_families::amx_s8s8() { return of_bytes("amx_s8s8", DType::i8, "_tile_dpbssd"); }

}  // namespace tessera
