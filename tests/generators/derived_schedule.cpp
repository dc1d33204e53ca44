#include "generators/choose/derived_schedule.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/text/json.h"
#include "generators/choose/model_choice.h"
#include "tests/generators/harness.h"

namespace tessera::test_derived_schedule {

namespace fs = std::filesystem;
using namespace tessera::test;

namespace {

// A folder for derived schedules, which the environment names while this lives.
class Cache {
public:
    Cache() { setenv("TESSERA_CACHE", folder_.path().c_str(), 1); }
    ~Cache() {
        if (before_) setenv("TESSERA_CACHE", before_->c_str(), 1);
        else unsetenv("TESSERA_CACHE");
    }
    std::vector<fs::path> files() const {
        std::vector<fs::path> all;
        for (const auto &entry : fs::directory_iterator(folder_.path()))
            if (entry.is_regular_file()) all.push_back(entry.path());
        return all;
    }
    fs::path path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
    std::optional<std::string> before_ =
        std::getenv("TESSERA_CACHE") ? std::optional<std::string>(std::getenv("TESSERA_CACHE")) : std::nullopt;
};

Outcome shown(const std::vector<std::string> &more = {}, const char *what = "schedule") {
    std::vector<std::string> words = {"show", "ring_append", "--what", what, "--target", "x86-64"};
    words.insert(words.end(), more.begin(), more.end());
    return generator(words);
}

}  // namespace

TEST_CASE("where no artifact fits, a schedule is derived once and kept") {
    const Cache cache;
    const Outcome first = shown();
    CHECK(first.code == 0);
    CHECK_THAT(first.err, Catch::StartsWith("note: ring_append on x86-64: schedule 'ring_append/f32/x86-64', derived from ") &&
                              Catch::Contains(" candidates in ") && Catch::Contains(", kept in " + cache.path().string()) &&
                              Catch::EndsWith("; --schedule chooses another\n"));
    REQUIRE(cache.files().size() == 1);
    const Outcome second = shown();
    CHECK_THAT(second.err, Catch::Contains("', derived, kept in ") && !Catch::Contains("candidates"));
    CHECK(second.out == first.out);

    // A damaged file is as good as none.
    std::ofstream(cache.files()[0]) << "{";
    const Outcome third = shown();
    CHECK_THAT(third.err, Catch::Contains("derived from "));
    CHECK(third.out == first.out);
    CHECK(read_file(cache.files()[0]) != "{");
}

TEST_CASE("a shipped model sees the caches that it was trained with") {
    const auto caches = [](const Target &t) { return std::vector<int64_t>{t.l1_bytes, t.l2_bytes, t.l3_bytes}; };
    const Target avx512 = target_named("avx512"), arm64 = target_named("arm64");
    for (const char *name : {"avx512", "znver4", "znver5", "sapphirerapids"}) {
        INFO(name);
        const Target target = target_named(name), seen = as_shipped_model_sees(target);
        CHECK(caches(seen) == caches(avx512));
        CHECK((seen.name == target.name && seen.features == target.features));
    }
    CHECK(caches(as_shipped_model_sees(target_named("avx2"))) == caches(target_named("avx2")));
    CHECK(caches(as_shipped_model_sees(arm64)) == caches(arm64));  // none ships for it
}

TEST_CASE("a derived schedule is ready to be checked in") {
    const Cache cache;
    const TemporaryFolder schedules;
    const Outcome derived = shown();
    fs::create_directories(schedules.path() / "ring_append/f32");
    std::ofstream(schedules.path() / "ring_append/f32/x86-64.json") << derived.out;
    const Outcome taken = shown({"--schedule-dir", schedules.path()});
    CHECK(taken.err == "note: ring_append on x86-64: schedule 'ring_append/f32/x86-64'; --schedule chooses another\n");
    CHECK(shown({"--schedule-dir", schedules.path()}, "tiles").out == shown({}, "tiles").out);
}

TEST_CASE("nothing is kept where the folder for it is none, or nobody wants it kept") {
    const Cache cache;
    const fs::path file = cache.path() / "file";
    std::ofstream(file) << "";
    for (const std::string &named : {file.string(), std::string()}) {
        setenv("TESSERA_CACHE", named.c_str(), 1);
        const Outcome o = shown();
        CHECK(o.code == 0);
        CHECK_THAT(o.err, Catch::Contains("derived from ") && !Catch::Contains("kept in"));
    }
}

TEST_CASE("a schedule can be derived where an artifact fits, and for extents that the kernel mostly has") {
    const Cache cache;
    const std::vector<std::string> words = {"show", "matmul", "--what", "schedule", "--target", "avx2", "--schedule", "derived"};
    const Outcome any = generator(words);
    CHECK_THAT(any.err, Catch::StartsWith("note: matmul on avx2: schedule 'matmul/f32/avx2', derived from "));
    std::vector<std::string> one = words;
    one.insert(one.end(), {"--derive-for", "M=1", "N=512", "K=512"});
    const Outcome skinny = generator(one);
    CHECK_THAT(skinny.out, !Catch::Contains("variants"));
    CHECK(skinny.out != any.out);
    CHECK(cache.files().size() == 2);
    std::vector<std::string> unknown = words;
    unknown.insert(unknown.end(), {"--derive-for", "J=1"});
    check_refused(unknown, {"error[shape.unknown-dim]", "'J'"});
}

TEST_CASE("a program's callees have schedules of their own, for the extents of their calls") {
    const Cache cache;
    const TemporaryFolder folder;
    Builder g("scaled_product", Numerics{});
    const Dim M = g.dim("M"), N = g.dim("N"), K = g.dim("K");
    const Tile x = g.input("x", {M, K}), w = g.input("w", {K, N}), s = g.input("s", {N});
    const Algorithm callee = g.output("y", dot(x, w).named("acc") * s).build();
    Builder f("two_products", Numerics{});
    const Dim B = f.dim("B"), C = f.dim("C", 64), D = f.dim("D", 96), E = f.dim("E", 32);
    const Tile a = f.input("a", {B, C}), w1 = f.input("w1", {C, D}), w2 = f.input("w2", {D, E}), s1 = f.input("s1", {D}),
               s2 = f.input("s2", {E});
    const Tile one = f.call("one", callee, {a, w1, s1})[0];
    const Tile two = f.call("two", callee, {max(one, 0.0), w2, s2})[0];  // a stage lies between the calls
    std::ofstream(folder.path() / "two_products.json") << to_json(f.output("z", two).build());
    const std::vector<std::string> words = {"show",  folder.path() / "two_products.json", "--target", "avx2", "--derive-for", "B=128",
                                            "--what"};
    std::vector<std::string> shown = words;
    shown.push_back("schedule");
    const Outcome o = generator(shown);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const auto stages = nlohmann::json::parse(o.out)["stages"];
    CHECK(stages["one"]["use"] == "none");  // what callees take is written out
    CHECK(stages["one.acc"].contains("vector"));
    CHECK(stages["two.acc"].contains("vector"));
    CHECK(stages["two_x"]["vector"]["D"] == 8);
    CHECK(generator({"verify", folder.path() / "two_products.json", "--target", "avx2", "--derive-for", "B=128"}).code == 0);
}

TEST_CASE("callees of a layer that repeats have schedules of their own, and so have a program's own folds") {
    const Cache cache;
    const TemporaryFolder folder;
    Builder p("product", Numerics{});
    const Dim M = p.dim("M"), N = p.dim("N"), K = p.dim("K");
    const Tile left = p.input("x", {M, K}), right = p.input("w", {K, N});
    const Algorithm product = p.output("y", dot(left, right).named("acc") * 2.0).build();
    Builder g("layer", Numerics{});
    const Dim rows = g.dim("B"), columns = g.dim("C", 64), next = g.dim("D", 64);
    const Tile x = g.input("x", {rows, columns}), w = g.input("w", {columns, next});
    const Algorithm layer = g.output("y", max(g.call("up", product, {x, w})[0], 0.0) * 0.5).build();
    Builder f("layers_of_products", Numerics{});
    const Dim B = f.dim("B"), C = f.dim("C", 64), D = f.dim("D", 64), L = f.dim("L", 3);
    const Tile a = f.input("a", {B, C}), stack = f.input("stack", {L, C, D}), square = f.input("square", {C, D});
    f.output("own", dot(a, square).named("sums") + 1.0);
    const Tile z = f.repeat("layers", layer, {.dim = "L", .carried = {{"x", "y"}}}, {a, stack})[0];
    const std::string file = folder.path() / "layers_of_products.json";
    std::ofstream(file) << to_json(f.output("z", z).build());
    const Outcome o = generator({"show", file, "--target", "avx2", "--derive-for", "B=128", "--what", "schedule"});
    INFO(o.err);
    REQUIRE(o.code == 0);
    const auto stages = nlohmann::json::parse(o.out)["stages"];
    CHECK(stages["layers"]["use"] == "none");
    CHECK(stages["layers.up.acc"].contains("vector"));
    CHECK(stages["layers.y"]["vector"].size() == 1);  // the layer's own
    CHECK(stages["sums"].contains("micro"));
    CHECK(generator({"verify", file, "--target", "avx2", "--derive-for", "B=128"}).code == 0);
}

TEST_CASE("the manifest says that a schedule was derived") {
    const Cache cache;
    const TemporaryFolder out;
    const Outcome o = generator({"generate", "ring_append", "--target", "x86-64", "--quiet", "--out", out.path()});
    INFO(o.err);
    REQUIRE(o.code == 0);
    const auto manifest = nlohmann::json::parse(read_file(out.path() / "ring_append.manifest.json"));
    CHECK(manifest["targets"][0]["schedule"]["match"] == "derived");
    CHECK(manifest["targets"][0]["schedule"]["name"] == "ring_append/f32/x86-64");
}

}  // namespace tessera::test_derived_schedule
