// fma on processors that have none: every bit, where a product's sum lies halfway between two floats, among subnormals, at the
// limits of the format.
#include <catch2/catch.hpp>

#include <bit>
#include <random>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/harness.h"

namespace tessera::test_exact_fma {

using namespace tessera::test;

static float operand(std::mt19937_64 &random) {
    const auto bits = static_cast<uint32_t>(random());
    auto exponent = [&](uint32_t from, uint32_t count) { return (from + static_cast<uint32_t>(random() % count)) << 23; };
    switch (random() % 5) {
    case 0: return std::bit_cast<float>(bits);                                    // anything
    case 1: return std::bit_cast<float>((bits & 0x807fffff) | exponent(40, 30));  // products near the least float
    case 2: return std::bit_cast<float>((bits & 0x80000fff) | exponent(0, 20));   // few bits, small and subnormal
    case 3: return std::bit_cast<float>((bits & 0x80fff000) | 0x3f000000);        // few bits: ties
    default: return std::bit_cast<float>((bits & 0x80ffffff) | 0x3f000000);
    }
}

static void check(const Target &target, const Build &build = {}) {
    Builder f("fma", Numerics{});
    const Dim N = f.dim("N");
    const Tile a = f.input("a", {N}), b = f.input("b", {N}), c = f.input("c", {N});
    const Algorithm algorithm = f.output("y", fma(a, b, c)).build();
    Knobs vectors;
    vectors.vector = {{"N", 4}};
    const TileProgram program = lowered("fma_of", algorithm, {{"y", vectors}}, target);
    const Loaded loaded({program}, target, build);
    const int64_t count = 200003;
    Arrays inputs = make_inputs(algorithm, {{"N", count}}, 1);
    std::mt19937_64 random(17);
    for (auto &[name, array] : inputs)
        for (int64_t i = 0; i < count; i++) array.set(i, Scalar::of_real(DType::f32, operand(random)));
    // 2^-139 and half of the least float, but for its last bit; the product of two 24-bit numbers just off a tie
    const float hard[][3] = {{0x1.fffffcp-76f, 0x1.000002p-75f, 0x1.004p-139f}, {0x1.1acp-138f, 0x1.56fcp+127f, -0x1.0005p-122f}};
    for (int i = 0; i < 2; i++)
        for (int operand = 0; operand < 3; operand++)
            inputs.at(std::string(1, "abc"[operand])).set(i, Scalar::of_real(DType::f32, hard[i][operand]));
    INFO(target.name << " " << build.compiler << " " << build.options);
    const Extents shape = {{"N", count}};
    CHECK(differ_in_bits(loaded.run(program, shape, inputs, {}, Layout{}), run_interpreter(program, shape, inputs, {})) == "");
}

TEST_CASE("fma without an instruction is exact: x86-64") {
    check(target_named("x86-64"));
    check(target_named("x86-64"), {"gcc", "-O2"});
}

TEST_CASE("fma without an instruction is exact: wasm32", "[.][wasm32]") {
    const Target target = target_named("wasm32");
    if (!can_emulate(target)) return;
    check(target);
    check(target, {"clang", "-O2"});
    check(target, {"clang", "-O2 -mno-simd128"});
}

}  // namespace tessera::test_exact_fma
