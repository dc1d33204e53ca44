#include "schedules/knobs/pattern.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "schedules/artifact/merge.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_pattern {

TEST_CASE("patterns match any characters, or none") {
    CHECK(matches("fft.pass*", "fft.pass12"));
    CHECK(matches("fft.pass*", "fft.pass"));
    CHECK(matches("fft*.first", "fft.first"));
    CHECK(matches("fft*.first", "fft2.first"));
    CHECK(matches("*.acc", "ffn.up.acc"));
    CHECK(matches("a*b*c", "aXbbYc"));
    CHECK(matches("*", ""));
    CHECK_FALSE(matches("fft.pass*", "fft.first"));
    CHECK_FALSE(matches("a*b", "abX"));
    CHECK_FALSE(matches("acc", "acc2"));
    CHECK_FALSE(matches(std::string(60, '*') + "Z", std::string(60, 'a')));  // in no time
    CHECK(matches("*a*a*a", "aXaXaYa"));
}

TEST_CASE("a schedule without patterns stays as it is, and a pattern brings every knob") {
    Builder f("one");
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile acc = dot(f.input("x", {M, K}), f.input("w", {K, N})).named("acc");
    const Algorithm one = f.output("y", relu(acc)).build();
    const StageKnobs all = block({{"M", 96}})
                               .k({{"K", 768}})
                               .micro({{"M", 8}})
                               .level("inner", {{"M", 4}})
                               .loops({"block.M", "k.K", "micro.M"})
                               .vector({{"N", 16}})
                               .unroll({{"K", 4}})
                               .parallel({"block.M"})
                               .pack("w", "block", {"N/48", "K", "N%48"})
                               .prefetch("x", "y.M", 2)
                               .layout({"N/16", "M", "N%16"})
                               .tail("M", Tail::mask)
                               .split("K", Split::How::lanes, 16)
                               .instruction("fma")
                               .call("once")
                               .warps(4)
                               .directive({"p", "", "parallel", "k.K", 2})
                               .place("y.M");
    const ResolvedSchedule named = resolve(Schedule("s").stage("acc", all), Library());
    CHECK(without_patterns(named, one).stages == named.stages);
    const ResolvedSchedule by_pattern = resolve(Schedule("s").stage("ac*", all).stage("a*", StageKnobs().unroll({{"K", 2}})), Library());
    CHECK(without_patterns(by_pattern, one).stages == named.stages);
}

TEST_CASE("a pattern stands for every stage and dim that it matches; longer ones and names are over it, field by field") {
    Builder f("two");
    Dim M = f.dim("M"), N8 = f.dim("n8", 8), N4 = f.dim("n4", 4);
    Tile x = f.input("x", {M, N8, N4});
    Tile a = (x + 1.0).named("pass.a");
    Tile b = a.at({{"n8", Expr(0)}}, {"M", "n4"}).named("pass.b");
    const Algorithm two = f.output("y", b).build();
    auto written = [&](const Schedule &s) { return without_patterns(resolve(s, Library()), two).stages; };

    const Schedule base = Schedule("s").stage("pass.*", StageKnobs().place("y.M").vector({{"n*", 4}}).micro({{"k*", 2}}));
    auto stages = written(base);
    CHECK(stages.size() == 2);
    CHECK(stages.at("pass.a").vector == Extents{{"n8", 4}, {"n4", 4}});
    CHECK(stages.at("pass.b").vector == Extents{{"n4", 4}});
    CHECK(stages.at("pass.b").micro.empty());
    CHECK(stages.at("pass.b").place == Place{Place::Kind::at, "y", "M"});

    stages =
        written(base.stage("p*", StageKnobs().vector({{"n*", 2}}).unroll({{"M", 3}})).stage("pass.a", StageKnobs().vector({{"n8", 8}})));
    CHECK(stages.at("pass.a").vector == Extents{{"n8", 8}, {"n4", 4}});
    CHECK(stages.at("pass.a").unroll == Extents{{"M", 3}});
    CHECK(stages.at("pass.a").place.has_value());

    stages =
        written(Schedule("s").stage("pass.a", StageKnobs().micro({{"n*", 4}}).vector({{"n*", 2}, {"n8", 4}}).loops({"micro.n*", "M"})));
    CHECK(stages.at("pass.a").vector == Extents{{"n8", 4}, {"n4", 2}});
    CHECK(stages.at("pass.a").loops == std::vector<std::string>{"micro.n8", "micro.n4", "M"});

    CHECK(written(Schedule("s").stage("gone*", StageKnobs().vector({{"M", 4}}))).empty());
    const ResolvedSchedule variants =
        without_patterns(resolve(base.variant({"M < 4"}, "pass.*", StageKnobs().vector({{"n*", 2}})), Library()), two);
    CHECK(variants.variants.at(0).stages.at("pass.b").vector == Extents{{"n4", 2}});
}

