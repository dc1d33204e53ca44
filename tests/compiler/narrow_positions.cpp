// Positions in 32 bits: which parts of folds hold them, and that nobody sees it.
#include "algorithms/transform/narrow_positions.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/verify/verify.h"
#include "tests/compiler/harness.h"

namespace tessera::test_narrow_positions {

using namespace tessera::test;

constexpr DType f32 = DType::f32, i32 = DType::i32, i64 = DType::i64;

static Part part(const std::string &name, const Expr &identity) { return {name, identity->value, {}}; }

// A monoid of a value and a position: `update` gives both from those held and those that are new.
using Update = std::function<std::vector<Expr>(const Expr &value, const Expr &held, const Expr &new_value, const Expr &position)>;
static Monoid placed(const std::string &name, int64_t identity, const Update &update) {
    Monoid m;
    m.name = name, m.commutative = false;
    m.parts = {part("value", constant(f32, -INFINITY)), part("position", constant_int(i64, identity))};
    m.inputs = {f32, i64};
    m.lift = {input(0, f32), input(1, i64)};
    m.combine = update(left(0, f32), left(1, i64), right(0, f32), right(1, i64));
    m.step = update(left(0, f32), left(1, i64), input(0, f32), input(1, i64));
    return m;
}

// The last one of equals; -1 of none.
static Monoid last_of_equals() {
    return placed("last", -1, [](const Expr &v, const Expr &p, const Expr &x, const Expr &at) -> std::vector<Expr> {
        const Expr better = v < x || (v == x && p < at);
        return {select(better, x, v), select(better, at, p)};
    });
}

// The least position of a number that is not under 0, as long as there is one.
static Monoid least_position(int64_t identity) {
    return placed("least", identity, [](const Expr &v, const Expr &p, const Expr &x, const Expr &at) -> std::vector<Expr> {
        return {select(v < x, x, v), select(constant(f32, 0) <= x, min(at, p), max(constant_int(i64, INT64_MIN), p))};
    });
}

// Two positions: the second is the one that the first pushes out.
static Monoid two_best() {
    Monoid m = argmax_monoid(f32);
    m.name = "two", m.commutative = false;
    m.parts.push_back(part("second", constant_int(i64, INT64_MAX)));
    m.lift.push_back(constant_int(i64, INT64_MAX));
    m.combine.push_back(select(left(0, f32) < right(0, f32), min(left(1, i64), right(2, i64)), left(2, i64)));
    m.step.push_back(select(left(0, f32) < input(0, f32), left(1, i64), left(2, i64)));
    return m;
}

// argmax over N of x[M, N], with any position.
static Algorithm folded(const Monoid &m, const std::function<Expr(const Expr &n)> &position, int64_t max = INT32_MAX) {
    Builder f("folded");
    const Dim M = f.dim("M");
    Dim N = symbolic_dim("N");
    N.max = max;
    const Tile x = f.input("x", {M, f.dim(N)});
    const std::vector<Tile> parts = f.fold(m, {x, f.tile(cast(i64, position(variable("N"))), {N})}, {"N"});
    for (size_t p = 0; p < parts.size(); p++) f.output("y" + std::to_string(p), parts[p]);
    return f.build();
}

static Expr itself(const Expr &n) { return n; }

// "f32 i32": the types of the parts of the first fold.
static std::string types(const Algorithm &a) {
    const Algorithm narrow = narrow_positions(a);
    verify(narrow);
    std::string text;
    for (const Stage &s : narrow.stages())
        if (is_fold(s) && text.empty())
            for (const Part &p : monoid_of(s).parts) text += (text.empty() ? "" : " ") + std::string(name_of(p.identity.type));
    return text;
}

TEST_CASE("positions that are proved to fit are held in 32 bits") {
    CHECK(types(folded(argmax_monoid(f32), itself)) == "f32 i32");
    CHECK(types(folded(last_of_equals(), itself)) == "f32 i32");
    CHECK(types(folded(least_position(INT64_MAX), itself)) == "f32 i32");
    CHECK(types(folded(two_best(), itself)) == "f32 i32 i32");
    // The ends of i32 stand for those of i64.
    CHECK(types(folded(argmax_monoid(f32), [](const Expr &n) { return n + 1; })) == "f32 i64");
    CHECK(types(folded(
              argmax_monoid(f32), [](const Expr &n) { return n + 1; }, INT32_MAX - 1)) == "f32 i32");
    CHECK(types(folded(argmax_monoid(f32), [](const Expr &n) { return Expr(-1) - n; })) == "f32 i32");
    CHECK(types(folded(argmax_monoid(f32), [](const Expr &n) { return Expr(-2) - n; })) == "f32 i64");
    CHECK(types(folded(argmax_monoid(f32), [](const Expr &n) { return n * Expr(2); })) == "f32 i64");
    CHECK(types(folded(
              argmax_monoid(f32), [](const Expr &n) { return n * Expr(2); }, 1 << 30)) == "f32 i32");
    CHECK(types(folded(least_position(INT32_MAX), itself)) == "f32 i64");
    CHECK(types(folded(least_position(INT32_MAX - 1), itself)) == "f32 i32");
}

TEST_CASE("what is no position keeps its 64 bits") {
    // A part that counts, and one whose position is data.
    auto update = [](const Expr &v, const Expr &p, const Expr &x, const Expr &at) -> std::vector<Expr> { return {max(v, x), p + at}; };
    CHECK(types(folded(placed("total", 0, update), itself)) == "f32 i64");
    Builder f("data");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), id = f.input("id", {N}, i64);
    CHECK(types(f.output("y", f.fold(argmax_monoid(f32), {x, id}, {"N"})[1]).build()) == "f32 i64");
    // An index fits whatever its extent is, and twice the index need not.
    for (const int64_t factor : {1, 2}) {
        Builder g("counted");
        g.parameter("n", i64);
        const Dim C = g.dim(derived_dim("C", cast(DType::index, parameter("n", i64))));
        const Tile near = g.input("x", {g.dim("M")}) + cast(f32, g.index(C));
        const Tile best = g.fold(argmax_monoid(f32), {near, g.tile(cast(i64, variable("C") * Expr(factor)), {C})}, {"C"})[1];
        CHECK(types(g.output("y", best).build()) == (factor == 1 ? "f32 i32" : "f32 i64"));
    }
    // An output is what it is declared to be.
    Builder h("direct");
    const Tile z = h.input("z", {h.dim("M"), h.dim("N")});
    Monoid least = min_monoid(i64);
    const Tile first = h.fold(least, {select(z < h.scalar(f32, 0), cast(i64, h.index(h.dim("N"))), h.scalar(i64, 9))}, {"N"})[0];
    CHECK(types(h.output("y", first).build()) == "i64");
}

