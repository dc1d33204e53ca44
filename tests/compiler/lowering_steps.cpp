#include "compiler/lower/lowering_steps.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/compile/specialize.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"

namespace tessera::test_lowering_steps {

using namespace tessera::test;

// "call up: inline calls"
static std::vector<std::string> titles(const std::vector<LoweringStep> &steps) {
    std::vector<std::string> all;
    for (const LoweringStep &step : steps) all.push_back((step.call.empty() ? "" : "call " + step.call + ": ") + step.name);
    return all;
}

static std::vector<LoweringStep> steps_of(const Algorithm &algorithm, const KnobsByStage &stages, const char *target,
                                          const std::vector<Condition> &when = {}) {
    std::vector<LoweringStep> steps;
    lower_variant(algorithm, when, stages, target_named(target), [&](const LoweringStep &step) { steps.push_back(step); });
    return steps;
}

static const std::vector<std::string> rewrites = {"the algorithm",
                                                  "inline calls",
                                                  "hold positions in 32 bits",
                                                  "split reductions and scans",
                                                  "join stages beside each other",
                                                  "inline stages",
                                                  "round products by themselves",
                                                  "take operands packed ahead of time",
                                                  "pack operands at loops",
                                                  "put in what functions are defined as"};

TEST_CASE("each pass over a body is a step") {
    auto expected = [](std::vector<std::string> passes) {
        passes.insert(passes.begin(), rewrites.begin(), rewrites.end());
        return passes;
    };
    CHECK(titles(steps_of(library::matmul({}), {}, "avx2")) ==
          expected({"build a nest for each stage at root", "bind constants", "keep what the stack cannot hold in the workspace",
                    "fuse parallel loops"}));
    const std::vector<LoweringStep> steps = steps_of(library::softmax({}), {}, "opencl");
    CHECK(titles(steps) ==
          expected({"build a nest for each stage at root", "place buffers in shared memory", "bind constants", "count blocks without data",
                    "fuse loops of blocks", "run in one block what has none", "make copies ahead that the processor has", "add barriers"}));
    CHECK(steps.back().text == to_text(lower(library::softmax({}), {}, target_named("opencl")).body));
}

TEST_CASE("the steps of a callee that is emitted once are steps of its call") {
    KnobsByStage stages;
    stages["down"].call = "once";
    const std::vector<std::string> all = titles(steps_of(library::feed_forward({}), stages, "avx2"));
    std::vector<std::string> inside;
    for (const std::string &title : all)
        if (title.starts_with("call down: ")) inside.push_back(title.substr(11));
    CHECK(inside == titles(steps_of(library::linear({}), {}, "avx2")));
    CHECK(all.size() == 2 * inside.size());
}

TEST_CASE("a call within a call has the scopes of both") {
    const std::vector<Case> cases = library_cases(8);
    const auto layers = std::find_if(cases.begin(), cases.end(), [](const Case &c) { return c.name == "layers_once"; });
    REQUIRE(layers != cases.end());
    const std::vector<std::string> all = titles(steps_of(layers->algorithm, layers->stages, "avx2"));
    CHECK(std::any_of(all.begin(), all.end(), [](const std::string &title) {
        const std::string scope = title.substr(0, title.find(':'));
        return scope.starts_with("call ") && scope.find('.') != std::string::npos;
    }));
}

TEST_CASE("only the try that counts is shown") {
    std::vector<LoweringStep> seen;
    const LoweringObserver observer = [&](const LoweringStep &step) { seen.push_back(step); };
    HeldSteps first(observer), second(observer);
    show_step(first.observer(), "first", TileBody());
    show_step(second.observer(), "second", TileBody());
    CHECK(seen.empty());
    second.show();
    CHECK(titles(seen) == std::vector<std::string>{"second"});
    CHECK(!HeldSteps({}).observer());
    // Where lowering may try twice, for conditions and for borders of images, it begins once, and its last step is what comes out.
    for (const Case &c : library_cases(8)) {
        if (c.when.empty() && !c.name.starts_with("conv")) continue;
        INFO(c.name);
        const std::vector<LoweringStep> steps = steps_of(c.algorithm, c.stages, "avx2", c.when);
        const std::vector<std::string> all = titles(steps);
        CHECK(std::count(all.begin(), all.end(), "the algorithm") == 1);
        CHECK(steps.back().text == to_text(lowered(c, target_named("avx2")).body));
    }
}

}  // namespace tessera::test_lowering_steps
