// Calls that are emitted once: what they share, that they give the bits of inlined ones, and what is refused.
#include "compiler/rewrite/calls.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/transform/scopes.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"
#include "tests/support/words.h"

namespace tessera::test_calls {

using namespace tessera::test;

using Stages = KnobsByStage;

static Stages inlined(Stages stages) {
    for (auto &[name, k] : stages) k.call.reset();
    return stages;
}

static int count(const std::string &text, const std::string &what) {
    int n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
}

TEST_CASE("a call that is emitted once gives the bits of one that is inlined") {
    Target target = target_named("avx2");
    int seen = 0;
    for (const Case &c : library_cases(8)) {
        if (std::none_of(c.stages.begin(), c.stages.end(), [](auto &s) { return s.second.call.has_value(); })) continue;
        seen++;
        TileProgram once = lowered(c, target), open = lowered(c.name, c.algorithm, inlined(c.stages), target);
        CHECK(!once.programs.empty());
        CHECK(open.programs.empty());
        CHECK(resolved_hash(once) != resolved_hash(open));
        for (const Extents &shape : c.shapes) {
            Parameters parameters = make_parameters(c.algorithm, 3);
            Arrays inputs = make_inputs(c.algorithm, shape, 3, true);
            INFO(c.name);
            CHECK(differ_in_bits(run_interpreter(once, shape, inputs, parameters), run_interpreter(open, shape, inputs, parameters)) == "");
        }
    }
    CHECK(seen == 5);
}

TEST_CASE("a call, or a stage, whose name begins with another call's scope is none of that one's") {
    const auto scaled = [](const std::string &name, double by) {
        Builder f(name);
        const Dim N = f.dim("N");
        return f.output("y", (f.input("x", {N}) * by).named("by") + 1.0).build();
    };
    Builder f("both");
    const Dim N = f.dim("N");
    const Tile first = f.call("layers", scaled("twice", 2), {f.input("x", {N})})[0];
    const Tile own = (first * 4.0).named("layers.y.grad");
    f.output("z", f.call("layers.grad", scaled("thrice", 3), {first})[0] + own);
    const Algorithm both = f.build();
    Stages stages;
    for (const char *call : {"layers", "layers.grad"}) stages[call].call = "once";
    stages["layers.by"].vector["N"] = 4, stages["layers.y"].vector["N"] = 8;
    stages["layers.grad.by"].vector["N"] = 16, stages["layers.grad.y"].vector["N"] = 2;
    const Algorithm kept = inline_calls(both, [](const std::string &) { return true; });
    CHECK(call_around(kept, "layers.grad.y")->scope == "layers.grad");
    CHECK(call_around(kept, "layers.y")->scope == "layers");
    for (const char *name : {"layer.y", "layers.y.grad", "layers.y.grad.partial", "layers"}) CHECK(call_around(kept, name) == nullptr);
    stages["layers.y.grad"].vector["N"] = 32;
    const auto callees = take_callees(kept, stages);
    CHECK(callees.at("layers.grad").stages.at("y").vector.at("N") == 2);
    CHECK(callees.at("layers.grad").stages.at("by").vector.at("N") == 16);
    CHECK(callees.at("layers").stages.at("y").vector.at("N") == 8);
    CHECK(stages.at("layers.y.grad").vector.at("N") == 32);
    CHECK(stages.size() == 1);  // what is left is the caller's
}

static const Case &case_named(const std::vector<Case> &cases, const std::string &name) {
    for (const Case &c : cases)
        if (c.name == name) return c;
    throw std::runtime_error("no case " + name);
}

TEST_CASE("calls share a program where the callee and its schedule agree") {
    std::vector<Case> cases = library_cases(8);
    const Case &c = case_named(cases, "layers_once");
    Target target = target_named("avx2");
    std::string text = to_text(lowered("k", c.algorithm, c.stages, target));
    INFO(text);
    CHECK(count(text, "tile program scaled_product for") == 1);
    CHECK(count(text, "invoke scaled_product(") == 3);
    CHECK(count(text, "invoke scaled_product2(") == 1);  // in doubled, where all three extents are known
    CHECK(count(text, "tile program accumulate for") == 1);
    CHECK(count(text, "invoke accumulate(") == 2);
    CHECK(count(text, "invoke doubled(step, to, table, c.q, ") == 1);
    Stages stages = c.stages;
    stages["b.p"].block["M"] = 8;
    text = to_text(lowered("k", c.algorithm, stages, target));
    CHECK(count(text, "tile program scaled_product for") == 1);
    CHECK(count(text, "tile program scaled_product2 for") == 1);
    CHECK(count(text, "tile program scaled_product3 for") == 1);
}

TEST_CASE("a callee is lowered in its own names") {
    Stages stages;
    for (std::string scope : {"up", "down", "norm"}) stages[scope].call = "once";
    stages["down.acc"].micro = {{"D", 8}}, stages["down.acc"].vector = {{"D", 8}}, stages["down.acc"].loops = {"micro.D"};
    Algorithm a = bind_extents(library::feed_forward({}), {{"D", 8}});
    TileProgram program = lowered("k", a, stages, target_named("avx2"));
    REQUIRE(program.programs.size() == 3);
    std::string text = to_text(program.programs[1]);
    INFO(text);
    CHECK(
        text.starts_with("tile program linear for avx2\n  dim M\n  dim N = 8\n  dim K\n  input x[M, K]: f32\n  input w[K, N]: f32\n  input "
                         "b[N]: f32\n  output y[M, N]: f32\n"));
    CHECK(text.find("vector N.lane") != std::string::npos);
    CHECK(to_text(program).find("  invoke linear(up.y, w_down, b_down, down.y, K=|F|, M=|M|, N=8)\n") != std::string::npos);
}

TEST_CASE("what a callee packs is scheduled in its own names too") {
    Stages stages;
    for (std::string scope : {"up", "down", "norm"}) stages[scope].call = "once";
    stages["down.acc"].place = Place{Place::Kind::at, "down.y", "tile"};
    stages["down.acc"].micro = {{"D", 8}, {"M", 2}}, stages["down.acc"].vector = {{"D", 8}};
    stages["down.acc"].pack["w_down"] = {"root", {{"D", 8, false}, {"F", 0, false}, {"D", 8, true}}};
    stages["down.acc.w_down.packed"].place = Place{Place::Kind::at, "down.y", "micro.D"};
    stages["down.y"].micro = {{"D", 8}}, stages["down.y"].levels["tile"] = {{"M", 2}};
    stages["down.y"].loops = {"micro.D", "tile.M"}, stages["down.y"].vector = {{"D", 8}};
    const TileProgram once = lowered("k", library::feed_forward({}), stages, target_named("avx2"));
    REQUIRE(once.programs.size() == 3);
    const auto callees = take_callees(library::feed_forward({}), stages);
    const Stages own(callees.at("down").stages.begin(), callees.at("down").stages.end());
    CHECK(own.count("acc.w.packed") == 1);
    CHECK(own.at("acc.w.packed").place == Place{Place::Kind::at, "y", "micro.N"});
}

TEST_CASE("a callee's schedule that was not merged in is no schedule of plain loops: the words") {
    Stages stages;
    stages["up"].use = "linear_gelu/avx2";
    check_words([&] { lower(library::feed_forward({}), stages, target_named("avx2")); },
                {"error[schedule.use]: up: it uses the callee's schedule 'linear_gelu/avx2', which is no part of these knobs. Resolve the "
                 "schedule with resolve_program"});
    stages["up"].use = "none";
    CHECK_NOTHROW(lower(library::feed_forward({}), stages, target_named("avx2")));
}

TEST_CASE("a call whose callee would go over one dim twice") {
    Builder g("g");
    const Dim A = g.dim("A"), B = g.dim("B");
    const Tile sums = g.input("u", {A}) + g.input("v", {B});
    const Algorithm outer = g.output("y", sums).build();
    Builder f("f");
    const Tile x = f.input("x", {f.dim("N")});
    f.output("y", f.call("c", outer, {x, x})[0]);
    check_words([&] { f.build(); },
                {"error[algorithm.call]: f.c: the dims 'A' and 'B' of g are both bound to 'N', and its stage 'y' goes over both; bind one "
                 "of them to another dim of that extent."});
    Builder h("h");
    const Dim N = h.dim("N");
    const Tile square = h.input("x", {N, h.dim("M")}).at({{"M", variable("N")}}, {"N", "N"});
    check_words([&] { h.call("c", library::softmax({}), {square}); },
                {"error[shape.call]: h.c: ", " has a dim twice; rename one of them."});
}

TEST_CASE("an argument of which a round is no row of memory is computed so that it is") {
    Builder g("g");
    const Dim N = g.dim("N");
    const Algorithm twice = g.output("y", g.input("x", {N}) * 2.0).build();
    Builder f("f");
    const Dim M = f.dim("M"), T = f.dim("T");
    const Tile columns = f.input("x", {M, T});
    f.output("y", f.repeat("c", twice, {.dim = "T", .stacked = {"y"}}, {columns})[0]);
    const Algorithm a = f.build();
    CHECK(a.find_stage("c_x")->dims == std::vector<std::string>{"T", "M"});
}

TEST_CASE("a kernel without a tensor that has one of its dims") {
    Builder g("g");
    const Algorithm twice = g.output("y", g.input("x", {g.dim("N")}) * 2.0).build();
    Builder f("f");
    const Tile x = f.input("x", {f.dim("N")});
    f.dim("T");
    f.output("y", f.repeat("c", twice, {.dim = "T", .carried = {{"x", "y"}}}, {x})[0]);
    const Target target = target_named("avx2");
    check_words([&] { Loaded({lower(f.build(), {}, target)}, target); },
                {"error[emit.abi]: f: none of its tensors has the dim 'T', and its extent is taken from a tensor; give it to an input, or "
                 "fix it."});
}

TEST_CASE("calls that cannot be emitted once") {
    Algorithm a = library::feed_forward({});
    auto refused = [&](const std::function<void(Stages &)> &change, const std::string &words) {
        Stages stages;
        stages["up"].call = "once";
        change(stages);
        check_words([&] { lower(a, stages, target_named("avx2")); }, {"error[schedule.call]: " + words});
    };
    auto at = [](const std::string &stage, const std::string &loop) { return Place{Place::Kind::at, stage, loop}; };
    refused([&](Stages &s) { s["up.y"].place = at("down.acc", "M"); },
            "up.y: it is placed at down.acc.M, outside the call 'up', which is emitted once; place it at root or at a loop of the call's "
            "own stages, or inline the call.");
    Builder f("f");
    Dim M = f.dim("M"), D = f.dim("D"), F = f.dim("F");
    Tile h = relu(f.input("x", {M, D})).named("h");
    a = f.output("y", f.call("up", library::linear({}), {h, f.input("w", {D, F}), f.input("b", {F})})[0]).build();
    refused([&](Stages &s) { s["h"].place = at("up.acc", "M"); },
            "h: it is placed at up.acc.M, inside the call 'up', which is emitted once; place it at root, or inline the call.");
    refused(
        [&](Stages &s) {
            s["h"].place = Place{Place::Kind::inlined, "", ""};
        },
        "up: the call is emitted once, and takes 'h', which is not stored in full before it; place it at root, or inline the call.");
    refused(
        [&](Stages &s) {
            s["h"].layout = {{"D"}, {"M"}};
        },
        "up: the call is emitted once, and takes 'h', which has a layout; delete the layout (null), or inline the call.");
    refused([&](Stages &s) { s["upp"].call = "once"; },
            "upp: the knob 'call' is for the scope of a call; the scopes of f are up. Did you mean 'up'?");
    refused([&](Stages &s) { s["up"].call = "twice"; }, "up: a call is 'inline' or 'once'; got 'twice'.");
}

TEST_CASE("what a call that repeats cannot be") {
    auto refused = [](const std::string &name, const std::string &target, const std::function<void(Stages &)> &change,
                      const std::string &words) {
        const Case c = case_named(library_cases(8), name);
        Stages stages = c.stages;
        change(stages);
        check_words([&] { lower(c.algorithm, stages, target_named(target)); }, {words});
    };
    refused(
        "layers_repeated", "avx2", [](Stages &s) { s["layers"].call = "inline"; },
        "error[schedule.call]: layers: it repeats its callee, which is emitted once; expected 'once', or nothing, got 'inline'.");
    auto parallel = [](const std::string &scope, const std::string &dim) { return [=](Stages &s) { s[scope].parallel = {dim}; }; };
    refused("layers_repeated", "avx2", parallel("layers", "N"),
            "error[schedule.parallel]: layers: each repetition takes the result of the one before ('x'), so they run in order.");
    refused("heads_in_turn", "avx2", parallel("head", "M"),
            "error[schedule.parallel]: head: expected the dim that it repeats over, 'H', got M.");
    refused("search", "avx2", parallel("rounds", "T"), "so they run in order.");
    refused("last_of", "avx2", parallel("rounds", "T"),
            "rounds: its output 'next' is that of the last repetition; stack it, or leave the repetitions in order.");
    refused("caches", "avx2", parallel("rounds", "T"), "so they run in order.");
    refused("views_once", "avx2", parallel("a", "M"), "a: a call has no loop that could run in parallel; its callee's stages may have.");
    refused(
        "layers_repeated", "avx2",
        [](Stages &s) {
            s["start"].layout = {{"D"}, {"M"}};
        },
        "layers: the call is emitted once, and takes 'start', which has a layout; delete the layout (null).");
}

}  // namespace tessera::test_calls
