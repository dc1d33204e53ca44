#include "schedules/artifact/provenance.h"

#include <catch2/catch.hpp>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/words.h"

namespace tessera::test_provenance {

using namespace tessera::test;

static Provenance sample() {
    Provenance p;
    p.task = {"conv2d_nhwc", "bf16", {{"stride", 2}}, {{"N", 1}}, {{"H", 56}}, "avx512", 4};
    p.resolved = "sha256:1", p.semantic = "sha256:2", p.stated = "sha256:3", p.version = "0.1.0";
    p.ancestors = {{"a/b", "sha256:4"}, {"a/c", "sha256:5"}};
    p.predicted = {1.5e-5, -2.25, "sha256:6", "sha256:7"};
    p.counts = {{"loads", 12}, {"stores", 3.5}};
    return p;
}

TEST_CASE("provenance goes through an artifact's measured and back") {
    nlohmann::json measured = nlohmann::json::parse(json_of(sample()).dump());
    measured["machine"] = "one of ours";
    const auto back = provenance_of(Schedule("a/d").with_measured(measured));
    REQUIRE(back);
    CHECK(json_of(*back) == json_of(sample()));
    CHECK(back->task == sample().task);
    CHECK(to_string(back->task) == "conv2d_nhwc/bf16 stride=2 N=1 H=56 on avx512, 4 threads");
}

TEST_CASE("a schedule without a task or a hash has no provenance; what is of another type is refused") {
    CHECK(!provenance_of(Schedule("a/d")));
    CHECK(!provenance_of(Schedule("a/d").with_measured({{"resolved", "sha256:1"}, {"seconds", 1.5}})));
    nlohmann::json measured = nlohmann::json::parse(json_of(sample()).dump());
    auto refuse = [&](const char *pointer, const nlohmann::json &value, const std::vector<std::string> &words) {
        nlohmann::json wrong = measured;
        wrong[nlohmann::json::json_pointer(pointer)] = value;
        check_words([&] { provenance_of(Schedule("a/d").with_measured(wrong)); }, words);
    };
    refuse("/task/fixed/N", "many", {"error[json.type]: a/d: /measured/task/fixed/N"});
    refuse("/task/threads", 0, {"error[json.value]: a/d: /measured/task/threads"});
    refuse("/from/ancestors/0", nlohmann::json::array({"a/b"}),
           {"error[json.value]: a/d: /measured/from/ancestors/0: expected [name, hash]"});
    refuse("/predicted/draft_s", "fast", {"error[json.type]: a/d: /measured/predicted/draft_s"});
    measured["task"].erase("target");
    check_words([&] { provenance_of(Schedule("a/d").with_measured(measured)); }, {"error[json.missing]: a/d: /measured/task", "target"});
}

TEST_CASE("what a schedule states is hashed without its measurements") {
    const Schedule s = Schedule("a/d").stage("y", block({{"M", 4}}));
    CHECK(stated_hash(s) == stated_hash(s.with_measured({{"seconds", 1.5}})));
    CHECK(stated_hash(s) != stated_hash(s.with_block("y", {{"M", 8}})));
}

TEST_CASE("shapes are compared dim by dim in powers of two") {
    CHECK(shape_distance({{"M", 8}, {"N", 64}}, {{"M", 64}, {"N", 1024}}) == Approx(5));
    CHECK(shape_distance({{"M", 8}, {"N", 0}}, {{"M", 8}, {"N", 0}}) == 0);
    CHECK(std::isinf(shape_distance({{"M", 8}}, {{"M", 0}})));
    CHECK(std::isinf(shape_distance({{"M", 8}}, {{"N", 8}})));
    CHECK(std::isinf(shape_distance({{"M", 8}}, {})));
}

}  // namespace tessera::test_provenance
