#include "generators/choose/best_match.h"

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "tests/generators/harness.h"

namespace tessera::test_best_match {

using namespace tessera::test;

// A family's schedule is for its own policy; another may keep subnormal numbers, or have stages for them.
TEST_CASE("what is taken without a name can be made, whatever the policy") {
    Numerics flushed, strict = numerics_named("bf16"), flushed_bf16 = strict, wide, narrow;
    flushed.denormals = flushed_bf16.denormals = Denormals::flushed, strict.denormals = Denormals::gradual;
    wide.compute = wide.accumulate = DType::f64, narrow.outputs = DType::bf16;
    const Registry registry = sample_registry();
    const Library library = registry.library({TESSERA_SOURCE_DIR "/schedules/library"});
    for (Numerics policy : {flushed, strict, flushed_bf16, wide, narrow, numerics_named("nvfp4"), numerics_named("inference")})
        for (const char *target : {"avx2", "avx512", "znver4"})
            for (const auto &make : {library::matmul, library::linear, library::cumulative_sum, library::softmax, library::layernorm}) {
                policy.name = "mine";
                const Algorithm a = make(policy);
                INFO(a.name << " " << text_of(policy) << " " << target);
                const Target t = target_named(target);
                Chooser chooser(library, t);
                const Match match = chooser.family(a);
                if (!match.schedule) continue;
                CHECK_NOTHROW(chooser.make(*match.schedule, a, {}));
            }
}

TEST_CASE("without tuned artifacts the family's schedule of the nearest target is taken") {
    Library library;
    library.add(Schedule("matmul/x86-64"));
    library.add(Schedule("matmul/avx2"));
    library.add(Schedule("other/avx512"));
    auto name = [&](const char *algorithm, const char *target, const char *numerics = "f32") {
        Algorithm a = library::matmul(numerics_named(numerics));
        a.name = algorithm;
        const Target t = target_named(target);
        const Match match = Chooser(library, t).family(a);
        CHECK((match.how == Match::How::family) == match.schedule.has_value());
        return match.schedule ? match.schedule->name() : "none";
    };
    CHECK(name("matmul", "avx512") == "matmul/avx2");
    CHECK(name("matmul", "avx2") == "matmul/avx2");
    CHECK(name("matmul", "arm64") == "none");
    CHECK(name("matmul", "x86-64") == "matmul/x86-64");
    CHECK(name("matmul", "x86-64+avx2") == "matmul/x86-64");
    CHECK(name("other", "avx512+avx512_bf16") == "other/avx512");
    CHECK(name("other", "avx2") == "none");
    CHECK(name("third", "avx512") == "none");
    library.add(Schedule("matmul/bf16/avx512"));
    library.add(Schedule("other/avx2").stage("y", block({{"M", 4}}).pack("w", "root")));
    CHECK(name("matmul", "avx512", "bf16") == "matmul/bf16/avx512");
    CHECK(name("matmul", "avx512", "f16") == "matmul/avx2");
    CHECK(name("other", "avx2") == "other/avx2");
    CHECK(name("other", "avx2", "bf16") == "none");  // there the fold is the stage 'dot', and y loads no w
}

static Schedule tuned(const std::string &name, const Extents &fixed, const Extents &extents = {}, int64_t threads = 1,
                      const std::string &target = "avx2") {
    Provenance p;
    p.task = {"matmul", "f32", {}, fixed, extents, target, threads};
    p.resolved = "sha256:0";
    return Schedule("matmul/f32/" + target + "/" + name).stage("y", StageKnobs().vector({{"N", 8}})).with_measured(json_of(p));
}

TEST_CASE("a tuned artifact is taken for its shape, and for shapes near it, before the family's") {
    Library library;
    library.add(Schedule("matmul/avx2"));
    library.add(tuned("a", {{"M", 64}, {"N", 96}, {"K", 32}}));
    library.add(tuned("b", {{"M", 64}, {"N", 384}, {"K", 32}}));
    library.add(tuned("c", {{"N", 96}, {"K", 32}}, {{"M", 8}}));
    library.add(tuned("d", {{"N", 96}, {"K", 32}}, {{"M", 512}}));
    library.add(tuned("e", {{"N", 96}, {"K", 32}}, {{"M", 512}}, 8));
    library.add(tuned("f", {{"M", 1000}, {"N", 1000}, {"K", 1000}}, {}, 1, "avx512"));
    auto match = [&](const Extents &fixed, const char *target = "avx2", const char *numerics = "f32", const Options &options = {}) {
        const Target t = target_named(target);
        const Match m = Chooser(library, t).best(library::matmul(numerics_named(numerics)), options, fixed);
        return std::string(name_of(m.how)) + (m.schedule ? " " + m.schedule->name() : "");
    };
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}) == "exact matmul/f32/avx2/a");
    CHECK(match({{"M", 64}, {"N", 190}, {"K", 32}}) == "nearest matmul/f32/avx2/a");
    CHECK(match({{"M", 64}, {"N", 194}, {"K", 32}}) == "nearest matmul/f32/avx2/b");
    CHECK(match({{"M", 100}, {"N", 96}, {"K", 8}}) == "nearest matmul/f32/avx2/a");
    // With one dim more fixed, an artifact is for the extents that it was tuned with.
    CHECK(match({{"M", 256}, {"N", 96}, {"K", 8}}) == "nearest matmul/f32/avx2/d");
    CHECK(match({{"M", 257}, {"N", 96}, {"K", 32}}) == "nearest matmul/f32/avx2/d");
    CHECK(match({{"M", 2049}, {"N", 96}, {"K", 32}}) == "family matmul/avx2");
    CHECK(match({{"N", 96}, {"K", 32}}) == "exact matmul/f32/avx2/d");  // fewer threads, and the larger M
    CHECK(match({}) == "family matmul/avx2");
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}, "avx512") == "exact matmul/f32/avx2/a");
    CHECK(match({{"M", 900}, {"N", 1000}, {"K", 1000}}, "avx512") == "nearest matmul/f32/avx512/f");
    CHECK(match({{"M", 900}, {"N", 1000}, {"K", 1000}}) == "family matmul/avx2");
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}, "avx2", "f64") == "family matmul/avx2");
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}, "avx2", "f32", {{"stride", 2}}) == "family matmul/avx2");
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}, "arm64") == "none");
    library.add(Schedule("matmul/avx512"));
    CHECK(match({{"M", 64}, {"N", 96}, {"K", 32}}, "avx512") == "family matmul/avx512");
}