// Numbers with many equals, NaN, infinities and zeros of both signs; the first row is NaN, the second -inf, the third begins with NaN.
static Arrays hard_inputs(const Algorithm &a, const Extents &shape, uint32_t seed) {
    Arrays inputs = make_inputs(a, shape, seed);
    const double odd[] = {NAN, -INFINITY, INFINITY, -0.0, 0.0, 1, 1, 2};
    for (auto &[name, array] : inputs) {
        const int64_t columns = shape.at("N");
        for (int64_t i = 0; i < array.size() && is_float(array.dtype); i++) {
            const int64_t row = i / columns, number = (i * 2654435761 >> 3) + seed;
            const double v = row == 0 ? NAN : row == 1 ? -INFINITY : row == 2 && i % columns == 0 ? NAN : odd[number % 8];
            array.set(i, Scalar::of_real(f32, v));
        }
    }
    return inputs;
}

static std::vector<KnobsByStage> schedules(const std::string &fold, bool commutes) {
    std::vector<KnobsByStage> all(4);
    all[1][fold].micro = {{"M", 8}}, all[1][fold].vector = {{"M", 8}};
    all[2][fold].unroll = {{"N", 4}};
    all[3][fold].split["N"] = {Split::How::chunks, 4};
    if (!commutes) return all;
    all.emplace_back()[fold].split["N"] = {Split::How::lanes, 8};
    all.back()[fold + ".partial"].vector = {{"N.i", 8}};
    return all;
}

TEST_CASE("folds with positions give the bits that their algorithms say") {
    const std::vector<std::pair<Monoid, bool>> monoids = {
        {argmax_monoid(f32), true}, {last_of_equals(), false}, {least_position(INT64_MAX), false}, {least_position(-1), false}};
    for (const auto &[monoid, commutes] : monoids)
        for (const KnobsByStage &stages : schedules(monoid.name, commutes)) {
            const Algorithm a = folded(monoid, itself);
            const TileProgram program = lowered(monoid.name, a, stages, target_named("avx2"));
            const Loaded code({program}, target_named("x86-64"));
            for (const Extents &shape : std::vector<Extents>{{{"M", 0}, {"N", 3}},
                                                             {{"M", 3}, {"N", 0}},
                                                             {{"M", 1}, {"N", 1}},
                                                             {{"M", 9}, {"N", 1}},
                                                             {{"M", 5}, {"N", 7}},
                                                             {{"M", 17}, {"N", 33}}}) {
                const Arrays inputs = hard_inputs(a, shape, 1), reference = run_reference(a, shape, inputs, {});
                INFO(monoid.name << " M=" << shape.at("M") << " N=" << shape.at("N"));
                CHECK(differ_in_bits(run_reference(narrow_positions(a), shape, inputs, {}), reference) == "");
                CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), reference) == "");
                CHECK(differ_in_bits(code.run(program, shape, inputs, {}, Layout{}), reference) == "");
            }
        }
}

TEST_CASE("who reads a position finds it as declared, where it is not there too") {
    Builder f("readers");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), at = f.fold(argmax_monoid(f32), {x, cast(i64, f.index(N))}, {"N"})[1];
    const Expr before = read_where(at.at({{"M", variable("M") - 1}}, {"M"}).value(), Expr(1) <= variable("M"));
    f.output("wide", at).output("short", cast(i32, at)).output("twice", at + at).output("real", cast(f32, at));
    f.output("is_none", cast(i32, at == f.scalar(i64, 0))).output("before", f.tile(before, {M}));
    const Algorithm a = f.build();
    CHECK(types(a) == "f32 i32");
    for (const Extents &shape : std::vector<Extents>{{{"M", 4}, {"N", 0}}, {{"M", 9}, {"N", 5}}}) {
        const Arrays inputs = hard_inputs(a, shape, 2), reference = run_reference(a, shape, inputs, {});
        CHECK(differ_in_bits(run_reference(narrow_positions(a), shape, inputs, {}), reference) == "");
        CHECK(differ_in_bits(run_interpreter(lowered("readers", a, {}, target_named("avx2")), shape, inputs, {}), reference) == "");
    }
}

}  // namespace tessera::test_narrow_positions
