// Blocks and threads: the tile programs of a GPU against their algorithms, and what they look like.
#include <catch2/catch.hpp>

#include "tests/compiler/cases.h"

namespace tessera::test {

static std::string text(const Extents &shape) {
    std::string t;
    for (auto &[dim, n] : shape) t += dim + "=" + std::to_string(n) + " ";
    return t;
}

TEST_CASE("a tile program for a GPU computes what its algorithm says") {
    Target target = target_named("opencl");
    for (const Case &c : gpu_cases()) {
        INFO(c.name);
        TileProgram program = lowered(c.name, c.algorithm, c.stages, target);
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

TEST_CASE("emitted code equals the tile program: opencl") {
    Target target = target_named("opencl");
    std::vector<Case> cases = gpu_cases();
    if (const char *only = getenv("ONLY")) std::erase_if(cases, [&](const Case &c) { return c.name != only; });
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
            for (const Layout &layout : {Layout{}, Layout{false, 2, 3, 1}})
                CHECK(differ_in_bits(library.run(programs[i], shape, inputs, parameters, layout), expected) == "");
        }
    }
}

}  // namespace tessera::test