TEST_CASE("an artifact for a wider target is named where a narrower one is built") {
    Library library;
    library.add(tuned("wide", {{"N", 64}, {"K", 64}}, {{"M", 8}}, 1, "avx512"));
    library.add(Schedule("matmul/avx2"));
    const auto passed_over = [&](const Extents &fixed, const char *target) {
        const Target named = target_named(target);
        const Match match = Chooser(library, named).best(library::matmul({}), {}, fixed);
        return match.passed_over.empty() ? "" : match.passed_over.front();
    };
    CHECK(passed_over({{"N", 64}, {"K", 64}}, "avx2") ==
          "matmul/f32/avx512/wide: it is for avx512, and avx2 does not have all of its instructions; --target avx512 builds it");
    CHECK(passed_over({{"N", 64}, {"K", 64}}, "avx512") == "");
    CHECK(passed_over({{"N", 4096}, {"K", 64}}, "avx2") == "");
    CHECK(passed_over({{"N", 64}, {"K", 64}}, "arm64") == "");
    library.add(tuned("narrow", {{"N", 64}, {"K", 64}}, {{"M", 8}}, 1, "avx2"));
    CHECK(passed_over({{"N", 64}, {"K", 64}}, "avx2") == "");
}

TEST_CASE("what was measured is taken before what a cost model chose alone") {
    Library library;
    const Schedule plain = tuned("a_predicted", {{"M", 64}, {"N", 96}, {"K", 32}});
    nlohmann::json said = plain.document()["measured"];
    said["chosen_by"] = "the cost model alone";
    library.add(plain.with_measured(said));
    const Target avx2 = target_named("avx2");
    auto match = [&] { return Chooser(library, avx2).best(library::matmul({}), {}, {{"M", 64}, {"N", 96}, {"K", 32}}); };
    CHECK(match().schedule->name() == "matmul/f32/avx2/a_predicted");
    CHECK(match().how == Match::How::exact);
    CHECK(match().is_predicted);
    library.add(tuned("b", {{"M", 128}, {"N", 96}, {"K", 32}}));
    CHECK(match().schedule->name() == "matmul/f32/avx2/b");
    CHECK(match().how == Match::How::nearest);
    CHECK(!match().is_predicted);
}

