// Positions made of hostile data: sums with numbers at either end of 32 bits decide as they do in the interpreter, in every emitter.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "compiler/tile/data_positions.h"
#include "tests/compiler/hostile.h"

namespace tessera::test_data_positions {

using namespace tessera::test;

TEST_CASE("sums of data are wide, what bounded gives and buffers hold is not") {
    const Expr n = variable("N"), T = extent("T"), loaded = cast(DType::index, load("p", DType::i32, {n})),
               byte = cast(DType::index, load("q", DType::u8, {n}));
    DataPositions positions;
    auto kind = [&](const Expr &e) {
        return std::string(positions.is_data(e) ? "data" : "place") + (positions.is_wide(e) ? ", wide" : "");
    };
    CHECK(kind(n * 16 + T) == "place");
    CHECK(kind(loaded) == "data");
    CHECK(kind(max(loaded, n)) == "data");
    CHECK(kind(loaded + n) == "data, wide");
    CHECK(kind(-loaded) == "data, wide");
    CHECK(kind(min(loaded + n, T)) == "data, wide");
    CHECK(kind(bounded(loaded + n, 0, T) + n) == "place");
    CHECK(kind(bounded(n, loaded, loaded + 1)) == "data, wide");
    CHECK(kind(byte + n) == "place");
    CHECK(kind(loaded / Expr(4)) == "data");
    CHECK(kind(loaded % T) == "place");
    CHECK(kind(loaded + n < T) == "place");
    positions.bind("at", loaded - n);
    CHECK(kind(variable("at")) == "data, wide");
}

// y[M, N] of x[T], a row of i32 and one of i64 for each m, and a real for each n.
static std::map<std::string, Expr> values() {
    const Expr m = variable("M"), n = variable("N"), T = extent("T");
    const Expr p = cast(DType::index, load("p", DType::i32, {m})), q = cast(DType::index, load("q", DType::i64, {m}));
    const Expr r = cast(DType::index, load("r", DType::f32, {n}), Rounding::toward_zero),
               by_column = cast(DType::index, load("c", DType::i32, {n}));
    auto x = [&](const Expr &at) { return load_or("x", DType::f32, {at}, Expr(0) <= at && at < T, constant(DType::f32, -1)); };
    const Expr lo = p + 1, hi = q + 1;
    return {
        {"sum", x(p + n)},
        {"sum_of_i64", x(q + n)},
        {"reversed", x(p - n)},
        {"negated", x(n - p)},
        {"apart", x(q - p + n)},
        {"twice", x(p * 2 + n)},
        {"two", x(p + q)},
        {"three", x(p + q + n)},
        {"of_columns", x(by_column + m)},
        {"strided", x((p + n) * 3)},
        {"real", x(r + m)},
        {"smaller", x(min(p, Expr(7)) - n)},
        {"chosen", x(select(p < n, p - 1, n))},
        {"clamped", load("x", DType::f32, {bounded(p + n, 0, T)})},
        {"clamped_difference", load("x", DType::f32, {bounded(q - p, 0, T)})},
        {"quotient", x((p + n) / Expr(3))},
        {"by_data", x((n - 1) / (p + 1))},
        {"remainder", load("x", DType::f32, {(p + n) % T})},
        {"remainder_by_data", x((p + n) % (q + 1))},
        {"between", load_or("x", DType::f32, {bounded(n, lo, hi)}, Expr(0) <= lo && lo < hi && hi <= T, constant(DType::f32, -2))},
        {"compared", select(p + n < T, select(Expr(int64_t{1} << 31) <= p + n, constant(DType::f32, 3), constant(DType::f32, 2)),
                            constant(DType::f32, 1))},
        {"as_real", cast(DType::f32, p + n)},
        {"as_integer", cast(DType::f32, cast(DType::i32, p - q))},
    };
}

static Algorithm algorithm_of(const std::string &name, const Expr &value) {
    Builder f(name);
    Dim M = f.dim("M"), N = f.dim("N"), T = symbolic_dim("T");
    T.min = 1;
    f.input("x", {f.dim(T)}), f.input("p", {M}, DType::i32), f.input("q", {M}, DType::i64), f.input("r", {N}),
        f.input("c", {N}, DType::i32);
    return f.output("y", f.tile(value, {M, N})).build();
}

// Adds up at positions that data gives; those outside are dropped.
static Algorithm dropped() {
    Builder f("dropped");
    Dim M = f.dim("M"), N = f.dim("N"), T = f.dim("T");
    Tile p = f.input("p", {M}, DType::i32), x = f.input("x", {M, N});
    return f.output("y", f.scatter(sum_monoid(DType::f32), x, {f.tile(cast(DType::index, p.value()) + variable("N"), {M, N})}, {T}))
        .build();
}

static std::vector<Case> cases_for(const Target &target) {
    std::vector<Case> all;
    const int64_t lanes = target.is_gpu() ? 4 : target.vector_bytes / 4;
    const std::vector<Extents> shapes = {
        {{"M", 19}, {"N", lanes + 3}, {"T", 40}}, {{"M", 19}, {"N", lanes}, {"T", 1}}, {{"M", 1}, {"N", 2 * lanes + 1}, {"T", lanes}}};
    for (auto &[name, value] : values()) {
        const Algorithm a = algorithm_of(name, value);
        all.push_back({name + "_plain", a, {}, shapes});
        for (const char *d : {"M", "N"}) {
            Case c{name + "_lanes_" + d, a, {}, shapes};
            c.stages["y"].vector = {{d, lanes}};
            c.stages["y"].micro = {{d, lanes}, {d == std::string("M") ? "N" : "M", 2}};
            all.push_back(c);
        }
    }
    all.push_back({"dropped", dropped(), {}, shapes});
    for (Case &c : all)
        if (target.is_gpu()) c.stages = for_gpu(c.stages);
    return all;
}

static Arrays hostile_inputs(const Algorithm &a, const Extents &shape, uint32_t seed) {
    Arrays inputs = make_inputs(a, shape, seed);
    const int64_t far[] = {INT32_MAX, INT32_MIN, INT32_MAX - 1, INT32_MIN + 2, INT64_MAX, INT64_MIN, int64_t{1} << 32, -(int64_t{1} << 32)};
    for (auto &[name, array] : inputs) {
        if (name == "x") continue;
        const int64_t choices = array.dtype == DType::i32 ? 4 : 8;
        for (int64_t i = 0; i < array.size(); i++) {
            const int64_t at = i + seed, number = at % 3 == 0 ? at % 5 - 2 : far[at * 7 % 11 % choices];
            array.set(i, is_float(array.dtype) ? Scalar::of_real(array.dtype, at % 17 == 0 ? NAN : static_cast<double>(number))
                                               : Scalar::of_integer(array.dtype, number));
        }
    }
    return inputs;
}

static void check(const Target &target, const Build &build = {}) {
    check_hostile(cases_for(target), target, build, hostile_inputs, [](uint32_t number) {
        return std::vector{Layout{number % 2 == 0, 0, 0, 1}};
    });
}

TEST_CASE("positions made of hostile data") {
    for (const Target &target : targets()) check(target);
}

TEST_CASE("positions made of hostile data: C") {
    for (const Target &target : targets()) check(target, {"gcc", "-O1"});
}

TEST_CASE("positions made of hostile data: opencl", "[.][gpu]") {
    if (has_opencl()) check(target_named("opencl"));
}

TEST_CASE("positions made of hostile data: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check(target);
}

// Rows whose offsets lie, at the end of 32 bits or beyond too: they are those rows that there are.
TEST_CASE("positions made of hostile data: ragged rows") {
    const Algorithm a = library::segmented_sum({});
    for (const Target &target : targets()) {
        Case plain{"rows_plain", a, {}, {}}, lanes{"rows_lanes", a, {}, {}};
        lanes.stages["y"].vector = {{"N", target.vector_bytes / 4}};
        std::vector<TileProgram> programs;
        for (const Case &c : {plain, lanes}) programs.push_back(lowered(c.name, a, c.stages, target));
        const Loaded code(programs, target), in_c(programs, target, {"gcc", "-O1"});
        const int64_t big = int64_t{1} << 40;
        const std::vector<std::array<int64_t, 6>> hostile = {{INT32_MAX - 2, INT32_MAX - 1, big, INT32_MIN, int64_t{INT32_MIN} + 2, -big},
                                                             {5, 3, 60, -4, INT64_MAX, 10},
                                                             {INT64_MIN, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, INT64_MAX}};
        for (const std::array<int64_t, 6> &offsets : hostile)
            for (int64_t rows : {7, 50}) {
                const Extents shape{{"B", 5}, {"N", 19}, {"T", rows}};
                Arrays inputs = make_inputs(a, shape, 5);
                for (int64_t i = 0; i < 6; i++)
                    inputs.at("offsets").set(i, Scalar::of_integer(DType::i64, offsets[static_cast<size_t>(i)]));
                for (const TileProgram &p : programs) {
                    const Arrays expected = run_interpreter(p, shape, inputs, {});
                    CHECK(differ_in_bits(code.run(p, shape, inputs, {}, {}), expected) == "");
                    CHECK(differ_in_bits(in_c.run(p, shape, inputs, {}, {}), expected) == "");
                    CHECK(differ_in_bits(run_reference(a, shape, inputs, {}), expected) == "");
                }
            }
    }
}

}  // namespace tessera::test_data_positions
