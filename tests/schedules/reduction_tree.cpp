#include "schedules/knobs/reduction_tree.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schedules/artifact/merge.h"
#include "schedules/artifact/write.h"
#include "schedules/check/check.h"
#include "schedules/knobs/written_out.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_reduction_tree {

using nlohmann::json;
using test::check_words;

namespace {

Schedule tree_of(const StageKnobs &acc) { return Schedule("s").stage("acc", acc); }

json written(const Schedule &schedule, const Library &library = {}) {
    json all = json::object();
    for (const auto &[stage, knobs] : written_out(resolve(schedule, library), test::sample_algorithm()).stages) all[stage] = json_of(knobs);
    return all;
}

json lanes(int64_t size) { return {{"how", "lanes"}, {"size", size}}; }

}  // namespace

TEST_CASE("a tree is splits inside each other, with the knobs of the stages that they make") {
    const json all = written(tree_of(StageKnobs().place("y.M").vector({{"K", 16}}).tree("K", {64, 16, 4})));
    CHECK(all["acc"] ==
          json{{"place", "y.M"}, {"unroll", {{"K.i.i.i", 4}}}, {"split", {{"K", lanes(64)}, {"K.i", lanes(16)}, {"K.i.i", lanes(4)}}}});
    CHECK(all["acc.partial"] == json{{"place", "y.M"}, {"micro", {{"K.i", 64}}}, {"vector", {{"K.i", 16}}}});
    CHECK(all["acc.partial2"] ==
          json{{"place", "y.M"}, {"micro", {{"K.i.i", 16}}}, {"vector", {{"K.i.i", 16}}}, {"unroll", {{"K.i.o", 4}}}});
    CHECK(all["acc.partial3"] ==
          json{{"place", "y.M"}, {"micro", {{"K.i.i.i", 4}}}, {"vector", {{"K.i.i.i", 4}}}, {"unroll", {{"K.i.i.o", 4}}}});
    CHECK(all.size() == 4);
}

TEST_CASE("a level that is too narrow for a vector runs in none, and without lanes there are only places") {
    const json narrow = written(tree_of(StageKnobs().vector({{"K", 8}}).tree("K", {32, 8, 2})));
    CHECK(narrow["acc.partial3"] == json{{"place", "acc.N"}, {"micro", {{"K.i.i.i", 2}}}, {"unroll", {{"K.i.i.o", 4}}}});
    const json pairs = written(tree_of(StageKnobs().vector({{"K", 2}}).tree("K", {8, 2})));
    CHECK(pairs["acc.partial2"]["vector"] == json{{"K.i.i", 2}});
    const json twelve = written(tree_of(StageKnobs().vector({{"K", 16}}).tree("K", {48, 12})));
    CHECK(twelve["acc.partial2"]["vector"] == json{{"K.i.i", 4}});
    const json bare = written(tree_of(StageKnobs().tree("K", {256, 16})));
    CHECK(bare["acc.partial"] == json{{"place", "acc.N"}});
    CHECK(bare["acc"] == json{{"split", {{"K", lanes(256)}, {"K.i", lanes(16)}}}});
}

TEST_CASE("partial results are computed in the innermost loop over the stage's own dims") {
    const json all = written(tree_of(StageKnobs().block({{"M", 4}}).loops({"block.M", "N", "M", "K.i"}).tree("K", {8})));
    CHECK(all["acc.partial"]["place"] == "acc.M");
}

TEST_CASE("what a schedule states of a partial stage is over the tree") {
    const Schedule s = tree_of(StageKnobs().place("y.M").vector({{"K", 16}}).tree("K", {64, 16}))
                           .stage("acc.partial", StageKnobs().vector({{"K.i", 8}}).instruction("mul_add"));
    CHECK(written(s)["acc.partial"] ==
          json{{"place", "y.M"}, {"micro", {{"K.i", 64}}}, {"vector", {{"K.i", 8}}}, {"instruction", "mul_add"}});
}

TEST_CASE("a child replaces a tree, narrows its vectors or deletes it") {
    const Schedule parent = tree_of(StageKnobs().place("y.M").vector({{"K", 8}}).tree("K", {32, 8, 2}));
    Library library;
    library.add(parent);
    const Schedule child = Schedule("c").extends("s");
    CHECK(written(child.stage("acc", StageKnobs().vector({{"K", 4}})), library) ==
          written(tree_of(StageKnobs().place("y.M").vector({{"K", 4}}).tree("K", {32, 8, 2}))));
    CHECK(written(child.stage("acc", StageKnobs().tree("K", {16, 4})), library) ==
          written(tree_of(StageKnobs().place("y.M").vector({{"K", 8}}).tree("K", {16, 4}))));
    CHECK(written(child.stage("acc", StageKnobs().split("K", Split::How::chunks, 4).remove("vector")), library) ==
          json{{"acc", {{"place", "y.M"}, {"split", {{"K", {{"how", "chunks"}, {"size", 4}}}}}}}});
    CHECK(written(child.stage("acc", StageKnobs().remove("split").remove("vector")), library) == json{{"acc", {{"place", "y.M"}}}});
    const Schedule flat = flatten(child.stage("acc", StageKnobs().vector({{"K", 4}})), library);
    CHECK(flat.text().find("\"split\": {\"K\": {\"lanes\": [32, 8, 2]}}") != std::string::npos);
}

