// All values of f16, exactly, whether a processor widens them itself or integer code does.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/harness.h"

namespace tessera::test_halves {

using namespace tessera::test;

static double value_of_f16(int64_t bits) {
    const int64_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double magnitude = exponent ? std::ldexp(static_cast<double>(1024 + mantissa), static_cast<int>(exponent) - 25)
                                : std::ldexp(static_cast<double>(mantissa), -24);
    if (exponent == 31) magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    return bits >> 15 ? -magnitude : magnitude;
}

// A column that is the same in all lanes, and a row that is not.
static Algorithm products() {
    Builder f("products", numerics_named("f16"));
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile column = f.input("column", {M}), row = f.input("row", {N});
    return f.output("y", column * row, DType::f32).build();
}

static void check(const Target &target, const Build &build = {}) {
    INFO(target.name << " " << build.compiler << " " << build.options);
    const Algorithm a = products();
    std::vector<TileProgram> programs;
    for (const int64_t lanes : {1, 4, 8, 16}) {
        KnobsByStage stages;
        if (lanes > 1) stages["y"].vector = {{"N", lanes}};
        programs.push_back(lowered("by_" + std::to_string(lanes), a, stages, target));
    }
    const Loaded library(programs, target, build);
    const int64_t all = 1 << 16, few = 17;
    for (const bool in_lanes : {false, true}) {
        const Extents shape = {{"M", in_lanes ? 1 : all}, {"N", in_lanes ? all : few}};
        Arrays inputs = make_inputs(a, shape, 1);
        Array &values = inputs.at(in_lanes ? "row" : "column"), &ones = inputs.at(in_lanes ? "column" : "row");
        for (int64_t i = 0; i < all; i++) values.set(i, Scalar::of_real(DType::f16, value_of_f16(i)));
        for (int64_t i = 0; i < ones.size(); i++) ones.set(i, Scalar::of_real(DType::f16, 1));
        for (const TileProgram &program : programs) {
            INFO(program.name << (in_lanes ? " in lanes" : ""));
            const Array y = library.run(program, shape, inputs, {}, {}).at("y");
            int64_t wrong = 0;
            for (int64_t i = 0; i < y.size(); i++) {
                const double got = y.get(i).real, expected = value_of_f16(in_lanes ? i : i / few);
                wrong += std::isnan(expected) ? !std::isnan(got) : got != expected || std::signbit(got) != std::signbit(expected);
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("every f16 is widened exactly") {
    for (const char *name : {"x86-64", "avx2", "avx512"}) {
        const Target target = target_named(name);
        if (!runs_here(target)) continue;
        check(target);
        for (const Build &build : c_builds("-O2")) check(target, build);
    }
}

}  // namespace tessera::test_halves
