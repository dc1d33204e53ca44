// Calls that stay calls, on GPUs: the host makes them, and the device decides what data decides.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"
#include "tests/support/words.h"

namespace tessera::test_gpu_calls {

using namespace tessera::test;
using Catch::Contains;

static size_t count(const std::string &text, const std::string &what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
}

static Case named(const std::string &name) {
    for (Case &c : repeat_cases(4))
        if (c.name == name) return c.stages = for_gpu(c.stages), c;
    throw std::runtime_error("no case " + name);
}

struct Source {
    std::string kernels, host;
};
static Source source_of(const std::vector<Case> &cases, const std::string &target_name) {
    const Target target = target_named(target_name);
    std::vector<Kernel> kernels;
    for (const Case &c : cases) kernels.push_back({c.name, {{{}, lowered(c, target)}}});
    return {kernels_of(kernels, target).kernels, host_of(kernels, target, "image", false)};
}

TEST_CASE("every call that repeats has kernels for GPUs") {
    for (const Case &c : repeat_cases(4))
        for (const char *target : {"opencl", "cuda-sm80"}) {
            INFO(c.name << " " << target);
            CHECK_NOTHROW(source_of({named(c.name)}, target));
        }
}

TEST_CASE("the functions of a callee are there once, and the host loops over its rounds") {
    const Source s = source_of({named("layers_repeated")}, "opencl");
    INFO(s.host);
    CHECK(count(s.kernels, "void layers_repeated_callee0_0(") == 1);
    CHECK(count(s.host, "layers_repeated_callee0_run(const TessGpuRun *caller") == 1);
    CHECK(count(s.host, "status = layers_repeated_callee0_run(&run") == 4);  // the first, those between, the last, and the only round
    CHECK(count(s.host, "for (int64_t ") == 1);
    CHECK(count(s.host, "tess_opencl2_begin(") == 1);
    CHECK(count(s.kernels, "if (!v_launched") == count(s.kernels, "__kernel"));
    // What calls nothing and is not called has no choices.
    CHECK(source_of({named("views_inline")}, "opencl").kernels.find("choice_at") == std::string::npos);
}

TEST_CASE("kernels of one file share the callees that they have in common") {
    Case one = named("layers_repeated"), other = one;
    other.name = "layers_again";
    const Source s = source_of({one, other}, "cuda-sm80");
    CHECK(count(s.kernels, "layers_repeated_callee0_0(") == 1);
    CHECK(count(s.kernels, "layers_again_callee") == 0);
    CHECK(count(s.host, "status = layers_repeated_callee0_run(&run") == 8);
    other.stages["layers.acc"].block = {{"M", 2}};
    CHECK(count(source_of({one, other}, "cuda-sm80").kernels, "layers_again_callee1_0(") == 1);
    // Its names meet no kernel's.
    other.name = "layers_repeated_callee0";
    const Source apart = source_of({one, other}, "opencl");
    CHECK(count(apart.kernels, "void layers_repeated_callee0__0(") == 1);
    CHECK(count(apart.kernels, "void layers_repeated_callee0_0(") == 1);
}

TEST_CASE("what data decides is written by one thread, and the host launches all rounds that there may be") {
    const Source s = source_of({named("search")}, "opencl");
    INFO(s.host);
    CHECK_THAT(s.host, Contains(" < 40 - 1 && status == TESS_OK") || Contains(" < 39 && status == TESS_OK"));
    CHECK(count(s.kernels, "v_launched") > 0);
    CHECK_THAT(s.host, Contains("rooms[") && Contains("] = -1;"));
}

TEST_CASE("callees use the same part of the workspace in turn: opencl", "[.][gpu]") {
    if (!has_opencl()) return;
    Builder g("squared");
    const Tile t = g.input("t", {g.dim("P"), g.dim("Q")});
    const Algorithm squared = g.output("u", (t * t).named("square") + 1.0).build();
    Builder f("chained");
    Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    for (const char *scope : {"first", "second", "third"}) x = f.call(scope, squared, {x})[0];
    Case c{"chained", f.output("y", x).build(), {}, {}};
    for (const char *scope : {"first", "second", "third"}) c.stages[scope].call = "once";
    const Target target = target_named("opencl");
    const TileProgram p = lowered(c, target);
    const Loaded::Room room = Loaded({p}, target).workspace(p, {{"M", 64}, {"N", 64}});
    CHECK(room.status == TESS_OK);
    CHECK(room.bytes == 3 * 64 * 64 * 4);  // two results of calls, and one square at a time
}

TEST_CASE("an encoder gives the interpreter's bits: opencl", "[.][gpu]") {
    if (!has_opencl()) return;
    const Target target = target_named("opencl");
    std::vector<Case> cases;
    std::vector<TileProgram> programs;
    for (const char *numerics : {"f32", "bf16"}) {
        const Algorithm encoder = library::encoder(numerics_named(numerics), {{"heads", 2}});
        std::vector<Extents> shapes;
        for (const std::vector<int64_t> &v :
             std::vector<std::vector<int64_t>>{{1, 1, 2, 1, 1}, {2, 3, 8, 5, 3}, {3, 5, 4, 7, 2}, {1, 2, 4, 3, 0}})
            shapes.push_back({{"B", v[0]}, {"T", v[1]}, {"D", v[2]}, {"F", v[3]}, {"L", v[4]}});
        cases.push_back({std::string("encoder_") + numerics, encoder, {}, shapes});
        programs.push_back(lowered(cases.back(), target));
    }
    const Loaded library(programs, target);
    check_code(cases, programs, library, [](uint32_t number) { return std::vector<Layout>{{number % 2 == 0, 1, 3, 1}}; });
}

TEST_CASE("calls that GPUs do not take: the words") {
    auto refused = [](const std::string &name, const std::function<void(KnobsByStage &)> &change, const std::string &words) {
        Case c = named(name);
        change(c.stages);
        check_words([&] { lowered(c, target_named("opencl")); }, {words});
    };
    refused(
        "heads_in_turn", [](KnobsByStage &s) { s["head"].parallel = {"H"}; },
        "error[schedule.gpu]: head: 'parallel' is not for opencl; delete it (null).");

    Builder g("twice");
    const Algorithm twice = g.output("y", g.input("x", {g.dim("N")}) * 2.0).build();
    {
        Builder f("f");
        Dim some = symbolic_dim("R");
        some.min = 1;
        const Dim N = f.dim("N");
        const Tile rows = f.input("rows", {f.dim(some), N}), at = f.input("at", {}, DType::i32);
        const Expr row = bounded(at.value(), Expr(0), extent("R"));
        const Tile x = rows.at({{"R", row}}, {"N"});
        KnobsByStage once;
        once["c"].call = "once";
        const Algorithm a = f.output("y", f.call("c", twice, {x})[0]).build();
        lower(a, once, target_named("avx2"));
        check_words([&] { lower(a, once, target_named("opencl")); },
                    {"error[schedule.call]: c: the call is emitted once, and takes a view of 'rows' that lies where data says (",
                     "), which the host that launches kernels does not see; make a stage of it, or inline the call."});
    }
    {
        Builder f("f");
        const Tile tries = f.input("tries", {}, DType::i32);
        const Dim T = f.dim(derived_dim("T", max(cast(DType::index, tries.value()), Expr(0)))), N = f.dim("N");
        const Algorithm a = f.output("y", f.repeat("c", twice, {.dim = T.name, .carried = {{"x", "y"}}}, {f.input("x", {N})})[0]).build();
        lower(a, {}, target_named("avx2"));
        check_words([&] { lower(a, {}, target_named("opencl")); },
                    {"error[schedule.call]: c: the call is emitted once, and how often it repeats is data without a bound (",
                     "); declare 'T' by counted_dim, which has one."});
    }
    {
        Builder f("f");
        const Dim T = f.dim(derived_dim("T", max(cast(DType::index, f.input("tries", {}, DType::i32).value()), Expr(0))));
        const Tile steps = cast(DType::f32, f.index(T)).named("steps");
        const Algorithm a = f.output("y", sum(steps, T)).build();
        check_words([&] { lower(a, {}, target_named("opencl")); },
                    {"error[schedule.place]: steps: it has the dim 'T', whose extent is data without a bound, so no storage can be set "
                     "aside; declare the dim by counted_dim, which has one, or inline the stage."});
    }
}

// By way of programs that lowering does not make.
TEST_CASE("what is around kernels and is data: the words") {
    const Target target = target_named("opencl");
    auto program = [](TileBody body) {
        TileProgram callee;
        callee.name = "callee", callee.target = "opencl";
        callee.dims = {symbolic_dim("N")};
        const Tensor x{"x", DType::f32, {"N"}, Role::input, {}}, n{"n", DType::i32, {}, Role::input, {}};
        Tensor y = x;
        y.name = "y";
        callee.arguments = {{x, false, true}, {y, true, false}};
        TileProgram p = callee;
        p.name = "p", p.arguments = {{x, false, true}, {n, false, true}, {y, true, false}};
        p.programs = {callee};
        p.body = std::move(body);
        return p;
    };
    auto refused = [&](TileBody body, const std::string &words) {
        const std::vector<Kernel> kernels = {{"p", {{{}, program(std::move(body))}}}};
        check_words([&] { kernels_of(kernels, target); }, {"error[emit.gpu]: p: " + words});
    };
    const Expr n = cast(DType::index, load("n", DType::i32, {})), N = extent("N");
    auto invoke = [&](const Expr &first, const Expr &extent) {
        return tile_node(Invoke{"callee", {{"x", {first}, {{0, Expr(1)}}}, "y"}, {{"N", extent}}, {}});
    };
    auto loop = [](const Expr &count, LoopKind kind, TileBody body) { return tile_node(Loop{"i", count, kind, std::move(body)}); };
    refused({loop(n, LoopKind::serial, {invoke(Expr(0), N)})},
            "how often 'i' runs kernels is data (index(n[])); expected what the host of opencl knows when it launches kernels, extents and "
            "its own loops.");
    refused({invoke(n, N)}, "where what callee takes of 'x' begins is data (index(n[]))");
    refused({invoke(Expr(0), n)}, "the extent of 'N' of callee is data (index(n[]))");
    refused({tile_node(Let{"i", n, {invoke(Expr(0), N)}})}, "the number 'i' around kernels is data (index(n[]))");
    refused({loop(N, LoopKind::parallel, {invoke(Expr(0), N)})}, "parallel loops around kernels are not for opencl; expected serial ones.");
    refused({loop(N, LoopKind::block, {invoke(Expr(0), N)})},
            "calls inside of blocks are not for opencl; expected them around kernels, where the host makes them.");
}

}  // namespace tessera::test_gpu_calls
