#include "schedules/artifact/merge.h"

#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_merge {

using nlohmann::json;
using test::check_words;

TEST_CASE("a child states only what differs, dim by dim") {
    const Schedule parent = Schedule("p").stage("acc", block({{"M", 96}, {"N", 384}}).micro({{"M", 8}}).instruction("fma"));
    const Schedule child = Schedule("c").extends(parent).with_block("acc", {{"M", 48}}).stage("y", place("inline"));
    const ResolvedSchedule r = resolve(child, Library());
    CHECK(r.name == "c");
    CHECK(r.chain == std::vector<std::string>{"c", "p"});
    CHECK(r.stages.at("acc").block == Extents{{"M", 48}, {"N", 384}});
    CHECK(r.stages.at("acc").micro == Extents{{"M", 8}});
    CHECK(r.stages.at("acc").instruction == "fma");
    CHECK(r.stages.at("y").place == Place{Place::Kind::inlined, "", ""});
}

TEST_CASE("the whole of a knob, typed") {
    const Schedule s = Schedule::parse(test::full_text, "test");
    const Schedule parent = Schedule("linear_gelu/f32/avx512")
                                .stage("z", place("root"))
                                .stage("y", StageKnobs().vector({{"N", 8}}))
                                .stage("acc", StageKnobs().tail("N", Tail::loop).directive({"q", "", "parallel", "k.K", 0}));
    CHECK_THROWS_AS(resolve(s.extends(parent), Library()), UserError);  // its own directive comes after one that it deletes
    json document = s.document();
    document["stages"]["acc"]["directives"][0].erase("after");
    const ResolvedSchedule r = resolve(Schedule::from_json(document, "test").extends(parent), Library());
    const Knobs &k = r.stages.at("acc");
    CHECK(k.place == Place{Place::Kind::at, "y", "micro"});
    CHECK(k.levels == std::map<std::string, Extents>{{"inner", {{"M", 4}}}});
    CHECK(k.loops.size() == 8);
    CHECK(k.pack == std::map<std::string, Pack>{{"w", {"block", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}}}});
    CHECK(k.prefetch == std::map<std::string, PrefetchRule>{{"w", {"y", "block.M", 2}}, {"x", {"", "", 0}}});
    CHECK(k.tail == std::map<std::string, Tail>{{"M", Tail::mask}});
    CHECK(k.split == std::map<std::string, Split>{
                         {"K", {Split::How::lanes, 16}}, {"L", {Split::How::passes, 0}}, {"R", {Split::How::tree, 0, {64, 16, 4}}}});
    CHECK((k.call == "once" && k.use == "linear/f32/avx512" && k.warps == 4));
    CHECK(k.directives == std::vector<Directive>{{"p", "", "parallel", "k.K", 2}});
    CHECK(r.stages.count("z") == 0);
    CHECK(r.stages.count("y") == 0);
    CHECK(r.requires_features == std::vector<std::string>{"avx512f", "avx512_bf16"});
    CHECK((r.algorithm == "linear_gelu" && r.surface == "sha256:00ff"));
    REQUIRE(r.variants.size() == 1);
    CHECK(r.variants[0].when.size() == 3);
    CHECK(r.variants[0].stages.at("acc").block == Extents{{"M", 16}, {"N", 384}});
    CHECK(r.variants[0].stages.at("acc").k == k.k);
}

TEST_CASE("null deletes a dim, a knob, a stage or a list") {
    const Schedule parent = Schedule("p")
                                .stage("acc", block({{"M", 96}, {"N", 384}}).vector({{"N", 16}}))
                                .stage("y", place("inline"))
                                .require({"avx2"})
                                .variant({"M <= 4"}, "acc", block({{"M", 4}}));
    const json child = {{"format", "tessera-schedule"},
                        {"version", 1},
                        {"name", "c"},
                        {"requires", nullptr},
                        {"variants", nullptr},
                        {"stages", {{"acc", {{"block", {{"M", nullptr}}}, {"vector", nullptr}}}, {"y", nullptr}}}};
    const ResolvedSchedule r = resolve(Schedule::from_json(child, "c").extends(parent), Library());
    CHECK(r.stages.size() == 1);
    CHECK(r.stages.at("acc").block == Extents{{"N", 384}});
    CHECK(r.stages.at("acc").vector.empty());
    CHECK((r.requires_features.empty() && r.variants.empty()));
}

TEST_CASE("lists and variants are replaced as a whole, directives by id") {
    const Schedule parent = Schedule("p")
                                .stage("acc", StageKnobs()
                                                  .loops({"A", "B"})
                                                  .directive({"p", "", "parallel", "k.K", 0})
                                                  .directive({"q", "", "parallel", "A", 0})
                                                  .directive({"r", "", "parallel", "B", 0}))
                                .variant({"M <= 4"}, "acc", block({{"M", 4}}))
                                .variant({"M <= 8"}, "acc", block({{"M", 8}}));
    const Schedule child = Schedule("c")
                               .extends(parent)
                               .stage("acc", StageKnobs()
                                                 .loops({"C"})
                                                 .without_directive("q")
                                                 .directive({"p", "", "parallel", "C", 2})
                                                 .directive({"a", "", "parallel", "D", 0}))
                               .variant({"avx512_bf16"}, "acc", block({{"M", 2}}));
    const ResolvedSchedule r = resolve(child, Library());
    CHECK(r.stages.at("acc").loops == std::vector<std::string>{"C"});
    CHECK(r.stages.at("acc").directives ==
          std::vector<Directive>{{"p", "", "parallel", "C", 2}, {"r", "", "parallel", "B", 0}, {"a", "", "parallel", "D", 0}});
    REQUIRE(r.variants.size() == 1);
    CHECK(r.variants[0].when[0].feature == "avx512_bf16");
}

