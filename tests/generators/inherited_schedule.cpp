// Gradients take the schedules of what they are gradients of, by the roles of their stages.
#include "generators/choose/derived_schedule.h"

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_inherited_schedule {

using namespace tessera::test;

namespace {

// Layers of `linear`, each with weights of its own.
Algorithm stack(const Numerics &numerics) {
    Builder f("stack", numerics);
    const Dim M = f.dim("M"), D = f.dim("D", 16), E = f.dim("E", 16), L = f.dim("L");
    const std::vector<Tile> arguments = {f.input("x", {M, D}), f.input("w", {L, D, E}), f.input("b", {L, E})};
    return f.output("y", f.repeat("layers", library::linear(numerics), {.dim = "L", .carried = {{"x", "y"}}}, arguments)[0]).build();
}

Registry registry() {
    Registry all = sample_registry();
    all.add("linear", "y[M, N] = x[M, K] w[K, N] + b[N]", library::linear);
    all.add("stack", "y[M, E] = L layers of linear", stack);
    all.add_schedule([] {
        return Schedule("stack/mine").stage("layers", StageKnobs().use("linear/mine"));
    });
    all.add_schedule([] {
        return Schedule("linear/mine")
            .stage("acc", StageKnobs().place("y.tile").micro({{"M", 4}, {"N", 16}}).vector({{"N", 8}}))
            .stage("y", StageKnobs().micro({{"N", 16}}).level("tile", {{"M", 4}}).loops({"micro.N", "tile.M"}).vector({{"N", 8}}));
    });
    return all;
}

Outcome run(std::vector<std::string> words) { return generator(words, registry()); }

}  // namespace

TEST_CASE("a gradient takes the schedule that its product takes, and says of each field from where") {
    const Outcome fields = stock_generator("show linear --grad x w b --target avx512 --what fields");
    INFO(fields.err);
    REQUIRE(fields.code == 0);
    CHECK_THAT(fields.err, Catch::Contains("by the roles of its stages from 'linear/"));
    CHECK_THAT(fields.out, Catch::Contains("linear/avx512 -> linear/avx2\n") && Catch::Contains("/stages/w.grad/micro/K") &&
                               Catch::Contains("linear/avx512 of acc") && Catch::Contains("/stages/b.grad/vector/N"));
    const Outcome right = stock_generator("verify linear --grad x w b --target avx2 --quiet");
    INFO(right.err);
    CHECK(right.code == 0);
}

TEST_CASE("a stage with a role takes nothing of the schedule that its call would take") {
    for (const char *inherit : {"stack/mine", "none"}) {
        const Outcome fields = run({"show", "stack", "--grad", "x", "w", "--target", "avx2", "--what", "fields", "--inherit", inherit});
        INFO(fields.err);
        CHECK(fields.code == 0);
        CHECK_THAT(fields.out, Catch::Contains("/stages/layers.acc/micro/M"));
    }
}

TEST_CASE("--inherit names the schedule, or none; --made-of says of what an algorithm in a file was made") {
    const std::vector<std::string> gradient = {"show", "linear", "--grad", "w", "--target", "avx2", "--what", "fields"};
    const auto with = [&](std::vector<std::string> words, const std::vector<std::string> &more) {
        words.insert(words.end(), more.begin(), more.end());
        const Outcome made = run(words);
        INFO(made.err);
        CHECK(made.code == 0);
        return made;
    };
    CHECK_THAT(with(gradient, {"--inherit", "linear/mine"}).out,
               Catch::Contains("/stages/w.grad/micro/K") && Catch::Contains("linear/mine of acc"));
    const Outcome none = with(gradient, {"--inherit", "none"});
    CHECK_THAT(none.out, !Catch::Contains(" of acc"));
    CHECK_THAT(none.err, Catch::Contains("derived"));

    const TemporaryFolder folder;
    const std::string file = folder.path() / "grad.json", before = folder.path() / "linear.json";
    write_file(file, run({"show", "linear", "--grad", "w", "--json"}).out);
    write_file(before, run({"show", "linear", "--json"}).out);
    const std::vector<std::string> of_file = {"show", file, "--target", "avx2", "--what", "fields", "--inherit", "linear/mine"};
    for (const std::string &other : {std::string("linear"), before})
        CHECK_THAT(with(of_file, {"--made-of", other}).out, Catch::Contains("linear/mine of acc"));
    check_refused(of_file, {"error[command.inherit]", "linear.grad is not known to be made of another algorithm", "--made-of"}, 2,
                  registry());
}

TEST_CASE("a schedule of a gradient's own uses others by role, and comes before what is inherited") {
    const TemporaryFolder folder;
    const auto fields = [&](const Schedule &own) {
        write_file(folder.path() / "linear.grad" / "avx2.json", own.text());
        return run({"show", "linear", "--grad", "w", "--target", "avx2", "--what", "fields", "--schedule-dir", folder.path()});
    };
    const Outcome uses = fields(Schedule("linear.grad/avx2").stage("w.grad", StageKnobs().use("linear/mine").micro({{"K", 2}})));
    INFO(uses.err);
    CHECK_THAT(uses.out, Catch::StartsWith("linear.grad/avx2\nw.grad: linear/mine\n") &&
                             Catch::Contains("linear.grad/avx2, over 4 of linear/mine of acc"));
    // What does not fit is passed over: there is no b.grad.
    const Outcome other = fields(Schedule("linear.grad/avx2").stage("b.grad", StageKnobs().vector({{"N", 8}})));
    CHECK(other.code == 0);
    CHECK_THAT(other.err, Catch::Contains("passed over linear.grad/avx2") && Catch::Contains("b.grad"));
}

TEST_CASE("schedules of gradients ship, and compute what their algorithms say") {
    const Outcome softmax = stock_generator("verify softmax --grad x --target avx2");
    INFO(softmax.err);
    CHECK(softmax.code == 0);
    CHECK_THAT(softmax.err, Catch::Contains("schedule 'softmax.grad/avx2'"));
    for (const char *gradient :
         {"attention --grad q k v", "attention_causal --grad q k v", "cross_entropy --grad x", "layernorm --grad x", "rmsnorm --grad x"}) {
        const Outcome shown = stock_generator("show " + std::string(gradient) + " --target avx512 --what tiles");
        INFO(gradient);
        INFO(shown.err);
        CHECK(shown.code == 0);
        CHECK_THAT(shown.err, Catch::Contains(".grad/avx512'; --schedule chooses another"));
    }
}

}  // namespace tessera::test_inherited_schedule
