// Kernel × schedule × awkward shape: the tile program agrees with the algorithm, and emitted code with the tile program, bit for
// bit, wherever its arguments lie and however many threads run it.
#include <catch2/catch.hpp>

#include "tests/compiler/cases.h"

namespace tessera::test {

static std::string text(const Extents &shape) {
    std::string t;
    for (auto &[dim, n] : shape) t += dim + "=" + std::to_string(n) + " ";
    return t;
}

TEST_CASE("a tile program computes what its algorithm says") {
    Target target = target_named("avx2");
    for (const Case &c : library_cases(8)) {
        TileProgram program = lowered(c.name, c.algorithm, c.stages, target);
        for (const Extents &shape : c.shapes) {
            INFO(c.name << " " << text(shape));
            Parameters parameters = make_parameters(c.algorithm, 1);
            Arrays inputs = make_inputs(c.algorithm, shape, 1);
            Arrays reference = run_reference(c.algorithm, shape, inputs, parameters);
            Arrays got = run_interpreter(program, shape, inputs, parameters);
            CHECK(differ(got, reference, 1e-4) == "");
            if (keeps_order(c.algorithm, c.stages)) CHECK(differ_in_bits(got, reference) == "");
        }
    }
}

static void check_target(const Target &target) {
    std::vector<Case> cases = library_cases(target.vector_bytes / 4);
    std::vector<TileProgram> programs;
    for (const Case &c : cases) programs.push_back(lowered(c.name, c.algorithm, c.stages, target));
    Loaded library(programs, target);
    for (size_t i = 0; i < cases.size(); i++) {
        const Case &c = cases[i];
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            INFO(c.name << " " << text(shape));
            Parameters parameters = make_parameters(c.algorithm, ++seed);
            Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 3 == 0);
            Arrays expected = run_interpreter(programs[i], shape, inputs, parameters);
            for (const Layout &layout : {Layout{}, Layout{false, 0, 0, 1}, Layout{true, 1, 3, 2}, Layout{false, 2, 1, 2}, Layout{true, 3, 0, 1}})
                CHECK(differ_in_bits(library.run(programs[i], shape, inputs, parameters, layout), expected) == "");
        }
    }
}

static void check_native(const std::string &name) {
    if (Target target = target_named(name); runs_here(target)) check_target(target);
}

TEST_CASE("emitted code equals the tile program: x86-64") { check_native("x86-64"); }
TEST_CASE("emitted code equals the tile program: avx2") { check_native("avx2"); }
TEST_CASE("emitted code equals the tile program: avx512") { check_native("avx512"); }

TEST_CASE("emitted code equals the tile program: arm64", "[.][arm64]") {
    if (Target target = target_named("arm64"); can_emulate(target)) check_target(target);
}

}  // namespace tessera::test