TEST_CASE("trees in variants and under patterns are written out too") {
    const ResolvedSchedule r = written_out(
        resolve(Schedule("s").stage("a*", StageKnobs().tree("K*", {8, 4})).variant({"M <= 4"}, "acc", StageKnobs().tree("K", {4, 2})),
                Library()),
        test::sample_algorithm());
    CHECK(r.stages.at("acc").split.at("K.i") == Split{Split::How::lanes, 4});
    CHECK(r.variants[0].stages.at("acc").split.at("K.i") == Split{Split::How::lanes, 2});
    CHECK(r.variants[0].stages.count("acc.partial2") == 1);
}

TEST_CASE("splits inside each other become a tree where that says the same, and are written out as they were") {
    const Algorithm a = test::sample_algorithm();
    const KnobsByStage tree = resolve(tree_of(StageKnobs().place("y.M").vector({{"K", 16}}).tree("K", {64, 16, 4})), Library()).stages;
    const KnobsByStage splits = without_trees(tree, a);
    CHECK(with_trees(splits, a) == tree);
    KnobsByStage other = splits;
    other["acc.partial2"].unroll["K.i.o"] = 2, other["acc.partial"].instruction = "mul_add";
    const KnobsByStage shorter = with_trees(other, a);
    CHECK(shorter.at("acc").split.at("K") == Split{Split::How::tree, 0, {64, 16, 4}});
    CHECK(shorter.at("acc.partial2") == [] {
        Knobs k;
        k.unroll = {{"K.i.o", 2}};
        return k;
    }());
    CHECK(without_trees(shorter, a) == other);
    for (const auto &change : std::vector<std::function<void(KnobsByStage &)>>{[](KnobsByStage &s) { s["acc.partial"].micro.clear(); },
                                                                               [](KnobsByStage &s) { s["acc.partial"].place.reset(); },
                                                                               [](KnobsByStage &s) { s["acc"].unroll.clear(); },
                                                                               [](KnobsByStage &s) {
                                                                                   s["acc"].split["K.i"] = {Split::How::chunks, 16};
                                                                               },
                                                                               [](KnobsByStage &s) { s["acc"].split["K.i"].size = 12; }}) {
        KnobsByStage stays = splits;
        change(stays);
        CHECK(with_trees(stays, a) == stays);
    }
}

TEST_CASE("a random set of knobs is the same with trees and without them") {
    std::mt19937 random(11);
    const Algorithm a = test::sample_algorithm();
    for (int i = 0; i < 300; i++) {
        KnobsByStage stages = without_trees(resolve(test::random_schedule(random, "r"), Library()).stages, a);
        CHECK(without_trees(stages, a) == stages);
        CHECK(without_trees(with_trees(stages, a), a) == stages);
    }
}

TEST_CASE("trees that are none: the words") {
    auto refused = [](const json &split, const std::string &words) {
        check_words(
            [&] {
                Schedule::from_json(
                    {{"format", "tessera-schedule"}, {"version", 1}, {"name", "s"}, {"stages", {{"acc", {{"split", {{"K", split}}}}}}}},
                    "s");
            },
            {words});
    };
    refused(
        {{"lanes", {16, 64}}},
        "error[schedule.range]: schedule 's' at /stages/acc/split/K/lanes/1: expected fewer lanes than the 16 before, of which they are "
        "a divisor; got 64. Write the levels of a tree as in [64, 16, 4].");
    refused({{"lanes", {64, 24}}}, "got 24.");
    refused({{"lanes", {64, 64}}}, "expected fewer lanes than the 64 before");
    refused({{"lanes", {64, 1}}},
            "error[schedule.range]: schedule 's' at /stages/acc/split/K/lanes/1: expected a number of lanes from 2 to");
    refused({{"lanes", json::array()}}, "expected from 1 to 8 levels of a reduction tree; got 0. Write them as in [64, 16, 4].");
    refused({{"lanes", 64}},
            "error[schedule.type]: schedule 's' at /stages/acc/split/K/lanes: expected an array of lanes, most first; got 64");
    refused({{"lanes", {64}}, {"how", "chunks"}},
            "error[schedule.unknown-field]: schedule 's' at /stages/acc/split/K/how: a reduction tree, which 'lanes' states, has no 'how'. "
            "Remove one of the two.");
    check_words(
        [] {
            check(written_out(resolve(Schedule("s").stage("y", StageKnobs().tree("K", {8, 4})), Library()), test::sample_algorithm()),
                  test::sample_algorithm());
        },
        {"error[schedule.split]: schedule 's' at /stages/y: linear.y is no reduction and no scan"});
    check_words(
        [] {
            check(written_out(resolve(Schedule("s").stage("acc", StageKnobs().tree("J", {8, 4})), Library()), test::sample_algorithm()),
                  test::sample_algorithm());
        },
        {"error[schedule.unknown-dim]: schedule 's' at /stages/acc/split/J: linear.acc does not reduce over 'J'; it reduces over K."});
}

}  // namespace tessera::test_reduction_tree
