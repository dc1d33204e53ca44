// Positions made of large numbers and hostile data: sums at either end of 32 bits decide as they do in the interpreter, in every emitter.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "compiler/tile/wide_positions.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"
#include "tests/compiler/hostile.h"
#include "tests/support/thorough.h"

namespace tessera::test_wide_positions {

using namespace tessera::test;

TEST_CASE("what is not proved to fit 32 bits is wide, what bounded gives and buffers hold is not") {
    const Expr n = variable("N"), t = variable("T"), T = extent("T"), loaded = cast(DType::index, load("p", DType::i32, {n})),
               byte = cast(DType::index, load("q", DType::u8, {n}));
    TileProgram program;
    program.dims = {symbolic_dim("N"), symbolic_dim("T"), fixed_dim("F", 100), derived_dim("P", extent("N") + extent("T"))};
    program.parameters = {{"any", DType::i32}, {"few", DType::i32, parameter_range("few", DType::i32, 0, 1000)}};
    auto is_wide = [&](const Expr &e, const Expr &guard = {}) {
        const Expr value = guard.defined() ? load_or("x", DType::f32, {e}, guard, constant(DType::f32, 0)) : cast(DType::f32, e);
        TileBody body = {tile_node(Compute{"y", {n, t}, value, {}})};
        for (const char *d : {"F", "T", "N"}) body = {tile_node(Loop{d, extent(d), LoopKind::serial, body})};
        WidePositions positions;
        positions.look_at(program, body);
        return positions.is_wide(e);
    };
    CHECK(!is_wide(n + 16));
    CHECK(!is_wide(n / Expr(16) * 16 + 15));
    CHECK(is_wide(n * 16));
    CHECK(!is_wide(variable("F") * 1024));
    CHECK(!is_wide(n + t));  // below |P|
    CHECK(is_wide(n + t * 2));
    CHECK(is_wide(n * T));
    CHECK(is_wide(n + cast(DType::index, parameter("any", DType::i32))));
    CHECK(!is_wide(n + cast(DType::index, parameter("few", DType::i32))));
    CHECK(!is_wide(loaded));
    CHECK(!is_wide(max(loaded, n)));
    CHECK(is_wide(loaded + n));
    CHECK(is_wide(-loaded));
    CHECK(is_wide(min(loaded + n, T)));
    CHECK(is_wide(min(loaded, n) - loaded));  // Halide makes it min(n - loaded, 0)
    CHECK(!is_wide(bounded(loaded + n, 0, T) + 1));
    CHECK(is_wide(bounded(n, loaded, loaded + 1)));
    CHECK(!is_wide(byte + n));
    CHECK(!is_wide(loaded / Expr(4)));
    CHECK(!is_wide(loaded / n));
    CHECK(is_wide(loaded / (n - 1)));
    CHECK(!is_wide(loaded % T));
    CHECK(is_wide(Expr(int64_t{1} << 31)));
    CHECK(!is_wide(n * 16, Expr(0) <= n && n < Expr(100)));
    CHECK(is_wide(n * 16, n * 16 < T));  // the guard is computed everywhere
    WidePositions positions;
    positions.bind("at", Expr(int64_t{1} << 31) - n);
    CHECK(positions.is_wide(variable("at")));
    CHECK(positions.is_wide(variable("at") + 1));
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
    size_t number = 0;
    for (const Target &target : targets())
        if (number++ % every(2) == 0) check(target, {"gcc", "-O1"});
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

// Random positions of loop variables, extents, parameters, data and large constants, through conversions to other types and back.
class Positions {
public:
    explicit Positions(uint32_t seed) : random_(seed) {}

    Expr draw() { return some(3).e; }

private:
    // Less than 2^bits in magnitude: index arithmetic is taken not to overflow 64.
    struct Drawn {
        Expr e;
        int bits = 0;
    };
    std::mt19937 random_;

    int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

    Drawn leaf() {
        constexpr int64_t word = int64_t{1} << 32;
        static const int64_t numbers[] = {1, 2, 3, 7, 1024, 65537, INT32_MAX, INT32_MIN, word / 2, word - 3, -word};
        const Expr m = variable("M"), n = variable("N");
        switch (below(9)) {
        case 0:
        case 1: return {m, 31};
        case 2:
        case 3: return {n, 31};
        case 4: return {extent("T"), 31};
        case 5: return {cast(DType::index, parameter("a", DType::i32)), 32};
        case 6: return {cast(DType::index, parameter("b", DType::i64)), 32};
        case 7: return data();
        default: {
            const int64_t number = numbers[below(11)];
            int bits = 1;
            while (std::abs(number) >> bits) bits++;
            return {Expr(number), bits};
        }
        }
    }

    Drawn data() {
        switch (below(3)) {
        case 0: return {cast(DType::index, load("p", DType::i32, {variable("M")})), 32};
        case 1: return {cast(DType::index, load("q", DType::i64, {variable("M")})), 32};
        default: return {cast(DType::index, load("r", DType::f32, {variable("N")}), Rounding::toward_zero), 32};
        }
    }

    Drawn some(int depth) {
        if (depth == 0) return leaf();
        const Drawn a = some(depth - 1), b = below(2) ? leaf() : some(depth - 1);
        const int most = std::max(a.bits, b.bits);
        switch (below(12)) {
        case 0:
        case 1:
        case 2:
            if (a.bits + b.bits <= 60) return {a.e * b.e, a.bits + b.bits};
            [[fallthrough]];
        case 3:
        case 4: return {a.e + b.e, most + 1};
        case 5: return {a.e - b.e, most + 1};
        case 6: return {a.e / b.e, a.bits};
        case 7: return {a.e % b.e, b.bits};
        case 8: return {below(2) ? min(a.e, b.e) : max(a.e, b.e), most};
        case 9: return {select(a.e < b.e, a.e, below(2) ? b.e : a.e - b.e), most + 1};
        case 10: return {bounded(a.e, 0, extent("T")), 31};
        default: {
            const DType types[] = {DType::f32, DType::f64, DType::i32, DType::i64};
            const DType type = types[below(4)];
            return {cast(DType::index, cast(type, a.e), Rounding::toward_zero), 32};
        }
        }
    }
};

static Algorithm at_random_position(const std::string &name, const Expr &at) {
    Builder f(name);
    Dim M = f.dim("M"), N = f.dim("N"), T = symbolic_dim("T");
    T.min = 1;
    f.input("x", {f.dim(T)}), f.input("p", {M}, DType::i32), f.input("q", {M}, DType::i64), f.input("r", {N});
    f.parameter("a", DType::i32), f.parameter("b", DType::i64);
    const Expr guard = Expr(0) <= at && at < extent("T");
    f.output("y", f.tile(load_or("x", DType::f32, {at}, guard, constant(DType::f32, -1)), {M, N}));
    return f.output("z", f.tile(cast(DType::i64, at) + cast(DType::i64, cast(DType::i32, at)), {M, N}), DType::i64).build();
}

// TESSERA_RANDOM_POSITIONS and TESSERA_RANDOM_SEED make it run longer and elsewhere.
static void check_random_positions(const Target &target, const Build &build = {}) {
    auto number = [](const char *name, uint32_t otherwise) {
        const char *value = std::getenv(name);
        return value ? static_cast<uint32_t>(std::atol(value)) : otherwise;
    };
    const uint32_t first = number("TESSERA_RANDOM_SEED", 1), count = number("TESSERA_RANDOM_POSITIONS", 20);
    const int64_t lanes = target.is_gpu() ? 4 : target.vector_bytes / 4;
    std::vector<Case> cases;
    std::vector<TileProgram> programs;
    std::vector<Expr> positions;
    for (uint32_t seed = first; positions.size() < count; seed++) {
        const Expr at = Positions(seed).draw();
        Case c{"at_" + std::to_string(seed), {}, {}, {{{"M", 9}, {"N", lanes + 3}, {"T", 40}}}};
        try {
            c.algorithm = at_random_position("at", at);
        } catch (const UserError &) { continue; }  // not proved to be inside where the guard says so
        positions.push_back(at);
        if (seed % 3) c.stages["y"].vector = c.stages["z"].vector = {{seed % 3 == 1 ? "M" : "N", lanes}};
        if (target.is_gpu()) c.stages = for_gpu(c.stages);
        programs.push_back(lowered(c, target)), cases.push_back(c);
    }
    const Loaded code(programs, target, build);
    static const int64_t ends[] = {INT32_MAX, INT32_MIN, 0, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < cases.size(); i++)
        for (uint32_t round = 0; round < 4; round++) {
            INFO(target.name << " " << build.compiler << " " << cases[i].name << " " << brief(positions[i]));
            const Arrays given = hostile_inputs(cases[i].algorithm, cases[i].shapes[0], round);
            const Parameters parameters = {{"a", Scalar::of_integer(DType::i32, ends[(round + i) % 4])},
                                           {"b", Scalar::of_integer(DType::i64, ends[(2 * round + i) % 6])}};
            const Arrays expected = run_interpreter(programs[i], cases[i].shapes[0], given, parameters);
            CHECK(differ_in_bits(run_reference(cases[i].algorithm, cases[i].shapes[0], given, parameters), expected) == "");
            const Layout layout{round % 2 == 0, 0, 0, 1};
            CHECK(differ_in_bits(code.run(programs[i], cases[i].shapes[0], given, parameters, layout), expected) == "");
        }
}

TEST_CASE("random positions") {
    for (const Target &target : targets()) check_random_positions(target);
}

TEST_CASE("random positions: C") {
    for (const Build &build : c_builds("-O2")) check_random_positions(targets().back(), build);
}

TEST_CASE("random positions: opencl", "[.][gpu]") {
    if (has_opencl()) check_random_positions(target_named("opencl"));
}

TEST_CASE("random positions: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check_random_positions(target);
}

TEST_CASE("random positions: wasm32", "[.][wasm32]") {
    if (const Target target = target_named("wasm32"); can_emulate(target)) check_random_positions(target);
}

// Positions pass 2^32: the last ones came out as if they were the first, and AVX-512 code read memory that is no argument's.
TEST_CASE("a slice with a large step ends where its tensor does") {
    const Extents shape{{"M", 1}, {"N", 5000}, {"L", 4194312}};
    const Algorithm a = library::slice({}, {{"step", 1024}});
    for (const Target &target : targets()) {
        const int64_t lanes = target.vector_bytes / 4;
        Case c{"slice", a, {}, {shape}};
        c.stages["y"].vector = {{"L", lanes}};
        c.stages["y"].micro = {{"L", 8 * lanes}};
        const TileProgram program = lowered(c, target);
        const Loaded code({program}, target);
        const Arrays inputs = make_inputs(a, shape, 3);
        for (int64_t begin : {int64_t{5}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
            Array expected(DType::f32, {1, shape.at("L")});
            for (int64_t l = 0; l < shape.at("L"); l++)
                if (const int64_t at = begin + 1024 * l; at >= 0 && at < 5000) expected.set(l, inputs.at("x").get(at));
            const Arrays got = code.run(program, shape, inputs, {{"begin", Scalar::of_integer(DType::i32, begin)}}, {});
            CHECK(differ_in_bits(got, {{"y", expected}}) == "");
        }
    }
}

// Hot loops stay as they are: under the schedules that ship only these kernels have positions of 64 bits, beside how often loops run.
TEST_CASE("positions of shipped kernels fit 32 bits") {
    const std::set<std::string> wide = {"conv2d_bias_relu_nhwc/opencl", "conv2d_nchw/avx2", "conv2d_nchw/avx512", "conv2d_nhwc/opencl"};
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    std::set<std::string> seen, found;
    for (const Case &c : library_cases(8))
        for (const char *target : {"avx2", "avx512", "opencl"}) {
            if (!c.algorithm.calls().empty()) continue;  // a callee has a kernel of its own
            const std::string schedule = c.algorithm.name + "/" + target;
            const std::vector<std::string> names = library.names();
            if (!std::count(names.begin(), names.end(), schedule) || !seen.insert(schedule + c.algorithm.numerics.name).second) continue;
            TileProgram program;
            try {
                program = lowered(c.algorithm.name, c.algorithm, resolve(library.find(schedule), library).stages, target_named(target));
            } catch (const UserError &) { continue; }
            std::vector<Expr> counts;
            walk(program.body, [&](const TileNode &n) {
                if (auto *loop = std::get_if<Loop>(&n)) walk(loop->count, [&](const Expr &e) { counts.push_back(e); });
            });
            for (const Expr &e : unproved_positions(program, program.body))
                if (std::none_of(counts.begin(), counts.end(), [&](const Expr &count) { return equal(count, e); })) found.insert(schedule);
        }
    CHECK(seen.size() > 100);
    for (const std::string &schedule : found) {
        INFO(schedule);
        CHECK(wide.count(schedule) == 1);
    }
}

}  // namespace tessera::test_wide_positions
