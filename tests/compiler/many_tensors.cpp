// Kernels with more tensors than functions name: they take a table.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/emit/header.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/harness.h"

namespace tessera::test_many_tensors {

using namespace tessera::test;

// y = a (x0 + … + x39)
static Algorithm sum_of_many() {
    Builder f("sum_of_many");
    const Dim N = f.dim("N");
    Tile sum = f.input("x0", {N});
    for (int i = 1; i < 40; i++) sum = sum + f.input("x" + std::to_string(i), {N});
    return f.output("y", sum * f.parameter("a", DType::f32)).build();
}

TEST_CASE("a kernel of 41 tensors gives what its tile program gives") {
    const Algorithm algorithm = sum_of_many();
    const Target target = target_named("x86-64");
    const TileProgram program = lowered("sum_of_many", algorithm, {}, target);
    const Extents shape = {{"N", 13}};
    const Arrays inputs = make_inputs(algorithm, shape, 1, false);
    const Parameters parameters = make_parameters(algorithm, 1);
    const Arrays expected = run_interpreter(program, shape, inputs, parameters);
    std::vector<Build> builds = c_builds("-O1");
    builds.emplace_back();
    for (const Build &build : builds) {
        INFO(build.compiler);
        const Loaded library({program}, target, build);
        CHECK(differ_in_bits(library.run(program, shape, inputs, parameters, {}), expected) == "");
    }
}

TEST_CASE("the header of a kernel of many tensors has no function that names them") {
    const Target target = target_named("x86-64");
    const std::string text = header_of("k", {{target, {{"k", {{{}, lowered("k", sum_of_many(), {}, target)}}}}}});
    CHECK_THAT(text,
               Catch::Contains("/** k, for x86-64. Tensors in a table, in this order, and other arguments:\n *    x0: f32 [N], read\n"));
    CHECK_THAT(text, Catch::Contains("int32_t k_table(const TessTensor *const *tensors, const struct k_parameters *parameters, "));
    CHECK_THAT(text,
               Catch::Contains("int32_t k_workspace(const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes);"));
    CHECK(text.find("int32_t k(") == std::string::npos);
}

}  // namespace tessera::test_many_tensors
