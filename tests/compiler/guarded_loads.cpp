// A guarded load reads nothing where its guard fails, nor does what its index loads: indices there lie outside of their buffers.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/check/verify_tiles.h"
#include "tests/compiler/hostile.h"
#include "tests/compiler/laws.h"

namespace tessera::test_guarded_loads {

using namespace tessera::test;

// What is loaded: from x through the places p, of which there are fewer than points; where `inside` says so.
struct Gather {
    std::string name;
    std::vector<std::string> dims;        // of the result
    std::vector<std::string> place_dims;  // of p
    Expr value;
    std::vector<std::string> lanes;  // dims to vectorise, each in a case of its own
};

static std::vector<Gather> gathers() {
    const Expr m = variable("M"), n = variable("N"), P = extent("P"), Q = extent("Q"), T = extent("T");
    auto p = [](std::vector<Expr> index) { return load("p", DType::i32, std::move(index)); };
    auto x = [&](const Expr &place, const Expr &guard) {
        return load_or("x", DType::f32, {bounded(place, 0, T)}, guard, constant(DType::f32, -1));
    };
    // The place is read where there is one; it decides whether q has an element there, which is the position in x.
    const Expr first = cast(DType::index, load_or("p", DType::i32, {m}, m < P, constant_int(DType::i32, -1)));
    const Expr second = load("q", DType::i32, {first});
    const Expr third = load_or("q", DType::i32, {bounded(p({m}), 0, Q)}, n < Q, constant_int(DType::i32, 2));
    return {
        {"by_row", {"M"}, {"P"}, x(p({m}), m < P), {"M"}},
        {"by_sum", {"M", "N"}, {"P"}, x(p({m}), m + n < P), {"M", "N"}},
        {"of_rows", {"M", "N"}, {"P", "N"}, x(p({m, n}), m < P), {"M", "N"}},
        {"of_columns", {"M", "N"}, {"M", "P"}, x(p({m, n}), n < P), {"M", "N"}},
        {"twice", {"M"}, {"P"}, x(second, Expr(0) <= first && first < Q), {"M"}},
        {"twice_by_sum", {"M", "N"}, {"P"}, x(second, Expr(0) <= first && first + n < Q), {"M", "N"}},
        {"under_another",
         {"M", "N"},
         {"P"},
         load_or("x", DType::f32, {bounded(third, 0, T)}, m + n < P, constant(DType::f32, 0)),
         {"M", "N"}},
    };
}

static Algorithm algorithm_of(const Gather &g) {
    Builder f(g.name);
    std::vector<Dim> dims, places;
    for (const std::string &d : g.dims) dims.push_back(f.dim(d));
    for (const std::string &d : g.place_dims) places.push_back(f.dim(d));
    Dim T = symbolic_dim("T");
    T.min = 1;
    f.input("x", {f.dim(T)}), f.input("p", places, DType::i32), f.input("q", {f.dim("Q")}, DType::i32);
    return f.output("y", f.tile(g.value, dims)).build();
}

static std::vector<Case> cases_for(const Target &target) {
    std::vector<Case> all;
    const int64_t lanes = target.is_gpu() ? 4 : target.vector_bytes / 4;
    for (const Gather &g : gathers()) {
        const Algorithm a = algorithm_of(g);
        std::vector<Extents> shapes;
        for (int64_t p : {int64_t{0}, int64_t{1}, lanes - 1, lanes + 2})
            shapes.push_back({{"M", 2 * lanes + 1}, {"N", lanes + 3}, {"P", p}, {"Q", 2}, {"T", 3}});
        shapes.push_back({{"M", 1}, {"N", lanes}, {"P", 3}, {"Q", 0}, {"T", 1}});
        all.push_back({g.name + "_plain", a, {}, shapes});
        for (const std::string &d : g.lanes) {
            Case c{g.name + "_lanes_" + d, a, {}, shapes};
            c.stages["y"].vector = {{d, lanes}};
            if (g.dims.size() > 1) c.stages["y"].micro = {{d, lanes}, {d == "M" ? "N" : "M", 2}};
            all.push_back(c);
        }
    }
    for (Case &c : all) {
        if (target.is_gpu()) c.stages = for_gpu(c.stages);
        for (Extents &shape : c.shapes) std::erase_if(shape, [&](const auto &e) { return !c.algorithm.find_dim(e.first); });
    }
    return all;
}

// Places far from every buffer beside those that are inside.
static Arrays hostile_inputs(const Algorithm &a, const Extents &shape, uint32_t seed) {
    Arrays inputs = make_inputs(a, shape, seed);
    const int64_t far[] = {1 << 28, -(1 << 28)};  // sums with them are still positions
    for (const char *name : {"p", "q"}) {
        auto it = inputs.find(name);
        if (it == inputs.end()) continue;
        for (int64_t i = 0; i < it->second.size(); i++) {
            const int64_t at = i + seed;
            it->second.set(i, Scalar::of_integer(DType::i32, at % 3 == 0 ? far[at / 3 % 2] : at % 2));
        }
    }
    return inputs;
}

static void check(const Target &target, const Build &build = {}) {
    check_hostile(cases_for(target), target, build, hostile_inputs, [](uint32_t) {
        return std::vector{Layout{true, 0, 0, 1}, Layout{false, 0, 1, 1}};
    });
}

TEST_CASE("what a guarded load's index loads is guarded too") {
    for (const Target &target : targets()) check(target);
}

TEST_CASE("what a guarded load's index loads is guarded too: C") {
    for (const Target &target : targets()) check(target, {"gcc", "-O1"});
}

// A copy for a padded tile all of whose points look outside of the tensor, which reads nothing outside all the same.
TEST_CASE("a pack reads nothing outside where a shifted row is shorter than its shift") {
    for (int64_t shift : {1, 2, 5}) {
        Builder f("shifted");
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile kept = f.input("x", {M, N}).named("kept");
        const Expr from = variable("N") - shift;
        const Tile y = f.tile(
            load_or(kept.value()->name, DType::f32, {variable("M"), from}, Expr(0) <= from && from < extent("N"), constant(DType::f32, 0)),
            {M, N});
        Case c{"shifted", f.output("y", y).build(), {}, {}};
        for (int64_t n : {0, 1, 2, 3, 7, 8, 9, 15}) c.shapes.push_back({{"M", 3}, {"N", n}});
        Knobs &k = c.stages["y"];
        k.vector = {{"N", 4}}, k.pack["kept"] = {"N", {}};
        check_programs({c}, target_named("avx2"));
        k.block = {{"M", 2}, {"N", 7}};
        check_programs({c}, target_named("avx2"));
    }
}

TEST_CASE("a vector that begins before a buffer of constant size reads what is inside") {
    for (int64_t n : {3, 4, 6}) {
        Builder f("shifted");
        const Dim N = f.dim("N", n);
        const Tile inner = (f.input("x", {N}) + 1.0).named("inner");
        const Expr at = variable("N") - 2;
        const Algorithm a =
            f.output("y", f.tile(load_or("inner", DType::f32, {at}, Expr(0) <= at && at < extent("N"), constant(DType::f32, 0)), {N}))
                .build();
        Knobs lanes;
        lanes.vector = {{"N", 4}};
        for (const Target &target : targets()) {
            const Case c{"shifted", a, {{"y", lanes}}, {{}}};
            const std::vector<TileProgram> programs = {lowered(c, target)};
            check_code({c}, programs, Loaded(programs, target), [](uint32_t) { return std::vector<Layout>{{}}; });
        }
    }
}

TEST_CASE("a guarded load whose guard fails in a whole vector may be a divisor") {
    for (const double fill : {0.0, -0.0, 2.0}) {
        CAPTURE(fill);
        Builder f("divided");
        const Dim N = f.dim("N", 64), D = f.dim("D", 5);
        const Tile x = f.input("x", {N});
        f.input("d", {D});
        const Expr n = variable("N");
        const Tile d = f.tile(load_or("d", DType::f32, {bounded(n, 0, extent("D"))}, n < extent("D"), constant(DType::f32, fill)), {N});
        const Algorithm a = f.output("y", select(d == 0.0, x - x, x / d)).output("z", x / d).build();
        Knobs knobs;
        knobs.micro = {{"N", 48}}, knobs.vector = {{"N", 16}};
        for (const Target &target : targets()) {
            const Case c{"divided", a, {{"y", knobs}, {"z", knobs}}, {{}}};
            const std::vector<TileProgram> programs = {lowered(c, target)};
            check_code({c}, programs, Loaded(programs, target), [](uint32_t) { return std::vector<Layout>{{}}; });
        }
    }
}

TEST_CASE("what a guarded load's index loads is guarded too: rows that a copy interleaves") {
    const Expr r = variable("r"), u = variable("u"), v = variable("v"), P = extent("P"), T = extent("T");
    const Expr place = bounded(cast(DType::index, load("p", DType::i32, {r})), 0, T - 15);
    const Expr value = load_or("x", DType::f32, {place + u * 8 + v}, r + v < P, constant(DType::f32, -1));
    auto loop = [](const std::string &name, int64_t count, LoopKind kind, TileBody body) {
        return tile_node(Loop{name, Expr(count), kind, std::move(body)});
    };
    TileProgram program;
    program.name = "interleaved";
    program.dims = {symbolic_dim("P"), symbolic_dim("T"), fixed_dim("Y", 64)};
    program.dims[1].min = 16;
    auto argument = [](const std::string &name, DType type, const std::string &dim, bool written) {
        return Argument{{name, type, {dim}, Role::input, {}}, written, !written};
    };
    program.arguments = {argument("x", DType::f32, "T", false), argument("p", DType::i32, "P", false),
                         argument("y", DType::f32, "Y", true)};
    program.body = {loop(
        "r", 4, LoopKind::serial,
        {loop("u", 2, LoopKind::unrolled, {loop("v", 8, LoopKind::vector, {tile_node(Copy{"y", {r * 16 + v * 2 + u}, value, {}})})})})};
    for (const Target &target : targets()) {
        program.target = target.name;
        CHECK(verify(program).empty());
        const Loaded code({program}, target);
        for (int64_t p = 0; p <= 4; p++) {
            const Extents shape{{"P", p}, {"T", 18}};
            Arrays inputs{{"x", Array(DType::f32, {18})}, {"p", Array(DType::i32, {p})}};
            for (int64_t i = 0; i < 18; i++) inputs.at("x").set(i, Scalar::of_real(DType::f32, static_cast<double>(i)));
            for (int64_t i = 0; i < p; i++) inputs.at("p").set(i, Scalar::of_integer(DType::i32, i % 3));
            CHECK(differ_in_bits(code.run(program, shape, inputs, {}, Layout{}), run_interpreter(program, shape, inputs, {})) == "");
        }
    }
}

// A fold over what lies outside multiplies zeros by values that are no numbers.
static void check_below(const Target &target) {
    Builder f("below");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile kept = f.input("x", {M, N}).named("kept"), b = f.input("b", {N});
    const Expr from = variable("M") + 1;
    const Tile next =
        f.tile(load_or(kept.value()->name, DType::f32, {from, variable("N")}, from < extent("M"), constant(DType::f32, 0)), {M, N})
            .named("next");
    Case c{"below", f.output("y", dot(next, b, {N})).build(), {}, {}};
    c.stages["next"].place = Place{Place::Kind::inlined, "", ""};
    for (int64_t n : {1, 5, 16}) c.shapes.push_back({{"M", 1}, {"N", n}}), c.shapes.push_back({{"M", 3}, {"N", n}});
    const std::vector<TileProgram> programs = {lowered(c, target)};
    check_code({c}, programs, Loaded(programs, target), [](uint32_t) { return std::vector{Layout{true, 0, 0, 1}}; });
}

TEST_CASE("zeros from outside are multiplied") {
    for (const Target &target : targets()) check_below(target);
}

TEST_CASE("zeros from outside are multiplied: wasm32", "[.][wasm32]") { check_below(target_named("wasm32")); }

TEST_CASE("what a guarded load's index loads is guarded too: opencl", "[.][gpu]") {
    if (has_opencl()) check(target_named("opencl"));
}

TEST_CASE("what a guarded load's index loads is guarded too: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check(target);
}

TEST_CASE("what a guarded load's index loads is guarded too: wasm32", "[.][wasm32]") {
    if (const Target target = target_named("wasm32"); can_emulate(target)) check(target);
}

}  // namespace tessera::test_guarded_loads
