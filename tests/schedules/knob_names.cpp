#include "schedules/knobs/knob_names.h"

#include <catch2/catch.hpp>

#include "schedules/artifact/merge.h"
#include "tests/schedules/samples.h"

namespace tessera::test_knob_names {

static KnobNames prefixed() {
    KnobNames names;
    names.dim = [](const std::string &d) { return "d." + d; };
    names.loop = [](const std::string &stage, const std::string &loop) { return (stage.empty() ? "own:" : stage + ":") + loop; };
    names.axis = [](const std::string &operand, const std::string &d) { return operand + ":" + d; };
    names.stage = [](const std::string &s) { return "s." + s; };
    names.tensor = [](const std::string &t) { return "t." + t; };
    return names;
}

TEST_CASE("every name in knobs is asked for, in its context") {
    Knobs k;
    k.place = Place{Place::Kind::at, "y", "M"}, k.block = {{"M", 4}}, k.levels["tile"] = {{"N", 2}};
    k.loops = {"block.M"}, k.parallel = {"block"}, k.tail = {{"N", Tail::mask}}, k.split["K"] = {Split::How::chunks, 8};
    k.pack["w"] = {"block", {{"N", 4, false}}}, k.prefetch["x"] = {"y", "M", 1}, k.prefetch["z"] = {};
    k.layout = {{"M", 0, false}}, k.directives = {{"u", "", "unroll", "K", 2}};
    const Knobs r = renamed(k, prefixed());
    CHECK(r.place == Place{Place::Kind::at, "s.y", "y:M"});
    CHECK(r.block == Extents{{"d.M", 4}});
    CHECK(r.levels.at("tile") == Extents{{"d.N", 2}});
    CHECK(r.loops == std::vector<std::string>{"own:block.M"});
    CHECK(r.parallel == std::vector<std::string>{"own:block"});
    CHECK(r.tail.count("d.N") == 1);
    CHECK(r.split.count("d.K") == 1);
    CHECK(r.pack.at("t.w").at == "own:block");
    CHECK(r.pack.at("t.w").layout[0].dim == "w:N");
    CHECK(r.prefetch.at("t.x") == PrefetchRule{"s.y", "y:M", 1});
    CHECK(r.prefetch.at("t.z") == PrefetchRule{});
    CHECK(r.layout[0].dim == "d.M");
    CHECK(r.directives[0].loop == "own:K");
}

TEST_CASE("a stage that packs an operand is renamed with both") {
    KnobsByStage stages;
    stages["acc"].pack["w"] = {};
    stages["acc.w.packed"].place = Place{Place::Kind::at, "acc.w.packed", "K"};
    stages["y.w.packed"];  // of no pack
    const KnobsByStage r = renamed(stages, prefixed());
    CHECK(r.at("s.acc.t.w.packed").place->stage == "s.acc.t.w.packed");
    CHECK(r.count("s.acc") == 1);
    CHECK(r.count("s.y.w.packed") == 1);
}

TEST_CASE("names that stay give the same knobs") {
    KnobNames same;
    same.dim = same.stage = same.tensor = [](const std::string &name) { return name; };
    same.loop = same.axis = [](const std::string &, const std::string &name) { return name; };
    std::mt19937 random(7);
    for (int i = 0; i < 200; i++)
        for (const auto &[stage, knobs] : resolve(test::random_schedule(random, "r"), Library()).stages)
            CHECK(renamed(knobs, same) == knobs);
}

}  // namespace tessera::test_knob_names
