#include "generators/choose/applied_schedule.h"

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "generators/kernel/prepare.h"
#include "schedules/artifact/merge.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_applied_schedule {

using namespace tessera::test;

// y[M, D] = relu(linear_gelu(x, w, b)), whose dims N and K are F and D here.
static Algorithm gate(const Numerics &numerics) {
    Builder f("gate", numerics);
    Dim M = f.dim("M"), D = f.dim("D"), F = f.dim("F");
    Tile x = f.input("x", {M, D}), w = f.input("w_up", {D, F}), b = f.input("b_up", {F});
    Tile h = f.call("up", library::linear_gelu(numerics), {x, w, b})[0];  // (M, F)
    return f.output("y", relu(h)).build();
}

static Registry registry(const std::vector<Schedule> &schedules) {
    Registry all = sample_registry();
    all.add("linear_gelu", "y[M, N] = gelu(x[M, K] w[K, N] + b[N])", library::linear_gelu);
    all.add("gate", "y[M, F] = relu(linear_gelu(x))", gate);
    for (const Schedule &s : schedules) all.add_schedule([s] { return s; });
    return all;
}

static const StageKnobs in_vectors = StageKnobs().vector({{"F", 8}});

static KernelOptions options(const std::string &schedule) {
    KernelOptions o;
    o.algorithm = "gate", o.schedule = schedule, o.target = "avx2";
    return o;
}

static std::string hash(const Registry &all, const std::string &schedule) {
    return resolved_hash(prepare(all, options(schedule)).compiled.kernel.general());
}

TEST_CASE("a call takes the schedule that is named, or by itself the one that a kernel of its own would take") {
    const Registry all = registry({Schedule("gate/named").stage("y", in_vectors).stage("up", StageKnobs().use("linear_gelu/avx2")),
                                   Schedule("gate/silent").stage("y", in_vectors),
                                   Schedule("gate/none").stage("y", in_vectors).stage("up", StageKnobs().use("none")),
                                   Schedule("gate/written")
                                       .stage("y", in_vectors)
                                       .stage("up.acc", StageKnobs()
                                                            .place("up.y.tile")
                                                            .micro({{"M", 3}, {"F", 32}})
                                                            .vector({{"F", 8}})
                                                            .tail("M", Tail::narrow)
                                                            .pack("w_up", "root", {"F/32", "D", "F%32"}))
                                       .stage("up.acc.w_up.packed", place("up.y.micro.F"))
                                       .stage("up.y", StageKnobs()
                                                          .micro({{"F", 32}})
                                                          .level("tile", {{"M", 3}})
                                                          .loops({"micro.F", "tile.M"})
                                                          .vector({{"F", 8}})
                                                          .tail("F", Tail::narrow)
                                                          .parallel({"micro.F"}))});
    CHECK(hash(all, "gate/named") == hash(all, "gate/written"));
    CHECK(hash(all, "gate/silent") == hash(all, "gate/written"));
    CHECK(hash(all, "gate/none") != hash(all, "gate/written"));
    const std::string note =
        "note: gate on avx2: call 'up': schedule 'linear_gelu/avx2', the best match for linear_gelu; \"up\": {\"use\": …} in "
        "the schedule chooses another\n";
    auto notes = [&](const std::string &schedule) {
        return generator({"show", "gate", "--what", "schedule", "--target", "avx2", "--schedule", schedule}, all).err;
    };
    CHECK(notes("gate/silent") == note);
    CHECK(notes("gate/named").empty());
    CHECK(notes("gate/none").empty());
}

TEST_CASE("what is shown of a schedule with callees resolves to the same, and its manifest and dependencies name them") {
    const Registry all = registry({Schedule("gate/named").stage("y", in_vectors).stage("up", StageKnobs().use("linear_gelu/avx2"))});
    const Outcome shown = generator({"show", "gate", "--what", "schedule", "--target", "avx2", "--schedule", "gate/named"}, all);
    const Schedule flat = Schedule::parse(shown.out, "shown");
    CHECK(flat.document()["stages"]["up"] == nlohmann::json{{"use", "none"}});
    CHECK(hash(registry({flat}), "gate/named") == hash(all, "gate/named"));
    const PreparedKernel p = prepare(all, options("gate/named"));
    CHECK(std::any_of(p.choice.watched.begin(), p.choice.watched.end(),
                      [](const auto &f) { return f.filename() == "avx2.json" && f.parent_path().filename() == "linear"; }));
    const Outcome explained = generator({"explain", "gate/named"}, all);
    CHECK_THAT(explained.out, Catch::StartsWith("gate/named\nup: linear_gelu/avx2 -> linear/avx2\n") &&
                                  Catch::Contains("/stages/up.acc/micro/F") && Catch::Contains("  linear/avx2 at up\n"));
    CHECK(nlohmann::json::parse(generator({"explain", "gate/named", "--json"}, all).out)["calls"][0]["call"] == "up");
}

