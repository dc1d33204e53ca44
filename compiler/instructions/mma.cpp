// NVIDIA's tensor cores, a warp at a time (PTX ISA, mma.sync), for devices of compute capability 8.0 and later.
//
//   mma_bf16, mma_f16   f32 += bf16 * bf16 or f16 * f16, 16 products: what is rounded, where, is not published and differs between
//              generations. The model is a sum in f64 that is rounded once
//   mma_s8, mma_u8s8   i32 += i8 * i8 or u8 * i8, 32 products, wrapping: exact
#include "compiler/instructions/families.h"

namespace tessera {

// A thread holds groups of 32 bits: its lane's quarter says which row or column, its place in it which products.
static Instruction of_warps(const char *name, DType accumulator, DType first, DType second, const char *ptx) {
    const int group = 4 / size_of(first), products = 8 * group;
    const Expr lane = variable("lane"), i = variable("i"), of = Expr(group);
    const Expr quarter = lane / 4, product = lane % 4 * of + i % of;
    WarpForm form;
    form.instruction = ptx;
    form.a = {quarter + i / of % 2 * 8, product + i / (of * 2) * (of * 4)};
    form.b = {quarter, product + i / of * (of * 4)};
    form.accumulator = {quarter + i / 2 * 8, lane % 4 * 2 + i % 2};
    form.has_ldmatrix = true;
    Instruction family;
    family.name = name;
    family.shape = {16, 8, products};
    family.accumulator = accumulator, family.first = first, family.second = second;
    family.scope = ExecutionScope::warp;
    family.a = {{"M", 0, false}, {"K", 0, false}}, family.b = {{"N", 0, false}, {"K", 0, false}};
    family.registers = 48;  // of a thread's 255, which hold 4 of an accumulator's and of a's each, and 2 of b's
    family.warp = form;
    return family;
}

static Instruction of_floats(const char *name, DType element, const char *ptx) {
    Instruction family = of_warps(name, DType::f32, element, element, ptx);
    const auto in_f64 = [](const Expr &e) { return cast(DType::f64, e); };
    Expr sum = in_f64(left(0, DType::f32));
    for (int i = 0; i < family.shape.k; i++) sum = fma(in_f64(input(2 * i, element)), in_f64(input(2 * i + 1, element)), sum);
    family.meaning = cast(DType::f32, sum);
    family.is_exact = false;
    return family;
}

Instruction built_in_families::mma_bf16() {
    return of_floats("mma_bf16", DType::bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
}

Instruction built_in_families::mma_f16() { return of_floats("mma_f16", DType::f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"); }

static Instruction warps_of_bytes(const char *name, DType first, const char *ptx) {
    Instruction family = of_warps(name, DType::i32, first, DType::i8, ptx);
    family.meaning = left(0, DType::i32);
    for (int i = 0; i < family.shape.k; i++)
        family.meaning = fma(cast(DType::i32, input(2 * i, first)), cast(DType::i32, input(2 * i + 1, DType::i8)), family.meaning);
    return family;
}

Instruction built_in_families::mma_s8() { return warps_of_bytes("mma_s8", DType::i8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"); }

Instruction built_in_families::mma_u8s8() {
    return warps_of_bytes("mma_u8s8", DType::u8, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32");
}

}  // namespace tessera
