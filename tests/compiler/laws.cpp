// Kernel × schedule × awkward shape: the tile program agrees with the algorithm, and emitted code with the tile program, bit for
// bit, wherever its arguments lie and however many threads run it.
#include <catch2/catch.hpp>

#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"
#include "tests/support/thorough.h"

namespace tessera::test {

static std::string text(const Extents &shape) {
    std::string t;
    for (auto &[dim, n] : shape) t += dim + "=" + std::to_string(n) + " ";
    return t;
}

void check_programs(const std::vector<Case> &cases, const Target &target) {
    for (const Case &c : cases) {
        INFO(c.name);
        TileProgram program = lowered(c, target);
        for (const Extents &shape : c.shapes) {
            INFO(text(shape));
            Parameters parameters = make_parameters(c.algorithm, 1);
            Arrays inputs = make_inputs(c.algorithm, shape, 1);
            Arrays reference = run_reference(c.algorithm, shape, inputs, parameters);
            Arrays got = run_interpreter(program, shape, inputs, parameters);
            CHECK(differ(got, reference, 1e-4) == "");
            if (keeps_order(c.algorithm, c.stages)) CHECK(differ_in_bits(got, reference) == "");
        }
    }
}

void check_code(const std::vector<Case> &cases, const std::vector<TileProgram> &programs, const Loaded &code,
                const std::function<std::vector<Layout>(uint32_t number)> &layouts) {
    for (size_t i = 0; i < cases.size(); i++) {
        const Case &c = cases[i];
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            INFO(c.name << " " << text(shape));
            Parameters parameters = make_parameters(c.algorithm, ++seed);
            Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 3 == 0);
            Arrays expected = run_interpreter(programs[i], shape, inputs, parameters);
            for (const Layout &layout : layouts(seed))
                CHECK(differ_in_bits(code.run(programs[i], shape, inputs, parameters, layout), expected) == "");
        }
    }
}

TEST_CASE("a tile program computes what its algorithm says") { check_programs(library_cases(8), target_named("avx2")); }

static void check_target(const Target &target, const Build &build = {}, size_t first = 0, size_t each = 1,
                         std::vector<Layout> layouts = {}) {
    if (layouts.empty())
        layouts = {Layout{}, Layout{false, 0, 0, 1}, Layout{true, 1, 3, 2}, Layout{false, 2, 1, 2}, Layout{true, 3, 0, 1, 0, true}};
    std::vector<Case> all = library_cases(target.vector_bytes / 4), cases;
    std::vector<TileProgram> programs;
    for (size_t i = first; i < all.size(); i += each) {
        TileProgram program = lowered(all[i], target);
        if (!build.compiler.empty() && !program.programs.empty()) continue;  // C has its calls inlined
        programs.push_back(program), cases.push_back(all[i]);
    }
    Loaded library(programs, target, build);
    INFO(build.compiler << " " << build.options);
    check_code(cases, programs, library, [&](uint32_t) { return layouts; });
}

// Every second case on the best target that runs here; on each of the others the suite takes another quarter.
static void check_native(const std::string &name, size_t first) {
    const Target target = target_named(name);
    if (!runs_here(target)) return;
    const size_t each = name == targets().back().name ? every(2) : every(4);
    check_target(target, {}, first % each, each);
}

TEST_CASE("emitted code equals the tile program: x86-64") { check_native("x86-64", 0); }
TEST_CASE("emitted code equals the tile program: avx2") { check_native("avx2", 1); }
TEST_CASE("emitted code equals the tile program: avx512") { check_native("avx512", 2); }

TEST_CASE("emitted code equals the tile program: arm64", "[.][arm64]") {
    if (Target target = target_named("arm64"); can_emulate(target)) check_target(target, {}, 0, every(6));
}

TEST_CASE("emitted code equals the tile program: wasm32", "[.][wasm32]") {
    if (Target target = target_named("wasm32"); can_emulate(target)) check_target(target, {}, every(3) - 1, every(3));
}

// A third of the cases, another for each target, with every compiler there is; and a sixth of them with each without intrinsics, where
// undefined behaviour stops the process. The suite takes a quarter of that, another for each compiler.
static void check_c(const std::string &name, size_t first) {
    const Target target = target_named(name);
    if (!runs_here(target)) return;
    size_t at = first;
    for (const Build &build : c_builds("-O2")) {
        check_target(target, build, is_thorough() ? first : at, is_thorough() ? 3 : 12, {Layout{}, Layout{false, 2, 1, 2, 0, true}});
        at += 3;
    }
    const size_t portable = is_thorough() ? 6 : 24;
    at = first;
    for (const Build &build : c_builds("-O1 -DTESS_PORTABLE -fsanitize=undefined -fsanitize-undefined-trap-on-error")) {
        check_target(target, build, at, portable, {Layout{true, 1, 3, 2}});
        at += portable / 2;
    }
}

TEST_CASE("emitted C equals the tile program: x86-64") { check_c("x86-64", 0); }
TEST_CASE("emitted C equals the tile program: avx2") { check_c("avx2", 1); }
TEST_CASE("emitted C equals the tile program: avx512") { check_c("avx512", 2); }

TEST_CASE("emitted C equals the tile program: wasm32", "[.][wasm32]") {
    if (Target target = target_named("wasm32"); can_emulate(target))
        check_target(target, {"clang", "-O2"}, 1, every(2) * 3, {Layout{true, 1, 3, 2}});
}

}  // namespace tessera::test