TEST_CASE("an artifact that no longer applies is passed over, with a note") {
    Library library;
    const Extents shape = {{"M", 64}, {"N", 96}, {"K", 32}};
    library.add(tuned("a", shape).stage("z", block({{"M", 4}})));
    library.add(tuned("b", shape).stage("y", StageKnobs().pack("w", "prepack", {"N/8", "K", "N%8"})));
    library.add(tuned("c", shape));
    const Target avx2 = target_named("avx2");
    const Match m = Chooser(library, avx2).best(library::matmul({}), {}, shape);
    CHECK(m.schedule->name() == "matmul/f32/avx2/c");
    REQUIRE(m.passed_over.size() == 2);
    CHECK_THAT(m.passed_over[0], Catch::Contains("matmul/f32/avx2/a: error[schedule.unknown-stage]"));
    CHECK_THAT(m.passed_over[1], Catch::Contains("matmul/f32/avx2/b: it takes operands packed ahead of time"));
}

TEST_CASE("generate says which schedule it took and how, and depends on where a nearer one would be") {
    const TemporaryFolder folder;
    const std::filesystem::path dir = folder.path() / "schedules", out = folder.path() / "out";
    std::filesystem::create_directories(dir);
    auto put = [&](const Schedule &s) {
        std::filesystem::create_directories((dir / s.name()).parent_path());
        write_file(dir / (s.name() + ".json"), s.text());
    };
    auto run = [&] {
        const Outcome o = generator({"generate", "matmul", "--target", "avx2", "--shape", "M=64", "N=96", "K=32", "--schedule-dir",
                                     dir.string(), "--out", out.string(), "--depfile", (out / "d").string()});
        INFO(o.err);
        REQUIRE(o.code == 0);
        return o.err;
    };
    auto schedule = [&] { return nlohmann::json::parse(read_file(out / "matmul.manifest.json"))["targets"][0]["schedule"]; };
    auto depends = [&](const std::filesystem::path &path) {
        const std::string text = read_file(out / "d"), entry = " " + path.string();
        return text.find(entry + " \\\n") != std::string::npos || text.find(entry + "\n") != std::string::npos;
    };
    CHECK(run() == "note: matmul on avx2: schedule 'matmul/avx2'; --schedule chooses another\n");
    CHECK(schedule()["match"] == "family");
    CHECK(depends(dir));  // where the folder matmul would be made

    put(tuned("far", {{"M", 128}, {"N", 96}, {"K", 32}}));
    CHECK(
        run() ==
        "note: matmul on avx2: schedule 'matmul/f32/avx2/far', tuned for the nearest shape, K=32 M=128 N=96; --schedule chooses another\n");
    CHECK(schedule()["match"] == "nearest");
    CHECK(schedule()["tuned_for"] == nlohmann::json({{"K", 32}, {"M", 128}, {"N", 96}}));
    CHECK(!depends(dir));
    CHECK(depends(dir / "matmul"));
    CHECK(depends(dir / "matmul/f32/avx2"));
    CHECK(depends(dir / "matmul/f32/avx2/far.json"));

    put(tuned("here", {{"M", 64}, {"N", 96}, {"K", 32}}));
    CHECK(run() == "note: matmul on avx2: schedule 'matmul/f32/avx2/here', tuned for this shape; --schedule chooses another\n");
    CHECK(schedule()["match"] == "exact");
}

}  // namespace tessera::test_best_match
