// Minima, maxima and selects give the zero that their definition takes, not the one that a processor's instruction orders first, and keep
// NaN as it says, whichever operand is a constant; so do quotients by zeros.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/harness.h"

namespace tessera::test_signed_zeros {

using namespace tessera::test;

static Algorithm chosen(const std::string &name, DType type) {
    Builder f(name, numerics_named(name_of(type)));
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), z = f.input("z", {N});
    int outputs = 0;
    auto output = [&](const Tile &y) { f.output("y" + std::to_string(outputs++), y); };
    const Tile zero = f.scalar(type, 0);
    output(max(zero, x)), output(max(x, zero)), output(min(zero, x)), output(min(x, zero));
    output(select(x < zero, zero, x)), output(select(x < zero, x, zero)), output(select(zero < x, x, zero)),
        output(select(zero < x, zero, x));
    output(select(x <= zero, zero, x)), output(select(x <= zero, x, zero)), output(select(zero <= x, x, zero)),
        output(select(zero <= x, zero, x));
    output(max(x, z)), output(min(x, z)), output(max(min(x, 6), -1)), output(min(f.scalar(type, 6), max(f.scalar(type, -1), x)));
    output(x / zero), output(x / f.scalar(type, -0.0)), output(x / (z * zero)), output(f.scalar(type, 1) / x);
    output(max(x, f.scalar(type, NAN))), output(min(f.scalar(type, NAN), x));
    output(select(x < z, z, x)), output(select(x < z, x, z)), output(select(z < x, z, x)), output(select(z < x, x, z));
    return f.build();
}

static void check(const Target &target, const std::vector<Build> &builds = {{}}) {
    std::vector<Algorithm> algorithms;
    std::vector<TileProgram> programs;
    for (const DType type : {DType::f32, DType::f64})
        for (const int64_t lanes : {1, 2, 4, 8}) {
            const std::string name = std::string(name_of(type)) + "_by_" + std::to_string(lanes);
            const Algorithm &algorithm = algorithms.emplace_back(chosen(name, type));
            KnobsByStage stages;
            if (lanes > 1)
                for (const Stage &s : algorithm.stages()) stages[s.name].vector = {{"N", lanes}};
            programs.push_back(lowered(name, algorithm, stages, target));
        }
    const double numbers[] = {-0.0, 0.0, -1, 1, std::numeric_limits<double>::quiet_NaN(), -0.0, -0.0, 0.0, 0.0};
    const Extents shape = {{"N", 83}};  // each with each
    for (const Build &build : builds) {
        const Loaded loaded(programs, target, build);
        for (size_t k = 0; k < programs.size(); k++) {
            const TileProgram &program = programs[k];
            INFO(target.name << " " << program.name << " " << build.compiler << " " << build.options);
            Arrays inputs = make_inputs(algorithms[k], shape, 1);
            Array &x = inputs.at("x"), &z = inputs.at("z");
            for (int64_t i = 0; i < shape.at("N"); i++)
                x.set(i, Scalar::of_real(x.dtype, numbers[i % 9])), z.set(i, Scalar::of_real(z.dtype, numbers[i / 9 % 9]));
            Arrays got = loaded.run(program, shape, inputs, {}, Layout{}), expected = run_interpreter(program, shape, inputs, {});
            for (auto &[output, array] : expected) CHECK(differ_in_bits({{output, got.at(output)}}, {{output, array}}) == "");
        }
    }
}

TEST_CASE("zeros keep their signs") {
    for (const Target &target : targets()) {
        check(target);
        check(target, c_builds("-O2"));
    }
}

TEST_CASE("zeros keep their signs: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check(target, {{}, {"gcc", "-O2"}});
}

TEST_CASE("zeros keep their signs: wasm32", "[.][wasm32]") {
    if (const Target target = target_named("wasm32"); can_emulate(target))
        check(target, {{}, {"clang", "-O2"}, {"clang", "-O2 -mno-simd128"}});
}

}  // namespace tessera::test_signed_zeros
