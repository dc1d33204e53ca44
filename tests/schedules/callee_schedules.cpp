#include "schedules/artifact/callee_schedules.h"

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/transform/inline_calls.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/pattern.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_callee_schedules {

using nlohmann::json;
using test::check_words;
using Strings = std::vector<std::string>;

namespace {

Expr at(const std::string &tensor, const Strings &dims) {
    std::vector<Expr> index;
    for (const std::string &d : dims) index.push_back(variable(d));
    return load(tensor, DType::f32, index);
}

Call call_of(const std::string &scope, const Algorithm &callee, const std::map<std::string, std::string> &dims,
             const std::map<std::string, std::string> &tensors) {
    return {scope, std::make_shared<const Algorithm>(callee), dims, {tensors.begin(), tensors.end()}, {}};
}

// z = down(up(in, wt, bias), back, offset), both calls of `linear`: in[A, C], wt[C, B], back[B, C], z[A, C].
Algorithm net() {
    Algorithm a;
    a.name = "net";
    a.dims = {symbolic_dim("A"), symbolic_dim("B"), symbolic_dim("C")};
    a.tensors = {{"in", DType::f32, {"A", "C"}, Role::input, {}},
                 {"wt", DType::f32, {"C", "B"}, Role::input, {}},
                 {"bias", DType::f32, {"B"}, Role::input, {}},
                 {"back", DType::f32, {"B", "C"}, Role::input, {}},
                 {"offset", DType::f32, {"C"}, Role::input, {}}};
    a.steps = {
        call_of("up", test::sample_algorithm(), {{"M", "A"}, {"N", "B"}, {"K", "C"}}, {{"x", "in"}, {"w", "wt"}, {"b", "bias"}}),
        call_of("down", test::sample_algorithm(), {{"M", "A"}, {"N", "C"}, {"K", "B"}}, {{"x", "up.p"}, {"w", "back"}, {"b", "offset"}}),
        Stage{"z", {"A", "C"}, Map{at("down.p", {"A", "C"})}}};
    a.outputs = {"z"};
    return a;
}

// A program whose call "net" is of one that calls `linear` itself.
Algorithm nest() {
    Algorithm a = net();
    a.name = "nest";
    a.steps = {call_of("net", net(), {{"A", "A"}, {"B", "B"}, {"C", "C"}},
                       {{"in", "in"}, {"wt", "wt"}, {"bias", "bias"}, {"back", "back"}, {"offset", "offset"}}),
               Stage{"z", {"A", "C"}, Map{at("net.z", {"A", "C"})}}};
    return a;
}

const StageKnobs packing = StageKnobs()
                               .place("y.tile")
                               .micro({{"M", 8}, {"N", 48}})
                               .vector({{"N", 16}})
                               .pack("w", "root", {"N/48", "K", "N%48"})
                               .prefetch("x", "y.M", 2);

Library library() {
    Library all;
    all.add(Schedule("linear/base")
                .require({"avx2"})
                .stage("acc", packing)
                .stage("acc.w.packed", place("y.micro.N"))
                .stage("y", StageKnobs().micro({{"N", 48}}).level("tile", {{"M", 8}}).loops({"micro.N", "tile.M"}).parallel({"micro.N"})));
    all.add(Schedule("linear/wide").extends("linear/base").require({"avx512f"}).stage("y", StageKnobs().vector({{"N", 16}})));
    all.add(Schedule("linear/tree").stage("acc", StageKnobs().place("y.M").vector({{"K", 8}}).tree("K", {16, 8})));
    all.add(Schedule("linear/patterns").stage("a*", StageKnobs().vector({{"N*", 8}})));
    all.add(Schedule("linear/variants")
                .stage("acc", StageKnobs().vector({{"N", 4}}))
                .variant({"M <= 4"}, "acc", StageKnobs().unroll({{"K", 4}}))
                .variant({"N % 16 == 0", "avx512f"}, "acc", StageKnobs().vector({{"N", 16}})));
    return all;
}

CalleeRules checked() {
    CalleeRules rules;
    rules.check = [](const ResolvedSchedule &given, const Algorithm &callee) {
        const ResolvedSchedule s = without_patterns(given, callee);
        check(s, callee);
        const bool splits = std::any_of(s.stages.begin(), s.stages.end(), [](const auto &k) { return !k.second.split.empty(); });
        if (!splits) check_stages(s, -1, inline_calls(callee));
    };
    return rules;
}

ProgramSchedule program(const Schedule &schedule, const Algorithm &algorithm = net(), const CalleeRules &rules = checked()) {
    return resolve_program(schedule, algorithm, {}, library(), rules);
}

Schedule with(const std::string &scope, const std::string &use) { return Schedule("s").stage(scope, StageKnobs().use(use)); }

Strings scopes(const ProgramSchedule &p) {
    Strings all;
    for (const CalleeSchedule &c : p.callees) all.push_back(c.scope + " " + c.ancestry.front().name() + (c.is_named ? "" : " matched"));
    return all;
}

}  // namespace

TEST_CASE("a callee's schedule applies to its call, in names of the caller") {
    const ProgramSchedule p = program(with("up", "linear/wide"));
    const Knobs &acc = p.resolved.stages.at("up.acc");
    CHECK(acc.place == Place{Place::Kind::at, "up.y", "tile"});
    CHECK(acc.micro == Extents{{"A", 8}, {"B", 48}});
    CHECK(acc.pack == std::map<std::string, Pack>{{"wt", {"root", {{"B", 48, false}, {"C", 0, false}, {"B", 48, true}}}}});
    CHECK(acc.prefetch == std::map<std::string, PrefetchRule>{{"in", {"up.y", "A", 2}}});
    CHECK(p.resolved.stages.at("up.acc.wt.packed").place == Place{Place::Kind::at, "up.y", "micro.B"});
    const Knobs &y = p.resolved.stages.at("up.y");
    CHECK((y.loops == Strings{"micro.B", "tile.A"} && y.parallel == Strings{"micro.B"} && y.vector == Extents{{"B", 16}}));
    CHECK(y.levels == std::map<std::string, Extents>{{"tile", {{"A", 8}}}});
    CHECK(p.resolved.stages.size() == 3);
    CHECK(scopes(p) == Strings{"up linear/wide"});
    CHECK(program(with("down", "linear/base")).resolved.stages.at("down.acc").prefetch.begin()->first == "up.p");
}

TEST_CASE("what the caller states is over the callee's schedule, field by field") {
    const Schedule s = with("up", "linear/wide")
                           .stage("up.acc", StageKnobs().micro({{"A", 6}}).remove("prefetch"))
                           .stage("up.y", StageKnobs(json{{"vector", {{"B", 8}}}, {"levels", nullptr}}));
    const auto stages = program(s).resolved.stages;
    CHECK(stages.at("up.acc").micro == Extents{{"A", 6}, {"B", 48}});
    CHECK(stages.at("up.acc").prefetch.empty());
    CHECK((stages.at("up.y").vector == Extents{{"B", 8}} && stages.at("up.y").levels.empty()));
    Library all = library();
    all.add(s);
    const Schedule child =
        Schedule("child").extends("s").stage("up.acc", StageKnobs().micro({{"A", 4}})).stage("up", StageKnobs().use("linear/base"));
    const auto inherited = resolve_program(child, net(), {}, all, checked()).resolved.stages;
    CHECK(inherited.at("up.acc").micro == Extents{{"A", 4}, {"B", 48}});
    CHECK(inherited.at("up.y").vector == Extents{{"B", 8}});
    CHECK(
        resolve_program(Schedule("child").extends("s").stage("up", StageKnobs().use("none")), net(), {}, all, {}).resolved.stages.size() ==
        2);
    check_words([&] { program(with("up", "linear/wide").stage("up.acc", StageKnobs().remove("unroll"))); },
                {"error[schedule.nothing-to-delete]: schedule 's' at /stages/up.acc/unroll"});
}

TEST_CASE("a pattern of the caller is over the callee's schedule too") {
    const auto stages = program(with("up", "linear/wide").stage("up.*", StageKnobs().vector({{"B", 8}}))).resolved.stages;
    CHECK(stages.at("up.acc").vector.empty());  // from now on the pattern's
    CHECK(stages.at("up.acc").micro == Extents{{"A", 8}, {"B", 48}});
    CHECK(stages.at("up.*").vector == Extents{{"B", 8}});
}

TEST_CASE("the callee's patterns are written out, and its trees stay trees") {
    const auto stages = program(with("up", "linear/patterns").stage("down", StageKnobs().use("linear/tree"))).resolved.stages;
    CHECK(stages.at("up.acc").vector == Extents{{"B", 8}});
    CHECK(stages.at("down.acc").split == std::map<std::string, Split>{{"B", {Split::How::tree, 0, {16, 8}}}});
    CHECK(stages.at("down.acc").vector == Extents{{"B", 8}});
}

TEST_CASE("a call that nothing is said of takes what matches") {
    Strings asked;
    CalleeRules rules = checked();
    rules.match = [&](const std::string &scope, const Algorithm &callee, const Extents &fixed) -> std::optional<Schedule> {
        asked.push_back(scope + " " + callee.name + " " + json(fixed).dump());
        return scope == "up" || scope == "net" ? std::optional(library().find("linear/wide")) : std::nullopt;
    };
    auto taken = [&](const Schedule &s) {
        asked.clear();
        return scopes(resolve_program(s, net(), {{"B", 96}}, library(), rules));
    };
    CHECK(taken(Schedule("s")) == Strings{"up linear/wide matched"});
    CHECK(asked == Strings{"up linear {\"N\":96}", "down linear {\"K\":96}"});
    CHECK(taken(Schedule("s").stage("up.y", StageKnobs().vector({{"B", 8}}))).empty());
    CHECK(asked == Strings{"down linear {\"K\":96}"});
    CHECK(taken(with("up", "none").stage("down", StageKnobs().use("linear/base"))) == Strings{"down linear/base"});
    CHECK(asked.empty());
    CHECK(taken(Schedule("s").stage("up", StageKnobs().call("once"))) == Strings{"up linear/wide matched"});
    CHECK(taken(Schedule("s").stage("u*.y", StageKnobs().vector({{"B", 8}}))).empty());
    CHECK(taken(Schedule("s").stage("z", StageKnobs().vector({{"C", 8}})).variant({"A <= 4"}, "up.y", StageKnobs().vector({{"B", 4}}))) ==
          Strings{"up linear/wide matched"});  // where the variant does not hold
    CHECK(asked.front() == "down linear {\"K\":96}");
}

TEST_CASE("calls inside a callee") {
    Library all = library();
    all.add(Schedule("net/own").stage("up", StageKnobs().use("linear/wide")).stage("z", StageKnobs().vector({{"C", 8}})));
    auto resolved = [&](const Schedule &s) { return resolve_program(s, nest(), {}, all, checked()); };
    const ProgramSchedule p = resolved(with("net", "net/own"));
    CHECK(scopes(p) == Strings{"net net/own", "net.up linear/wide"});
    CHECK(p.resolved.stages.at("net.up.acc").place == Place{Place::Kind::at, "net.up.y", "tile"});
    CHECK(p.resolved.stages.at("net.up.acc.wt.packed").place == Place{Place::Kind::at, "net.up.y", "micro.B"});
    CHECK(p.resolved.stages.at("net.z").vector == Extents{{"C", 8}});
    const Schedule other =
        with("net", "net/own").stage("net.up", StageKnobs().use("linear/base")).stage("net.down", StageKnobs().use("linear/base"));
    CHECK(scopes(resolved(other)) == Strings{"net net/own", "net.up linear/base", "net.down linear/base"});
    CHECK(scopes(resolved(with("net.down", "linear/wide"))) == Strings{"net.down linear/wide"});
    CHECK(scopes(resolved(with("net", "none").stage("net.up", StageKnobs().use("linear/base")))) == Strings{"net.up linear/base"});
}

TEST_CASE("features that callees need add up, unless the caller states its own") {
    const Schedule s = with("up", "linear/wide").stage("down", StageKnobs().use("linear/base"));
    CHECK(program(s).resolved.requires_features == Strings{"avx2", "avx512f"});
    CHECK(program(s.require({"fma"})).resolved.requires_features == Strings{"fma"});
}

TEST_CASE("variants of callees' schedules combine") {
    auto texts = [](const ProgramSchedule &p) {
        Strings all;
        for (const Variant &v : p.resolved.variants) {
            std::string text;
            for (const Condition &c : v.when) text += (text.empty() ? "" : " and ") + to_string(c);
            all.push_back(text);
        }
        return all;
    };
    const ProgramSchedule one = program(with("up", "linear/variants"));
    CHECK(texts(one) == Strings{"A <= 4", "B % 16 == 0 and avx512f"});
    CHECK(one.resolved.variants[0].stages.at("up.acc").unroll == Extents{{"C", 4}});
    CHECK(one.resolved.variants[1].stages.at("up.acc").vector == Extents{{"B", 16}});
    CHECK(one.resolved.stages.at("up.acc").vector == Extents{{"B", 4}});
    const ProgramSchedule two = program(with("up", "linear/variants").stage("down", StageKnobs().use("linear/variants")));
    CHECK(texts(two) == Strings{"A <= 4", "B % 16 == 0 and avx512f and C % 16 == 0", "B % 16 == 0 and avx512f", "C % 16 == 0 and avx512f"});
    CHECK(two.resolved.variants[0].stages.at("down.acc").unroll == Extents{{"B", 4}});
    const ProgramSchedule own = program(with("up", "linear/variants")
                                            .variant({"A <= 2"}, "up.acc", StageKnobs().vector({{"B", 8}}))
                                            .variant({"C <= 8"}, "up", StageKnobs().use("none")));
    CHECK(texts(own).front() == "A <= 2 and A <= 4");
    CHECK(own.resolved.variants[0].stages.at("up.acc").vector == Extents{{"B", 8}});
    CHECK(own.resolved.variants[0].stages.at("up.acc").unroll == Extents{{"C", 4}});
    const Strings all = texts(own);
    const auto none = std::find(all.begin(), all.end(), "C <= 8");
    REQUIRE(none != all.end());
    CHECK(own.resolved.variants[static_cast<size_t>(none - all.begin())].stages.empty());
}

TEST_CASE("of callees' variants those stay that the program's fixed dims meet, of however many calls") {
    Builder f("chain", numerics_named("f32"));
    Tile x = f.input("x", {f.dim("A"), f.dim("B", 24)});
    for (int i = 0; i < 8; i++) {
        const std::string name = "c" + std::to_string(i);
        const Dim from = f.dim_named(x.dims()[1]), to = f.dim(name + "_N", i == 7 ? 32 : 24);
        x = f.call(name, test::sample_algorithm(), {x, f.input(name + "_w", {from, to}), f.input(name + "_b", {to})})[0];
    }
    const Algorithm chain = f.output("y", x).build();
    Schedule s("s");
    for (int i = 0; i < 8; i++) s = s.stage("c" + std::to_string(i), StageKnobs().use("linear/variants"));
    const ProgramSchedule p = program(s, chain);
    REQUIRE(p.resolved.variants.size() == 2);
    CHECK(to_string(p.resolved.variants[0].when.front()) == "A <= 4");
    CHECK(p.resolved.variants[1].when.size() == 1);
    CHECK(p.resolved.variants[1].stages.at("c6.acc").vector == Extents{{"c6_N", 4}});
    CHECK(p.resolved.variants[1].stages.at("c7.acc").vector == Extents{{"c7_N", 16}});
}

TEST_CASE("a flattened program uses nothing and resolves to the same") {
    for (const Schedule &s : {with("up", "linear/wide").stage("up.acc", StageKnobs().micro({{"A", 6}}).remove("prefetch")),
                              with("up", "linear/variants").stage("down", StageKnobs().use("linear/variants")),
                              with("up", "linear/patterns").variant({"A <= 2"}, "up.acc", StageKnobs().unroll({{"C", 2}}))}) {
        const ProgramSchedule p = program(s);
        const Schedule flat = flatten(s, p, net());
        const ProgramSchedule again = resolve_program(flat, net(), {}, Library(), {});
        CHECK(again.resolved == p.resolved);
        CHECK(again.callees.empty());
        CHECK(flatten(flat, again, net()).document()["stages"]["up.acc"] == flat.document()["stages"]["up.acc"]);
    }
}

TEST_CASE("without calls a program's schedule is what it resolves to") {
    std::mt19937 random(12);
    const Library none;
    for (int i = 0; i < 200; i++) {
        const Schedule s = test::random_chain(random, 1 + i % 4, none).stage("y", StageKnobs().vector({{"N", 8}}));
        CHECK(resolve_program(s, test::sample_algorithm(), {}, none, {}).resolved.stages == resolve(s, none).stages);
        CHECK(resolve_program(s, test::sample_algorithm(), {}, none, {}).resolved.variants == resolve(s, none).variants);
    }
}

TEST_CASE("explain names the callee's schedule that states a field") {
    const Schedule s = with("up", "linear/wide").stage("up.acc", StageKnobs().micro({{"A", 6}}));
    const std::string text = explain(s, library(), program(s));
    INFO(text);
    CHECK(text.starts_with("s\nup: linear/wide -> linear/base\n"));
    CHECK(text.find("  s, over 8 of linear/base at up\n") != std::string::npos);
    CHECK(text.find("linear/wide at up\n") != std::string::npos);
    const json document = explain_json(s, library(), program(s));
    CHECK(document["calls"] == json::array({{{"call", "up"}, {"chain", {"linear/wide", "linear/base"}}, {"named", true}}}));
}

TEST_CASE("uses that lead nowhere: the words") {
    check_words([] { program(with("up", "linear/wise")); },
                {"error[schedule.missing-callee]: schedule 's' at /stages/up/use: there is no schedule 'linear/wise'; there are ",
                 "Did you mean 'linear/wide'?"});
    check_words(
        [] { program(with("upp", "linear/wide")); },
        {"error[schedule.unknown-stage]: schedule 's' at /stages/upp/use: net has no call 'upp'; its calls are up, down. Name one in "
         "full, or remove the knob. Did you mean 'up'?"});
    check_words([] { program(with("u*", "linear/wide")); }, {"error[schedule.unknown-stage]: schedule 's' at /stages/u*/use"});
    check_words([] { resolve_program(with("acc", "linear/wide"), test::sample_algorithm(), {}, library(), {}); },
                {"linear has no call 'acc'; it calls nothing."});
    Library all = library();
    all.add(Schedule("softmax/x").stage("max", StageKnobs().vector({{"N", 8}})));
    all.add(Schedule("softmax/y").for_algorithm("softmax"));
    all.add(Schedule("linear/dims").stage("acc", StageKnobs().vector({{"H", 8}})));
    auto refused = [&](const std::string &use, const Strings &parts) {
        check_words([&] { resolve_program(with("up", use), net(), {}, all, checked()); }, parts);
    };
    refused("softmax/x",
            {"error[schedule.use]: schedule 's' at /stages/up/use: expected a schedule that applies to 'linear', which the call "
             "'up' is of; 'softmax/x' does not: ",
             "linear has no stage 'max'", "Use one of linear, or \"none\"."});
    refused("softmax/y", {"error[schedule.use]", "expected a schedule for 'linear'; it is one for 'softmax'."});
    refused("linear/dims", {"error[schedule.use]", "linear.acc has no dim 'H'; its dims are M, N, K."});
    check_words([] { with("up", "../x").stage("y", StageKnobs()), resolve(with("up", "../x"), Library()); },
                {"error[schedule.outside]: schedule 's' at /stages/up/use: expected the name of a callee's schedule"});
}

TEST_CASE("a schedule that uses itself: the words") {
    Library all = library();
    all.add(Schedule("a").stage("net", StageKnobs().use("b")));
    all.add(Schedule("b").stage("up", StageKnobs().use("a")));
    check_words(
        [&] { resolve_program(all.find("a"), nest(), {}, all, {}); },
        {"error[schedule.cycle]: schedule 'b': it uses itself: a -> b at net -> a at net.up. Use another schedule there, or \"none\"."});
    all.add(Schedule("c").stage("up", StageKnobs().use("c")));
    check_words([&] { resolve_program(all.find("c"), net(), {}, all, {}); },
                {"error[schedule.cycle]: schedule 'c': it uses itself: c -> c at up."});
}

TEST_CASE("too many combinations of variants: the words") {
    Algorithm wide = net();
    Library all;
    Schedule many("linear/many");
    for (int i = 1; i < 9; i++) many = many.variant({"N == " + std::to_string(i)}, "acc", StageKnobs().unroll({{"K", i}}));
    all.add(many);
    check_words([&] { resolve_program(with("up", "linear/many").stage("down", StageKnobs().use("linear/many")), wide, {}, all, {}); },
                {"error[schedule.variants]: net: expected at most 64 variants, each of which is compiled; the variants of its callees' "
                 "schedules make 81 combinations. Use schedules with fewer variants."});
}

}  // namespace tessera::test_callee_schedules
