#include "schedules/artifact/inherited_fields.h"

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "schedules/artifact/callee_schedules.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "tests/support/words.h"

namespace tessera::test_inherited_fields {

using nlohmann::json;
using test::check_words;

namespace {

const Numerics f32 = numerics_named("f32"), bf16 = numerics_named("bf16");

Library shipped() {
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    return library;
}

std::shared_ptr<const MadeOf> made_of(const Algorithm &algorithm, const Algorithm &of) {
    return std::make_shared<const MadeOf>(MadeOf{of, roles_in(algorithm, of)});
}

ProgramSchedule resolved(const Schedule &schedule, const Algorithm &algorithm, const Algorithm &of, const Library &library,
                         const Extents &fixed = {}) {
    CalleeRules rules;
    rules.made_of = made_of(algorithm, of);
    return resolve_program(schedule, algorithm, fixed, library, rules);
}

Schedule using_for(const std::vector<std::string> &stages, const std::string &schedule) {
    Schedule s("mine");
    for (const std::string &stage : stages) s = s.stage(stage, StageKnobs().use(schedule));
    return s;
}

}  // namespace

TEST_CASE("a gradient's product takes the fields of the product that it comes from, in its own names") {
    const Algorithm linear = library::linear(f32);
    const ProgramSchedule s = resolved(using_for({"x.grad", "w.grad"}, "linear/avx512"), vjp(linear), linear, shipped());
    const KnobsByStage &stages = s.resolved.stages;
    const Knobs &x = stages.at("x.grad"), &w = stages.at("w.grad");
    CHECK(x.micro == Extents{{"M", 8}, {"K", 48}});
    CHECK(x.vector == Extents{{"K", 16}});
    CHECK(w.micro == Extents{{"K", 8}, {"N", 48}});
    CHECK(w.vector == Extents{{"N", 16}});
    // The loops of `y` around `acc`, in one nest.
    CHECK(x.loops == std::vector<std::string>{"micro.K", "micro.M"});
    CHECK(x.parallel == std::vector<std::string>{"micro.K"});
    CHECK(!x.place);
    REQUIRE(w.pack.count("y.grad"));
    CHECK(w.pack.at("y.grad") == Pack{"micro.N", {{"N", 48, false}, {"M", 0, false}, {"N", 48, true}}});
    // Rows of x lie along the fold there, and across it here.
    CHECK(w.pack.at("x") == Pack{"root", {{"K", 8, false}, {"M", 0, false}, {"K", 8, true}}});
    CHECK(!x.pack.count("y.grad"));
    CHECK(s.resolved.requires_features == std::vector<std::string>{"avx512bw", "avx512dq", "avx512f", "avx512vl"});
    CHECK(s.left_out.empty());

    const std::string text = explain(using_for({"w.grad"}, "linear/avx512"), shipped(),
                                     resolved(using_for({"w.grad"}, "linear/avx512"), vjp(linear), linear, shipped()));
    CHECK_THAT(text, Catch::Contains("w.grad: linear/avx512 -> linear/avx2\n") && Catch::Contains("/stages/w.grad/micro/K") &&
                         Catch::Contains("linear/avx512 of acc, over 3 of linear/avx2 of acc"));
}

TEST_CASE("a product stands in the tiles of its reader, as it does there") {
    const Algorithm matmul = library::matmul(bf16);
    Library library;
    library.add(
        Schedule("matmul/tiles")
            .stage("dot", StageKnobs().place("y.tile").micro({{"M", 8}, {"N", 48}}).vector({{"N", 16}}))
            .stage("y", StageKnobs().micro({{"N", 48}}).level("tile", {{"M", 8}}).loops({"micro.N", "tile.M"}).parallel({"micro.N"})));
    const KnobsByStage stages = resolved(using_for({"w.grad.dot"}, "matmul/tiles"), vjp(matmul), matmul, library).resolved.stages;
    REQUIRE(stages.count("w.grad.dot"));
    REQUIRE(stages.at("w.grad.dot").place);
    CHECK(*stages.at("w.grad.dot").place == Place{Place::Kind::at, "w.grad", "tile"});
    CHECK(stages.at("w.grad").loops == std::vector<std::string>{"micro.N", "tile.K"});
    CHECK(stages.at("w.grad").levels == std::map<std::string, Extents>{{"tile", {{"K", 8}}}});
}

TEST_CASE("what is stated of a stage is over what it takes by its role, and none takes nothing") {
    const Algorithm linear = library::linear(f32), grad = vjp(linear);
    const Schedule own = using_for({"w.grad"}, "linear/avx512").stage("w.grad", StageKnobs().micro({{"K", 4}}).remove("pack"));
    const KnobsByStage stages = resolved(own, grad, linear, shipped()).resolved.stages;
    CHECK(stages.at("w.grad").micro == Extents{{"K", 4}, {"N", 48}});
    CHECK(stages.at("w.grad").pack.empty());
    CHECK(!stages.count("x.grad"));
    const Schedule none = using_for({"w.grad"}, "none").stage("w.grad", StageKnobs().micro({{"K", 4}}));
    CHECK(resolved(none, grad, linear, shipped()).resolved.stages.at("w.grad").vector.empty());
    // Flattened it is the same, without a word of where it comes from.
    const ProgramSchedule program = resolved(own, grad, linear, shipped());
    CHECK(resolve(flatten(own, program, grad), shipped()).stages == program.resolved.stages);
}

TEST_CASE("of variants a stage takes the first that applies to whatever is not fixed") {
    const Algorithm matmul = library::matmul(f32), grad = vjp(matmul);
    const Schedule own = using_for({"x.grad"}, "matmul/avx512");
    const auto micro = [&](const Extents &fixed) {
        return resolved(own, grad, matmul, shipped(), fixed).resolved.stages.at("x.grad").micro;
    };
    CHECK(micro({}) == Extents{{"M", 8}, {"K", 48}});
    CHECK(micro({{"M", 4}}) == Extents{{"M", 4}, {"K", 64}});
    CHECK(micro({{"N", 64}}) == Extents{{"M", 4}, {"K", 64}});
    CHECK(micro({{"N", 100}}) == Extents{{"M", 8}, {"K", 48}});
}

TEST_CASE("what has no role is left out, and said") {
    const Algorithm attention = library::attention(f32), grad = vjp(attention, {{"q", "k"}, {}, {}});
    const ProgramSchedule s = resolved(using_for({"k.grad"}, "attention/avx512"), grad, attention, shipped());
    REQUIRE(s.left_out.size() == 1);
    CHECK(s.left_out[0] == "k.grad takes of attention/avx512 no scores: place: no stage has the role of online_softmax");
    check_words([&] { resolved(using_for({"q.grad"}, "attention/avx512"), grad, attention, shipped()); },
                {"error[schedule.unknown-stage]", "no call 'q.grad', nor such a stage with a role of attention", "k.grad"});
    check_words([&] { resolved(using_for({"k.grad"}, "attention/none"), grad, attention, shipped()); },
                {"error[schedule.missing-callee]", "/stages/k.grad/use", "attention/none"});
}

}  // namespace tessera::test_inherited_fields
