#include "bench/measure/inputs.h"

#include <catch2/catch.hpp>

#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "schedules/knobs/notation.h"
#include "tests/support/words.h"

namespace tessera::test_inputs {

using namespace tessera::test;

TEST_CASE("extents follow from those of the symbolic dims") {
    const Extents extents = all_extents(library::segmented_sum({}), {{"B", 4}, {"T", 10}, {"N", 3}});
    CHECK(extents == Extents{{"B", 4}, {"B1", 5}, {"T", 10}, {"N", 3}});
    CHECK(all_extents(bind_extents(library::matmul({}), {{"N", 8}}), {{"M", 1}, {"K", 2}}) == Extents{{"M", 1}, {"N", 8}, {"K", 2}});
}

TEST_CASE("extents' errors") {
    check_words(
        [] {
            all_extents(library::matmul({}), {{"M", 1}, {"K", 2}});
        },
        {"error[command.extents]: matmul: dim N has no extent; give one with --shape, which fixes it in the kernel, or --extents, which "
         "does not."});
    check_words(
        [] {
            all_extents(library::matmul({}), {{"M", 1}, {"N", 1}, {"K", 2}, {"kk", 2}});
        },
        {"error[shape.unknown-dim]: matmul: there is no dim 'kk' to give an extent; the symbolic dims are M, N, K."});
    check_words(
        [] {
            all_extents(library::ring_append({}), {{"B", 1}, {"W", 0}, {"T", 2}, {"D", 2}});
        },
        {"error[shape.constraint]: ring_append: dim W, dimension 1 of 'cache': extent must be at least 1, not 0."});
}

TEST_CASE("awkward shapes have empty dims and ones, obey constraints and stay small") {
    const auto shapes = awkward_shapes(library::matmul({}), 12, 1);
    CHECK(shapes.size() == 12);
    CHECK(shapes[0] == Extents{{"M", 1}, {"N", 1}, {"K", 1}});
    CHECK(shapes[2].at("M") == 0);
    CHECK(shapes[4].at("N") == 0);
    CHECK(shapes[6].at("K") == 0);
    CHECK(shapes == awkward_shapes(library::matmul({}), 12, 1));
    CHECK(std::set<Extents>(shapes.begin(), shapes.end()).size() == 12);
    CHECK(awkward_shapes(bind_extents(library::matmul({}), {{"M", 1}, {"N", 8}, {"K", 9}}), 12, 1) == std::vector<Extents>{{}});

    // Windows fit into images, but where an extent is 0.
    const Algorithm windows = library::conv2d_nhwc({}, {{"stride", 2}, {"padding", 1}, {"dilation", 2}});
    int points = 0;
    for (const Extents &shape : awkward_shapes(windows, 16, 1)) points += !is_empty(windows, shape);
    CHECK(points >= 9);

    Builder f("f");
    Dim N = symbolic_dim("N");
    N.multiple_of = 8, N.min = 8;
    Tile x = f.input("x", {f.dim(N)});
    for (const Extents &shape : awkward_shapes(f.output("y", x + x).build(), 6, 1)) CHECK((shape.at("N") >= 8 && shape.at("N") % 8 == 0));
    for (const Extents &shape : awkward_shapes(library::attention({}), 40, 2)) {
        double points = 1;
        for (const auto &[dim, extent] : shape) points *= static_cast<double>(extent);
        CHECK(points <= 1 << 22);
    }
}

TEST_CASE("a shape is found at which a variant is the first that runs") {
    auto conditions = [](const std::vector<std::string> &texts) {
        std::vector<Condition> all;
        for (const std::string &text : texts) all.push_back(*parse_condition(text));
        return all;
    };
    const Algorithm algorithm = library::matmul({});
    const std::vector<std::vector<Condition>> variants = {conditions({"M <= 4"}),
                                                          conditions({"M <= 16", "N % 64 == 0"}),
                                                          conditions({"M >= 1000", "M % 3 == 2"}),
                                                          conditions({"M == 4"}),
                                                          {}};
    auto found = [&](size_t variant) { return shape_that_meets(algorithm, variants, variant, 1).shape; };
    CHECK(found(0)->at("M") <= 4);
    CHECK((found(1)->at("M") > 4 && found(1)->at("M") <= 16 && found(1)->at("N") % 64 == 0 && found(1)->at("N") > 0));
    CHECK((found(2)->at("M") >= 1000 && found(2)->at("M") % 3 == 2 && found(2)->at("K") <= 17));
    CHECK_FALSE(found(3));
    CHECK(found(4)->at("M") > 4);
    CHECK(shape_that_meets(algorithm, variants, 3, 1).why == "an earlier variant runs wherever its conditions hold");
    // One that chance hardly finds.
    const std::vector<std::vector<Condition>> rare = {conditions({"M % 97 != 0"}), conditions({"N % 89 != 0"}), {}};
    const auto last = shape_that_meets(algorithm, rare, 2, 1).shape;
    REQUIRE(last);
    CHECK((last->at("M") % 97 == 0 && last->at("N") % 89 == 0 && last->at("M") > 0 && last->at("N") > 0));
    CHECK(shape_that_meets(algorithm, {conditions({"M < 0"})}, 0, 1).why == "no extent of 'M' meets its conditions");
}

TEST_CASE("random inputs have ascending offsets, floats in a unit and are the same in every run") {
    const Algorithm algorithm = library::segmented_sum({});
    const Extents extents = all_extents(algorithm, {{"B", 20}, {"T", 50}, {"N", 3}});
    const TileProgram program = lower(algorithm, {}, target_named("x86-64"));
    const Inputs inputs = random_inputs(program, extents, 7);
    const std::vector<double> offsets = inputs.tensors.at("offsets").values(), x = inputs.tensors.at("x").values();
    CHECK(std::is_sorted(offsets.begin(), offsets.end()));
    CHECK(offsets.back() <= 50);
    CHECK(offsets.front() < offsets.back());
    CHECK(x.size() == 150);
    CHECK(std::all_of(x.begin(), x.end(), [](double v) { return v >= -1 && v < 1; }));
    CHECK(inputs.tensors == random_inputs(program, extents, 7).tensors);
    CHECK(inputs.tensors != random_inputs(program, extents, 8).tensors);
    const Inputs layernorm = random_inputs(lower(library::layernorm({}), {}, target_named("x86-64")), {{"M", 1}, {"N", 1}}, 7);
    CHECK(layernorm.parameters.at("epsilon").real > 0);
    CHECK(layernorm.parameters.at("epsilon").real <= 1);
    TileProgram ranged = lower(library::layernorm({}), {}, target_named("x86-64"));
    ranged.parameters[0].range = parameter_range("epsilon", DType::f32, 3, 4);
    CHECK(random_inputs(ranged, {{"M", 1}, {"N", 1}}, 7).parameters.at("epsilon").real == 3);
}

}  // namespace tessera::test_inputs