static Algorithm two_passes() {
    Builder f("two");
    Dim M = f.dim("M"), N8 = f.dim("n8", 8), N4 = f.dim("n4", 4);
    Tile a = (f.input("x", {M, N8, N4}) + 1.0).named("pass.a");
    return f.output("y", a.at({{"n8", Expr(0)}}, {"M", "n4"}).named("pass.b")).build();
}

TEST_CASE("of two patterns the longer one is over the other, whatever their spelling, and equal ones must agree: the words") {
    auto written = [](const Schedule &s) { return without_patterns(resolve(s, Library()), two_passes()).stages; };
    CHECK(written(Schedule("s").stage("pass.a", StageKnobs().vector({{"*", 2}, {"*8", 8}, {"n*", 8}}))).at("pass.a").vector ==
          Extents{{"M", 2}, {"n8", 8}, {"n4", 8}});
    CHECK(written(Schedule("s").stage("*.a", StageKnobs().vector({{"n8", 8}})).stage("p*a", StageKnobs().unroll({{"M", 2}})))
              .at("pass.a")
              .vector == Extents{{"n8", 8}});
    test::check_words(
        [&] {
            written(Schedule("s").stage("pass*", StageKnobs().vector({{"n4", 4}})).stage("*ss.a", StageKnobs().vector({{"n4", 2}})));
        },
        {"error[schedule.pattern]: schedule 's': stage 'pass.a': expected one address to be over the other; '*ss.a' and 'pass*' are of one "
         "length, both match, and disagree "
         "on vector. Make one longer, state the name itself, or delete one (null)."});
    test::check_words(
        [&] {
            written(Schedule("s").stage("pass.*", StageKnobs().unroll({{"n*", 4}, {"*8", 2}})));
        },
        {"error[schedule.pattern]: schedule 's': stage 'pass.a', dim 'n8': expected one address to be over the other; '*8' and 'n*' are of "
         "one length, both match, and disagree on unroll."});
}

TEST_CASE("patterns that match nothing are told") {
    auto idle = [](const Schedule &s) { return idle_patterns(resolve(s, Library()), two_passes()); };
    CHECK(idle(Schedule("s").stage("pass.*", StageKnobs().vector({{"n8*", 4}}).loops({"micro.n*", "M"}))).empty());
    CHECK(idle(Schedule("s")
                   .stage("zzz*", StageKnobs().vector({{"n*", 4}}))
                   .stage("pass.b", StageKnobs().vector({{"z*", 4}, {"n*", 4}}).loops({"micro.k*"}))
                   .variant({"M < 4"}, "zzz*", StageKnobs())) ==
          std::vector<std::string>{"'micro.k*' in loops of 'pass.b' matches no dim there; the dims are M, n4",
                                   "'z*' in vector of 'pass.b' matches no dim there; the dims are M, n4",
                                   "'zzz*' matches no stage of two; its stages are pass.a, pass.b, y"});
}

}  // namespace tessera::test_pattern
