#include "schedules/artifact/explain.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schedules/artifact/merge.h"
#include "tests/schedules/samples.h"

namespace tessera::test_explain {

using nlohmann::json;

namespace {

const Schedule base = Schedule("base").stage("acc", block({{"M", 96}, {"N", 384}}).pack("w", "block", {"N/48", "K", "N%48"}));
const Schedule middle = Schedule("middle").extends(base).with_block("acc", {{"M", 64}});
const Schedule leaf = Schedule("leaf").extends(middle).with_block("acc", {{"M", 48}}).stage("acc", StageKnobs().unroll({{"K", 4}}));

}  // namespace

TEST_CASE("explain says who states each field and what that overrides") {
    CHECK(explain(leaf, Library()) ==
          "leaf -> middle -> base\n"
          "/stages/acc/block/M   48                                                leaf, over 64 of middle, over 96 of base\n"
          "/stages/acc/block/N   384                                               base\n"
          "/stages/acc/pack/w    {\"at\": \"block\", \"layout\": [\"N/48\", \"K\", \"N%48\"]}  base\n"
          "/stages/acc/unroll/K  4                                                 leaf\n");
}

TEST_CASE("explain as JSON") {
    const json explained = explain_json(leaf, Library());
    CHECK(explained["name"] == "leaf");
    CHECK(explained["chain"] == json({"leaf", "middle", "base"}));
    CHECK(explained["fields"][0] == json::parse(
                                        R"({"field": "/stages/acc/block/M", "value": 48, "from": "leaf",
                "over": [{"from": "middle", "value": 64}, {"from": "base", "value": 96}]})"));
    CHECK(explained["fields"].size() == 4);
}

TEST_CASE("diff says which merged fields differ, and is empty between equals") {
    CHECK(diff(base, leaf, Library()) == "/stages/acc/block/M   96 -> 48\n/stages/acc/unroll/K  (none) -> 4\n");
    CHECK(diff(leaf, middle.remove("acc", "pack"), Library()) ==
          "/stages/acc/block/M   48 -> 64\n/stages/acc/pack/w    {\"at\": \"block\", \"layout\": [\"N/48\", \"K\", \"N%48\"]} -> "
          "(none)\n/stages/acc/unroll/K  4 -> (none)\n");
    CHECK(diff(leaf, leaf, Library()).empty());
}

TEST_CASE("a schedule and its flattened form do not differ") {
    std::mt19937 random(4);
    const Library library;
    for (int i = 0; i < 100; i++) {
        const Schedule s = test::random_chain(random, 4, library);
        CHECK(diff(s, flatten(s, library), library).empty());
    }
}

}  // namespace tessera::test_explain
