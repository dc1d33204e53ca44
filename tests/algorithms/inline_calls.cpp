#include "algorithms/transform/inline_calls.h"

#include <catch2/catch.hpp>

#include "support/text/error.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_inline_calls {

using namespace tessera::test;

TEST_CASE("inlining replaces calls by stages in the caller's names") {
    Algorithm a = inline_calls(feed_forward());
    std::vector<std::string> names;
    for (const Stage &stage : a.stages()) names.push_back(stage.name);
    CHECK(join(names) == "first.acc, first.y, second.acc, second.y, y");
    CHECK(a.calls().empty());
    CHECK(a.dims.size() == 3);
    CHECK(a.tensors.size() == 5);
    const Stage &acc = *a.find_stage("second.acc");
    CHECK(join(acc.dims) == "B, E");
    CHECK(join(reduced_dims(acc)) == "H");
    CHECK(to_string(std::get<Reduce>(acc.body).inputs[0]) == "first.y[B, H]");
    CHECK(to_string(std::get<Reduce>(acc.body).inputs[1]) == "down[H, E]");
    CHECK(same(inline_calls(a), a));
}

TEST_CASE("inlining carries what the callee has of its own, its parameters and that it updates a state") {
    auto callee = std::make_shared<Algorithm>(segmented_sum());
    callee->parameters = {{"scale", DType::f32}};
    callee->updates_state = true;
    std::get<Reduce>(callee->stages()[0].body).inputs[0] =
        std::get<Reduce>(callee->stages()[0].body).inputs[0] * parameter("scale", DType::f32);
    Algorithm a;
    a.name = "caller", a.dims = {symbolic_dim("A"), symbolic_dim("A1"), symbolic_dim("B")};
    a.tensors = {{"rows", DType::i32, {"A1"}, Role::input, {}}, {"data", DType::f32, {"B"}, Role::input, {}}};
    a.steps = {Call{"sums",
                    callee,
                    {{"S", "A"}, {"S1", "A1"}, {"T", "B"}},
                    {{"offsets", "rows"}, {"x", "data"}},
                    {{"scale", constant(DType::f32, 2)}}}};
    a.outputs = {"sums.y"};
    Algorithm inlined = inline_calls(a);
    REQUIRE(inlined.find_dim("sums.R"));
    CHECK(to_string(inlined.dim("sums.R").size) == "max(index(rows[A + 1]) - index(rows[A]), 0)");
    CHECK(to_string(std::get<Reduce>(inlined.stages()[0].body).inputs[0]) == "data[bounded(index(rows[A]) + sums.R, 0, |B|)]*2.0");
    CHECK(inlined.updates_state);
}

TEST_CASE("inlining keeps the order of steps") {
    Algorithm a = feed_forward();
    a.steps.insert(a.steps.begin() + 1, Stage{"early", {"B", "E"}, Map{load("x", DType::f32, {variable("B"), variable("E")})}});
    const Algorithm inlined = inline_calls(a);
    std::vector<std::string> names;
    for (const Stage &stage : inlined.stages()) names.push_back(stage.name);
    CHECK(join(names) == "first.acc, first.y, early, second.acc, second.y, y");
    const Algorithm kept = inline_calls(a, [](const std::string &scope) { return scope == "first"; });
    REQUIRE(kept.steps.size() == 5);
    CHECK(std::get<Call>(kept.steps[0]).scope == "first");
    CHECK(std::get<Stage>(kept.steps[1]).name == "early");
}

}  // namespace tessera::test_inline_calls
