#include "schedules/artifact/artifact.h"

#include <nlohmann/json.hpp>

#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_artifact {

using nlohmann::json;
using test::check_words;

TEST_CASE("stating no knobs states nothing") {
    CHECK(Schedule("s").stage("acc", StageKnobs()).text() == Schedule("s").text());
    CHECK(Schedule("s").variant({"M < 4"}, "acc", StageKnobs()).document()["variants"][0]["stages"].empty());
}

TEST_CASE("C++ and JSON say the same") {
    const Schedule s =
        Schedule("linear_gelu/f32/znver5")
            .extends("linear_gelu/f32/avx512")
            .for_algorithm("linear_gelu", "sha256:00ff")
            .require({"avx512f", "avx512_bf16"})
            .stage("acc",
                   block({{"M", 96}, {"N", 384}})
                       .k({{"K", 768}})
                       .micro({{"M", 8}, {"N", 48}})
                       .level("inner", {{"M", 4}})
                       .loops({"block.N", "k.K", "block.M", "inner.M", "micro.N", "micro.M", "some_longer_name.O", "some_longer_name.P"})
                       .vector({{"N", 16}})
                       .unroll({{"K", 4}})
                       .parallel({"block.N"})
                       .pack("w", "block", {"N/48", "K", "N%48"})
                       .prefetch("w", "y.block.M", 2)
                       .prefetch("x")
                       .layout({"N/16", "M", "N%16"})
                       .tail("M", Tail::mask)
                       .split("K", Split::How::lanes, 16)
                       .split("L", Split::How::passes)
                       .tree("R", {64, 16, 4})
                       .instruction("fma")
                       .call("once")
                       .use("linear/f32/avx512")
                       .warps(4)
                       .directive({"p", "q", "parallel", "k.K", 2})
                       .without_directive("q")
                       .place("y.micro"))
            .stage("y", StageKnobs().remove("vector"))
            .variant({"M <= 16", "N % 16 == 0", "avx512_bf16"}, "acc", block({{"M", 16}}))
            .with_measured(json::parse(R"({"gflops": 250.5, "host": {"cpu": "znver5"}, "runs": [1, 2.5e-07, true, null]})"));
    json document = s.document();
    document["stages"]["z"] = nullptr;
    document["stages"]["acc"]["tail"]["N"] = nullptr;
    CHECK(Schedule::from_json(document, "test") == Schedule::parse(test::full_text, "test"));
    CHECK(Schedule::from_json(document, "test").text() == test::full_text);
}

TEST_CASE("a call gives a new value and leaves the old one as it was") {
    const Schedule a = Schedule("a").stage("acc", block({{"M", 96}, {"N", 384}}));
    const std::string before = a.text();
    const Schedule b =
        a.with_block("acc", {{"M", 48}}).with_k("acc", {{"K", 8}}).with_micro("acc", {{"M", 4}}).with_vector("acc", {{"N", 16}});
    CHECK(a.text() == before);
    CHECK(b.document()["stages"]["acc"] ==
          json::parse(R"({"block": {"M": 48, "N": 384}, "k": {"K": 8}, "micro": {"M": 4}, "vector": {"N": 16}})"));
    CHECK(b != a);
    CHECK(b.hash() != a.hash());
    CHECK(a.hash() == Schedule::parse(before, "test").hash());
    CHECK(a.named("c").name() == "c");
}

TEST_CASE("a parent is a name or a value") {
    const Schedule parent("p");
    CHECK(Schedule("c").extends("p").parent() == nullptr);
    CHECK(Schedule("c").extends(parent).parent()->name() == "p");
    CHECK(Schedule("c").extends(parent) == Schedule("c").extends("p"));
    CHECK(Schedule("c").extends(parent).extends("q").parent() == nullptr);
    CHECK(Schedule("c").extends(parent).parent_name() == "p");
    CHECK(parent.parent_name().empty());
}

TEST_CASE("remove deletes what is inherited, unset takes back what is stated") {
    const Schedule root = Schedule("r").stage("acc", block({{"M", 4}}).k({{"K", 8}}));
    CHECK(root.remove("acc", "block").document()["stages"]["acc"] == json::parse(R"({"k": {"K": 8}})"));
    CHECK(root.remove("acc", "block").remove("acc", "k") == Schedule("r"));
    const Schedule child = Schedule("c").extends(root).with_block("acc", {{"M", 2}});
    CHECK(child.remove("acc", "block").document()["stages"]["acc"] == json::parse(R"({"block": null})"));
    CHECK(child.unset("acc", "block") == Schedule("c").extends(root));
    CHECK(child.remove("acc", "block").with_block("acc", {{"M", 1}}).document()["stages"]["acc"]["block"] == json::parse(R"({"M": 1})"));
}

TEST_CASE("a variant of the same conditions grows, another comes behind it") {
    const Schedule s = Schedule("s")
                           .variant({"M <= 4"}, "acc", block({{"M", 4}}))
                           .variant({"M <= 8"}, "acc", block({{"M", 8}}))
                           .variant({"M <= 4"}, "y", place("inline"));
    CHECK(s.document()["variants"].size() == 2);
    CHECK(s.document()["variants"][0]["stages"] == json::parse(R"({"acc": {"block": {"M": 4}}, "y": {"place": "inline"}})"));
}

TEST_CASE("a name that is none: the words") {
    check_words([] { Schedule("../a"); }, {"error[schedule.name]", "got \"../a\""});
    check_words([] { Schedule("a").named(""); }, {"error[schedule.name]"});
    check_words([] { Schedule("a").extends("/etc/passwd"); },
                {"error[schedule.outside]: schedule 'a' at /extends: expected a schedule's name inside the schedule folders",
                 "got \"/etc/passwd\""});
}

}  // namespace tessera::test_artifact