TEST_CASE("a directive stands behind the one it comes after") {
    const Schedule s =
        Schedule("s").stage("acc", StageKnobs().directive({"a", "b", "parallel", "A", 0}).directive({"b", "", "parallel", "B", 0}));
    const auto directives = resolve(s, Library()).stages.at("acc").directives;
    CHECK((directives[0].id == "b" && directives[1].id == "a"));
}

TEST_CASE("both sides of a diamond inherit from its top and not from each other") {
    Library library;
    library.add(Schedule("top").stage("acc", block({{"M", 96}, {"N", 384}})));
    library.add(Schedule("left").extends("top").with_block("acc", {{"M", 1}}));
    library.add(Schedule("right").extends("top").with_block("acc", {{"N", 2}}));
    CHECK(resolve(Schedule("l").extends("left"), library).stages.at("acc").block == Extents{{"M", 1}, {"N", 384}});
    CHECK(resolve(Schedule("r").extends("right"), library).stages.at("acc").block == Extents{{"M", 96}, {"N", 2}});
}

TEST_CASE("a flattened schedule resolves to the same, has no parent and flattens to itself") {
    std::mt19937 random(7);
    const Library library;
    int deleted = 0;
    for (int i = 0; i < 500; i++) {
        const Schedule s = test::random_chain(random, 1 + i % 6, library);
        deleted += s.text().find("null") != std::string::npos;
        const Schedule flat = flatten(s, library);
        CHECK(flat.parent_name().empty());
        CHECK(resolve(flat, library) == resolve(s, library));
        CHECK(flatten(flat, library) == flat);
    }
    CHECK(deleted > 100);
}

TEST_CASE("what is merged first does not matter: a flattened parent gives the same child") {
    std::mt19937 random(8);
    const Library library;
    for (int i = 0; i < 300; i++) {
        const Schedule parent = test::random_chain(random, 1 + i % 4, library);
        const Schedule child = test::random_child(random, "child", parent, library);
        CHECK(resolve(child.extends(flatten(parent, library)), library) == resolve(child, library));
    }
}

TEST_CASE("a child that states nothing is its parent") {
    std::mt19937 random(9);
    const Library library;
    for (int i = 0; i < 100; i++) {
        const Schedule parent = test::random_chain(random, 3, library);
        ResolvedSchedule expected = resolve(parent, library);
        expected.name = "child";
        CHECK(resolve(Schedule("child").extends(parent), library) == expected);
    }
}

TEST_CASE("deleting what is not there: the words show the ancestors") {
    const Schedule a = Schedule("a"), b = Schedule("b").extends(a);
    check_words([&] { resolve(Schedule("c").extends(b).remove("acc", "block"), Library()); },
                {"error[schedule.nothing-to-delete]: schedule 'c' (extends b, a) at /stages/acc/block: it is deleted, but none of the "
                 "ancestors states it. Correct the name or remove the null."});
    check_words([&] { resolve(Schedule("c").stage("acc", StageKnobs().without_directive("p")), Library()); },
                {"schedule 'c' at /stages/acc/directives/p: it is deleted, but the schedule has no ancestors."});
    CHECK_NOTHROW(resolve(a.variant({"M < 4"}, "acc", StageKnobs().remove("block")), Library()));
}

TEST_CASE("a directive after one that is not there, or in a circle: the words") {
    check_words(
        [] {
            resolve(Schedule("s").stage("acc", StageKnobs().directive({"a", "b", "parallel", "A", 0})), Library());
        },
        {"error[schedule.directive]: schedule 's' at /stages/acc/directives: directive 'a' comes after 'b', which is not there. Name "
         "another, or leave 'after' out."});
    check_words(
        [] {
            resolve(Schedule("s").stage("acc",
                                        StageKnobs().directive({"a", "b", "parallel", "A", 0}).directive({"b", "a", "parallel", "A", 0})),
                    Library());
        },
        {"directive 'a' comes after 'b', which comes after it."});
}

TEST_CASE("a directive on a loop that a knob owns, even an inherited one: the words") {
    const Schedule parent =
        Schedule("p").stage("acc", block({{"M", 8}}).micro({{"M", 4}}).vector({{"N", 16}}).unroll({{"K", 4}}).parallel({"block.M"}));
    for (auto [loop, knob] : {std::pair{"block.M", "parallel"}, {"micro.M", "micro"}, {"N", "vector"}, {"K", "unroll"}})
        check_words(
            [&, loop = loop] {
                resolve(Schedule("c").extends(parent).stage("acc", StageKnobs().directive({"d", "", "parallel", loop, 0})), Library());
            },
            {"error[schedule.directive]: schedule 'c' (extends p) at /stages/acc/directives: directive 'd' changes the loop '" +
             std::string(loop) + "', which the knob '" + knob + "' owns. Change the knob or delete"});
}

}  // namespace tessera::test_merge
