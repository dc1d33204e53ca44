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

}  // namespace tessera::test