TEST_CASE("a schedule that matches a callee by its name and does not apply is passed over, with a note") {
    const Registry all = registry({Schedule("gate/silent").stage("y", in_vectors)});
    Algorithm other = library::matmul({});
    other.name = "linear_gelu";  // which has no stage 'acc'
    const Library library = all.library(all.schedule_folders({}));
    const Target target = target_named("avx2");
    Chooser chooser(library, target);
    const Match match = chooser.applying(other, {});
    CHECK_FALSE(match.schedule);
    REQUIRE(match.passed_over.size() == 1);
    CHECK_THAT(match.passed_over[0], Catch::StartsWith("linear_gelu/avx2: error[schedule.unknown-stage]"));
    CHECK(chooser.applying(library::linear_gelu({}), {{"N", 96}}).schedule->name() == "linear_gelu/avx2");
}

TEST_CASE("a tuned artifact is matched for the extents that the kernel fixes") {
    Provenance p;
    p.task = {"linear_gelu", "f32", {}, {{"N", 96}, {"K", 64}}, {}, "avx2", 1};
    p.resolved = "sha256:0";
    const Registry all =
        registry({Schedule("linear_gelu/f32/avx2/mine").stage("y", StageKnobs().vector({{"N", 4}})).with_measured(json_of(p)),
                  Schedule("gate/silent").stage("y", in_vectors)});
    KernelOptions fixed = options("gate/silent");
    fixed.shape = {"F=96", "D=64"};
    CHECK(prepare(all, fixed).choice.applied.program.callees.front().ancestry.front().name() == "linear_gelu/f32/avx2/mine");
    CHECK(prepare(all, options("gate/silent")).choice.applied.program.callees.front().ancestry.front().name() == "linear_gelu/avx2");
}

TEST_CASE("an artifact of tune for a program of calls takes what its calls took, and resolves to what was chosen") {
    const TemporaryFolder folder;
    const Registry all =
        registry({Schedule("gate/avx2").stage("y", StageKnobs().vector({{"F", 4}})).stage("up", StageKnobs().use("linear_gelu/avx2"))});
    for (const char *schedule : {"gate/avx2", "none"}) {
        const Outcome tuned =
            generator({"tune", "gate", "--target", "avx2", "--quiet", "--shape", "M=48", "D=64", "F=96", "--deterministic", "--trials",
                       "20", "--schedule", schedule, "--name", "gate/mine", "--out", folder.path().string()},
                      all);
        INFO(tuned.err);
        REQUIRE(tuned.code == 0);
        if (!std::filesystem::exists(folder.path() / "gate" / "mine.json")) continue;  // nothing better was found
        const Schedule artifact = read_schedule(folder.path() / "gate" / "mine.json");
        INFO(artifact.text());
        const bool extends = !artifact.parent_name().empty();
        if (!extends) CHECK(artifact.document()["stages"]["up"]["use"] == "none");
        const Outcome checked = generator({"check", folder.path().string(), "--json"}, all);
        CHECK_THAT(checked.out, Catch::Contains("\"unchanged\""));
    }
}

TEST_CASE("a schedule whose use does not apply: the words") {
    auto refused = [](const std::string &use, const std::vector<std::string> &parts) {
        const Registry all = registry({Schedule("gate/bad").stage("up", StageKnobs().use(use))});
        check_words([&] { prepare(all, options("gate/bad")); }, parts);
    };
    refused("softmax/avx2",
            {"error[schedule.use]: schedule 'gate/bad' at /stages/up/use: expected a schedule that applies to 'linear_gelu', "
             "which the call 'up' is of; 'softmax/avx2' does not: "});
    refused("linear_gelu/avx3", {"error[schedule.missing-callee]: schedule 'gate/bad' at /stages/up/use: there is no schedule"});
}

TEST_CASE("a schedule says that the rounds of a call run in parallel") {
    Registry all;
    all.add("rounds", "each row doubled", [](const Numerics &n) {
        Builder g("doubled", n);
        const Tile row = g.input("x", {g.dim("N")});
        const Algorithm doubled = g.output("y", row * 2.0).build();
        Builder f("rounds", n);
        const Tile x = f.input("x", {f.dim("L"), f.dim("N")});
        return f.output("y", f.repeat("each", doubled, {.dim = "L", .stacked = {"y"}}, {x})[0]).build();
    });
    all.add_schedule([] { return Schedule("rounds/parallel").stage("each", StageKnobs().parallel({"L"})); });
    all.add_schedule([] { return Schedule("rounds/blocked").stage("each", StageKnobs().block({{"L", 4}})); });
    auto shown = [&](const std::string &schedule) {
        return generator({"show", "rounds", "--schedule", schedule, "--target", "avx2", "--what", "tiles", "--quiet"}, all);
    };
    const Outcome parallel = shown("rounds/parallel");
    INFO(parallel.err);
    CHECK(parallel.code == 0);
    CHECK_THAT(parallel.out, Catch::Contains("parallel each.L < |L|"));
    CHECK_THAT(shown("rounds/blocked").err,
               Catch::Contains("error[schedule.unknown-stage]") && Catch::Contains("rounds has no stage 'each'"));
}

}  // namespace tessera::test_applied_schedule
