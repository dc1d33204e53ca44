#include "generators/choose/choice.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "compiler/compile/variants.h"
#include "generators/kernel/prepare.h"
#include "schedules/artifact/provenance.h"
#include "tests/generators/harness.h"

namespace tessera::test_choice {

using namespace tessera::test;

namespace {

// How often each variant of each kernel is lowered.
struct Lowerings {
    std::map<std::string, int> of;
    std::vector<Note> notes;

    PreparationObserver observer() {
        PreparationObserver all;
        all.lowers = [this](const Algorithm &bound, const std::vector<Condition> &when) {
            of[bound.name + " " + semantic_hash(bound) + " " + condition_text(when)]++;
        };
        all.notes = [this](const Note &note) { notes.push_back(note); };
        return all;
    }
    int most() const {
        int most = 0;
        for (const auto &[what, times] : of) most = std::max(most, times);
        return most;
    }
    int of_kernel(const std::string &name) const {
        int times = 0;
        for (const auto &[what, count] : of) times += what.starts_with(name + " ") ? count : 0;
        return times;
    }
};

KernelOptions options(const std::string &algorithm, const std::vector<std::string> &shape = {}, const std::string &target = "avx2") {
    KernelOptions all;
    all.algorithm = algorithm, all.shape = shape, all.target = target;
    return all;
}

Schedule tuned_matmul(const std::string &name, const Extents &fixed) {
    Provenance p;
    p.task = {"matmul", "f32", {}, fixed, {}, "avx2", 1};
    p.resolved = "sha256:0";
    return Schedule("matmul/f32/avx2/" + name).stage("y", StageKnobs().vector({{"N", 8}})).with_measured(json_of(p));
}

// y[M, D] = four layers, each of which calls the same two: a program whose callees are chosen for each of their calls.
Algorithm layers(const Numerics &numerics) {
    Builder layer("layer", numerics);
    {
        const Dim M = layer.dim("M"), D = layer.dim("D"), F = layer.dim("F");
        const Tile x = layer.input("x", {M, D}), v = layer.input("v", {D, F}), c = layer.input("c", {F});
        const Tile w = layer.input("w", {F, D}), b = layer.input("b", {D});
        const Tile hidden = layer.call("up", library::linear_gelu(numerics), {x, v, c})[0];  // (M, F)
        layer.output("y", layer.call("down", library::linear_gelu(numerics), {hidden, w, b})[0]);
    }
    const Algorithm one = layer.build();
    Builder f("layers", numerics);
    const Dim M = f.dim("M"), D = f.dim("D"), F = f.dim("F");
    Tile x = f.input("x", {M, D});
    const Tile v = f.input("v", {D, F}), c = f.input("c", {F}), w = f.input("w", {F, D}), b = f.input("b", {D});
    for (const char *scope : {"first", "second", "third", "fourth"}) x = f.call(scope, one, {x, v, c, w, b})[0];  // (M, D)
    return f.output("y", x).build();
}

class NoCache {
public:
    NoCache() { setenv("TESSERA_CACHE", "", 1); }
    ~NoCache() {
        if (before_) setenv("TESSERA_CACHE", before_->c_str(), 1);
        else unsetenv("TESSERA_CACHE");
    }

private:
    std::optional<std::string> before_ =
        std::getenv("TESSERA_CACHE") ? std::optional<std::string>(std::getenv("TESSERA_CACHE")) : std::nullopt;
};

}  // namespace

TEST_CASE("without --schedule each variant of a kernel is lowered once, whichever way its schedule is come by") {
    const NoCache no_cache;
    Registry registry = sample_registry();
    registry.add_schedule([] { return tuned_matmul("here", {{"M", 64}, {"N", 96}, {"K", 32}}); });
    auto lowered = [&](KernelOptions all, Match::How how) {
        Lowerings lowerings;
        const PreparedKernel p = prepare(registry, all, "", lowerings.observer());
        INFO(all.algorithm << " " << all.numerics << " " << all.target);
        CHECK(name_of(p.choice.match.how) == std::string(name_of(how)));
        CHECK(lowerings.most() == 1);
        CHECK(lowerings.of_kernel(p.request.declared.name) == static_cast<int>(p.compiled.kernel.variants.size()));
        CHECK(!p.choice.compiled);
    };
    lowered(options("matmul", {"M=64", "N=96", "K=32"}), Match::How::exact);
    lowered(options("matmul", {"M=64", "N=190", "K=32"}), Match::How::nearest);
    const std::vector<std::string> unlike_any = {"M=1", "N=1", "K=3"};
    lowered(options("matmul", unlike_any), Match::How::family);
    lowered(options("layernorm", {"N=3"}, "avx512"), Match::How::family);
    KernelOptions other_policy = options("matmul", unlike_any);
    other_policy.numerics = "f16";
    lowered(other_policy, Match::How::family);
    lowered(options("ring_append", {}, "x86-64"), Match::How::derived);
    KernelOptions given = options("matmul", unlike_any);
    given.given = std::make_shared<const Algorithm>(library::matmul({}));
    lowered(given, Match::How::family);
}

TEST_CASE("a callee is chosen once, however often it is called and however deep") {
    Registry registry = sample_registry();
    registry.add("layers", "y[M, D] = four layers", layers);
    KernelOptions all = options("layers", {"D=64"});
    registry.add_schedule([] { return Schedule("layers/silent"); });
    registry.add_schedule([] { return Schedule("layer/avx2"); });  // which has to be tried, with what it calls
    all.schedule = "layers/silent";
    Lowerings lowerings;
    const PreparedKernel p = prepare(registry, all, "", lowerings.observer());
    CHECK(lowerings.most() == 1);
    CHECK(lowerings.of_kernel("linear_gelu") > 0);
    CHECK(lowerings.of_kernel("layer") == 1);
    CHECK(lowerings.of_kernel("layers") == static_cast<int>(p.compiled.kernel.variants.size()));
    CHECK(p.choice.callees.size() >= 4);
}

TEST_CASE("notes are values, told as soon as they are known, and nothing is printed") {
    Registry registry = sample_registry();
    const Extents shape = {{"M", 64}, {"N", 96}, {"K", 32}};
    registry.add_schedule([=] { return tuned_matmul("a", shape).stage("z", block({{"M", 4}})); });
    Lowerings lowerings;
    const PreparedKernel p = prepare(registry, options("matmul", {"M=64", "N=96", "K=32"}), "", lowerings.observer());
    REQUIRE(p.choice.notes.size() == 2);
    CHECK(p.choice.notes == lowerings.notes);
    CHECK(p.choice.notes[0].id == "choice.passed-over");
    CHECK_THAT(p.choice.notes[0].text, Catch::StartsWith("matmul on avx2: passed over matmul/f32/avx2/a: error[schedule.unknown-stage]"));
    CHECK(p.choice.notes[1] == Note{"choice.schedule", "matmul on avx2: schedule 'matmul/avx2'; --schedule chooses another"});

    // What was noted before a step that fails is told.
    KernelOptions broken = options("matmul");
    broken.schedule = "matmul/broken";
    registry.add_schedule([] { return Schedule("matmul/broken").stage("q*", block({{"M", 4}})).require({"avx512f"}); });
    lowerings.notes.clear();
    CHECK_THROWS_AS(prepare(registry, broken, "", lowerings.observer()), UserError);
    REQUIRE(lowerings.notes.size() == 1);
    CHECK(lowerings.notes[0].id == "schedule.idle-pattern");
}

}  // namespace tessera::test_choice
