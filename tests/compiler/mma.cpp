// NVIDIA's tensor cores in tile programs: fragments of warps, by their meaning, in lock step, and as NVIDIA's assembler takes them. No GPU
// runs them here.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/index/prove.h"
#include "algorithms/library/library.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/instructions/families.h"
#include "compiler/interpret/running_error.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes/add_barriers.h"
#include "compiler/tile/fragments.h"
#include "support/text/error.h"
#include "tests/compiler/harness.h"

namespace tessera::test_mma {

using namespace tessera::test;

// ---- which thread holds what

using Place = std::pair<int64_t, int64_t>;

static Place place_of(const WarpForm::Held &held, int64_t lane, int64_t i) {
    const auto value = [&](const Expr &e) {
        const Expr found = simplify(substitute(e, {{"lane", Expr(lane)}, {"i", Expr(i)}}), Bounds());
        REQUIRE(found.is_constant());
        return found->value.integer;
    };
    return {value(held.first), value(held.second)};
}

// The rules of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "… for mma.m16n8k32", word by word: a as row
// and column, b as column and row, since its rows are the products.
static Place by_isa(const std::string &family, FragmentRole role, int64_t lane, int64_t i) {
    const int64_t group = lane >> 2, in_group = lane % 4;
    if (role == FragmentRole::accumulator) return {i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
    if (family != "mma_s8") {
        if (role == FragmentRole::b) return {group, i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8};
        const bool is_upper = (0 <= i && i < 2) || (4 <= i && i < 6);
        return {is_upper ? group : group + 8, i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8};
    }
    if (role == FragmentRole::b) return {group, i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16};
    const bool is_upper = (0 <= i && i < 4) || (8 <= i && i < 12);
    return {is_upper ? group : group + 8, i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16};
}

TEST_CASE("threads of a warp hold the elements that the PTX ISA says, each once") {
    for (const char *name : {"mma_bf16", "mma_f16", "mma_s8"}) {
        const Instruction &family = *find_family(name);
        for (FragmentRole role : {FragmentRole::accumulator, FragmentRole::a, FragmentRole::b}) {
            const WarpForm::Held &held = role == FragmentRole::a   ? family.warp->a
                                         : role == FragmentRole::b ? family.warp->b
                                                                   : family.warp->accumulator;
            std::set<Place> all;
            for (int64_t lane = 0; lane < 32; lane++)
                for (int64_t i = 0; i < elements_of_thread(family, role); i++) {
                    INFO(name << ", lane " << lane << ", element " << i);
                    CHECK(place_of(held, lane, i) == by_isa(name, role, lane, i));
                    all.insert(place_of(held, lane, i));
                }
            const std::vector<int64_t> extents = fragment_extents(family, role);
            CHECK(static_cast<int64_t>(all.size()) == extents[0] * extents[1]);
            for (const auto &[first, second] : all) CHECK((first < extents[0] && second < extents[1]));
        }
    }
}

// ---- a product, by hand

struct Product {
    std::string family = "mma_bf16";
    int64_t pad = 16;         // bytes behind each row in shared memory
    bool transposed = false;  // w is [K, N], and lies so in shared memory: no rows for ldmatrix
    std::string name = family;
};

static constexpr int64_t tile = 64, warps_along = 2, threads = 128;

// The body under `value` taken apart into a quotient and a remainder, as variables.
static TileBody in_digits(const std::string &quotient, const std::string &remainder, const Expr &value, const Expr &divisor,
                          TileBody body) {
    return {tile_node(Let{quotient, value / divisor, {tile_node(Let{remainder, value % divisor, std::move(body)})}})};
}

static std::shared_ptr<const TileNode> in_loop_of(LoopKind kind, const std::string &v, const Expr &count, TileBody body) {
    return tile_node(Loop{v, count, kind, std::move(body)});
}

// y[M, N] = x[M, K] · w[N, K]ᵀ: blocks of 64 by 64 points, slices of 32 products of bf16 or 64 of bytes in shared memory, 2 by 2 warps of
// 2 by 4 fragments.
static TileProgram product(const Product &form) {
    const Instruction &family = *find_family(form.family);
    const DType element = family.first, sum = family.accumulator;
    const int64_t slice = 2 * family.shape.k, row = slice + form.pad / size_of(element);
    const Expr M = extent("M"), N = extent("N"), K = extent("K");
    TileProgram p;
    p.name = form.name, p.target = "cuda-sm80";
    p.dims = {symbolic_dim("M"), symbolic_dim("N"), symbolic_dim("K")};
    const auto argument = [&](const char *name, DType type, std::vector<std::string> dims) {
        Argument a;
        a.tensor.name = name, a.tensor.dtype = type, a.tensor.dims = std::move(dims);
        a.written = *name == 'y', a.read = !a.written;
        p.arguments.push_back(a);
    };
    argument("x", element, {"M", "K"});
    argument("w", element, form.transposed ? std::vector<std::string>{"K", "N"} : std::vector<std::string>{"N", "K"});
    argument("y", sum, {"M", "N"});
    constexpr int64_t rows = 2, columns = 4;
    const auto grid = [&](const std::function<void(const std::string &, int64_t, int64_t)> &visit) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) visit("sum" + std::to_string(i * columns + j), i, j);
    };
    const Expr m0 = variable("m.block") * tile, n0 = variable("n.block") * tile;
    const std::vector<int64_t> sums = fragment_extents(family, FragmentRole::accumulator);

    TileBody zeros, steps, results;
    grid([&](const std::string &name, int64_t, int64_t) {
        zeros.push_back(tile_node(Move{fragment_of_warp(name, variable("w0")), {}, sums}));
    });
    const auto view = [](const std::string &buffer, const Expr &r, const Expr &c) {
        return BufferView(buffer, {r, c}, {{0, Expr(1)}, {1, Expr(1)}});
    };
    const Expr wm = variable("m.w1") * 32, wn = variable("n.w1") * 32;
    for (int64_t s = 0; s < 2; s++) {
        TileBody part;
        const Expr k0 = Expr(s * family.shape.k);
        const auto fragment = [&](const std::string &name, FragmentRole role, TileBody body) {
            const std::vector<int64_t> box = fragment_extents(family, role);
            return tile_node(Alloc{{name, element, {Expr(box[0]), Expr(box[1])}, Space::fragment}, std::move(body)});
        };
        for (int64_t i = 0; i < rows; i++)
            part.push_back(
                tile_node(Move{"a" + std::to_string(i), view("x.tile", wm + 16 * i, k0), fragment_extents(family, FragmentRole::a)}));
        for (int64_t j = 0; j < columns; j++) {
            const BufferView from =
                form.transposed ? BufferView("w.tile", {k0, wn + 8 * j}, {{1, Expr(1)}, {0, Expr(1)}}) : view("w.tile", wn + 8 * j, k0);
            TileBody of_column = {tile_node(Move{"b", from, fragment_extents(family, FragmentRole::b)})};
            for (int64_t i = 0; i < rows; i++)
                of_column.push_back(tile_node(
                    Fragment{form.family, "sum" + std::to_string(i * columns + j), "a" + std::to_string(i), "b", variable("w1")}));
            part.push_back(fragment("b", FragmentRole::b, std::move(of_column)));
        }
        for (int64_t i = rows; i-- > 0;) part = {fragment("a" + std::to_string(i), FragmentRole::a, std::move(part))};
        steps.insert(steps.end(), part.begin(), part.end());
    }
    grid([&](const std::string &name, int64_t i, int64_t j) {
        const Expr vm = variable("m.w2") * 32, vn = variable("n.w2") * 32;
        results.push_back(tile_node(Move{view("y.tile", vm + 16 * i, vn + 8 * j), fragment_of_warp(name, variable("w2")), sums}));
    });
    // Neighbouring threads copy neighbouring elements.
    const auto copy = [&](const std::string &to, const std::string &from, const Expr &first, const Expr &end, bool is_transposed) {
        const std::string v = to + ".t", turn = to + ".turn";
        const int64_t across = is_transposed ? tile : slice, turns = tile * slice / threads;
        const Expr r = variable(turn) * (threads / across) + variable(v + ".row"), c = variable(v + ".column");
        const Expr k = variable("k") * slice + (is_transposed ? r : c), own = first + (is_transposed ? c : r);
        const std::vector<Expr> index = is_transposed ? std::vector<Expr>{k, own} : std::vector<Expr>{own, k};
        const Expr value = load_or(from, element, index, own < end && k < K, constant(element, 0));
        return in_loop_of(
            LoopKind::serial, turn, Expr(turns),
            {in_loop_of(LoopKind::thread, v, Expr(threads),
                        in_digits(v + ".row", v + ".column", variable(v), Expr(across), {tile_node(Compute{to, {r, c}, value, {}})}))});
    };
    TileBody body = {in_loop_of(LoopKind::warp, "w0", Expr(4), zeros),
                     in_loop_of(LoopKind::serial, "k", (K + (slice - 1)) / slice,
                                {copy("x.tile", "x", m0, M, false), copy("w.tile", "w", n0, N, form.transposed),
                                 in_loop_of(LoopKind::warp, "w1", Expr(4), in_digits("m.w1", "n.w1", variable("w1"), warps_along, steps))}),
                     in_loop_of(LoopKind::warp, "w2", Expr(4), in_digits("m.w2", "n.w2", variable("w2"), warps_along, results))};
    const Expr r = variable("turn") * 2 + variable("t.row"), c = variable("t.column");
    const auto result = tile_node(Compute{"y", {m0 + r, n0 + c}, load("y.tile", sum, {r, c}), m0 + r < M && n0 + c < N});
    body.push_back(
        in_loop_of(LoopKind::serial, "turn", Expr(tile / 2),
                   {in_loop_of(LoopKind::thread, "t", Expr(threads), in_digits("t.row", "t.column", variable("t"), tile, {result}))}));
    grid([&](const std::string &name, int64_t, int64_t) {
        body = {tile_node(Alloc{{name, sum, {Expr(4), Expr(sums[0]), Expr(sums[1])}, Space::fragment}, std::move(body)})};
    });
    const auto shared = [&](const std::string &name, DType type, int64_t first, int64_t second) {
        body = {tile_node(Alloc{{name, type, {Expr(first), Expr(second)}, Space::shared}, std::move(body)})};
    };
    shared("y.tile", sum, tile, tile + 8);
    if (form.transposed) shared("w.tile", element, slice, tile);
    else shared("w.tile", element, tile, row);
    shared("x.tile", element, tile, row);
    const Expr across = (N + (tile - 1)) / tile;
    body = in_digits("m.block", "n.block", variable("block"), across, std::move(body));
    p.body = add_barriers({in_loop_of(LoopKind::block, "block", (M + (tile - 1)) / tile * across, std::move(body))}, p.dims);
    return p;
}

static size_t count(const TileBody &body, const std::function<bool(const TileNode &)> &which) {
    size_t found = 0;
    walk(body, [&](const TileNode &n) { found += which(n); });
    return found;
}

static Arrays operands(const TileProgram &p, const Extents &shape, uint32_t seed) {
    Arrays all;
    for (const Argument &a : p.arguments) {
        if (a.written) continue;
        std::vector<int64_t> extents;
        for (const std::string &d : a.tensor.dims) extents.push_back(shape.at(d));
        Array array(a.tensor.dtype, extents);
        for (int64_t i = 0; i < array.size(); i++) {
            seed = seed * 1664525 + 1013904223;
            const auto small = static_cast<int64_t>(seed >> 24) - 128;
            array.set(i, is_float(a.tensor.dtype) ? Scalar::of_real(a.tensor.dtype, static_cast<double>(small) / 61.0)
                                                  : Scalar::of_integer(a.tensor.dtype, small));
        }
        all[a.tensor.name] = std::move(array);
    }
    return all;
}

// Integers: every bit. Floats: the distance from the sum in f64, as a share of the sum of the products' magnitudes.
static double error_of(const Product &form, const Extents &shape, const Arrays &in, const Array &got) {
    const int64_t M = shape.at("M"), N = shape.at("N"), K = shape.at("K");
    double worst = 0;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < K; k++) {
                const Scalar a = in.at("x").get(m * K + k), b = in.at("w").get(form.transposed ? k * N + n : n * K + k);
                const double product = is_float(a.type) ? a.real * b.real : static_cast<double>(a.integer * b.integer);
                sum += product, magnitude += std::fabs(product);
            }
            const Scalar y = got.get(m * N + n);
            const double value = is_float(y.type) ? y.real : static_cast<double>(y.integer);
            worst = std::max(worst, magnitude == 0 ? std::fabs(value) : std::fabs(value - sum) / magnitude);
        }
    return worst;
}

static const std::vector<Product> forms = {
    {},         {"mma_bf16", 0, false, "mma_bf16_dense"}, {"mma_bf16", 16, true, "mma_bf16_transposed"}, {"mma_f16"},
    {"mma_s8"}, {"mma_s8", 0, true, "mma_s8_transposed"}};
static const std::vector<Extents> shapes = {
    {{"M", 1}, {"N", 1}, {"K", 1}}, {{"M", 67}, {"N", 65}, {"K", 70}}, {{"M", 64}, {"N", 64}, {"K", 128}}};

TEST_CASE("products by tensor cores are right by their meaning, and in lock step") {
    for (const Product &form : forms) {
        const TileProgram p = product(form);
        INFO(form.name << "\n" << to_text(p));
        CHECK(verify(p).empty());
        uint32_t seed = 0;
        for (const Extents &shape : shapes) {
            const Arrays in = operands(p, shape, ++seed);
            const Arrays expected = run_interpreter(p, shape, in, {});
            const double error = error_of(form, shape, in, expected.at("y"));
            if (form.family == "mma_s8") CHECK(error == 0);
            else CHECK(error <= std::ldexp(1, -21));  // a rounding of f32 for each 16 products of 128
            for (bool backwards : {false, true}) {
                LockstepReport report;
                const Arrays got = run_lockstep(p, shape, in, {}, {8, true, backwards}, report);
                INFO(to_text(report));
                CHECK(report.hazards.empty());
                CHECK(differ_in_bits(got, expected) == "");
            }
        }
    }
}

TEST_CASE("steps of warps wait as those of threads do") {
    const TileProgram p = product({});
    const auto is_barrier = [](const TileNode &n) { return std::holds_alternative<Barrier>(n); };
    CHECK(count(p.body, is_barrier) == 3);
    for (size_t lost = 0; lost < 3; lost++) {
        size_t at = 0;
        const std::function<TileBody(const TileBody &)> without = [&](const TileBody &body) {
            TileBody all;
            for (const auto &node : body)
                if (!is_barrier(*node) || at++ != lost) all.push_back(tile_node(map_bodies(*node, without)));
            return all;
        };
        TileProgram broken = p;
        broken.body = without(p.body);
        INFO(lost);
        const Extents shape = {{"M", 64}, {"N", 64}, {"K", 96}};
        LockstepReport report;
        run_lockstep(broken, shape, operands(p, shape, 1), {}, {1, false, false}, report);
        REQUIRE(report.hazards.size() == 1);
        CHECK(report.hazards[0].find("with no barrier between them") != std::string::npos);
        CHECK(report.hazards[0].find("warp ") != std::string::npos);
        CHECK_THROWS_WITH(verify(broken), Catch::Contains("without a barrier between them"));
    }
}

TEST_CASE("rows of fragments meet in banks, unless they are apart") {
    const Extents shape = {{"M", 64}, {"N", 64}, {"K", 32}};
    const auto reads = [&](int64_t pad) {
        const TileProgram p = product({"mma_bf16", pad});
        LockstepReport report;
        run_lockstep(p, shape, operands(p, shape, 1), {}, {}, report);
        CHECK(report.kernels[0].threads == 128);
        return report.kernels[0].shared_reads;
    };
    // By hand: 4 warps and 2 steps load 2 fragments of 4 matrices and 4 of 2; 64 · 64 results are read by warps of 32.
    const WarpAccesses apart = reads(16), dense = reads(0);
    CHECK(apart.accesses == 4 * 2 * (2 + 4) + 64 * 64 / 32);
    CHECK(apart.turns == 4 * 2 * (2 * 4 + 4 * 2) + 64 * 64 / 32);
    CHECK(apart.turns == apart.least);
    // Rows of 64 bytes: every second one begins in the same bank.
    CHECK(dense.turns == 4 * 2 * (2 * 4 + 4 * 2) * 4 + 64 * 64 / 32);
}

TEST_CASE("the verifier keeps fragments of warps to steps of warps") {
    const TileProgram p = product({});
    const auto changed = [&](LoopKind from, LoopKind to) {
        const std::function<TileBody(const TileBody &)> change = [&](const TileBody &body) {
            TileBody all;
            for (const auto &node : body) {
                TileNode n = map_bodies(*node, change);
                if (auto *loop = std::get_if<Loop>(&n); loop && loop->kind == from) loop->kind = to;
                all.push_back(tile_node(n));
            }
            return all;
        };
        TileProgram q = p;
        q.body = change(p.body);
        return q;
    };
    CHECK_THROWS_WITH(verify(changed(LoopKind::warp, LoopKind::thread)), Catch::Contains("outside of steps of warps"));
    CHECK_THROWS_WITH(verify(changed(LoopKind::warp, LoopKind::serial)), Catch::Contains("outside of steps of warps"));
    TileProgram opencl = p;
    opencl.target = "opencl";
    CHECK_THROWS_WITH(verify(opencl), Catch::Contains("fragments are not for opencl"));
}

// ---- schedules

struct Scheduled {
    std::string name;
    Algorithm algorithm;
    KnobsByStage stages;
    Extents grid;  // fragments of a warp along M and N
    int64_t slots = 1;
};

// Blocks of `warps` by 2 warps, whose parts are 32 by `columns`.
static Knobs by_warps(const std::string &family, int64_t warps, int64_t columns, int64_t slice, int64_t stages = 1) {
    Knobs k;
    k.instruction = family;
    k.micro = {{"M", 32}, {"N", columns}}, k.block = {{"M", 32 * warps}, {"N", 2 * columns}}, k.k = {{"K", slice}};
    for (const char *operand : {"x", "w"}) k.pack[operand].at = "k", k.pack[operand].stages = stages;
    return k;
}

static std::vector<Scheduled> scheduled() {
    std::vector<Scheduled> all;
    const auto placed = [&](const std::string &policy, int64_t warps, int64_t columns, int64_t slice, int64_t slots) {
        KnobsByStage stages;
        stages["dot"] = by_warps("mma_" + policy, warps, columns, slice, slots);
        stages["dot"].place = tessera::Place{tessera::Place::Kind::at, "y", "block"};
        stages["y"].block = stages["dot"].block, stages["y"].micro = {{"M", 8}, {"N", columns / 8}};
        all.push_back({"placed_" + policy + std::to_string(all.size()),
                       library::matmul(numerics_named(policy + "_machine")),
                       stages,
                       {{"M", 2}, {"N", columns / 8}},
                       slots});
    };
    placed("bf16", 2, 32, 32, 1), placed("f16", 1, 16, 16, 2), placed("f16", 2, 24, 64, 4), placed("bf16", 2, 32, 32, 3);
    // The result of the fold is an output: fragments have no place in it.
    all.push_back({"wide",
                   library::matmul_wide(numerics_named("bf16_machine")),
                   {{"y", by_warps("mma_bf16", 2, 32, 32, 2)}},
                   {{"M", 2}, {"N", 4}},
                   2});
    Builder f("product", numerics_named("int8"));
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Algorithm bytes =
        f.output("y", dot(f.input("x", {M, K}, DType::i8), f.input("w", {K, N}, DType::i8)), DType::i32).build();  // (M, N)
    all.push_back({"bytes", bytes, {{"y", by_warps("mma_s8", 2, 16, 64, 3)}}, {{"M", 2}, {"N", 2}}, 3});
    return all;
}

static bool is_step(const TileNode &n) { return std::holds_alternative<Fragment>(n); }

TEST_CASE("schedules lay out warps of fragments, at all extents") {
    const Target target = target_named("cuda-sm80");
    for (const Scheduled &s : scheduled()) {
        const TileProgram p = lower(s.algorithm, s.stages, target);
        INFO(s.name << "\n" << to_text(p));
        CHECK(is_proved(p));
        CHECK(static_cast<int64_t>(count(p.body, is_step)) == s.grid.at("M") * s.grid.at("N"));
        uint32_t seed = 0;
        for (const auto &[m, n, k] :
             std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {16, 8, 16}, {67, 65, 70}, {5, 130, 0}, {64, 64, 128}}) {
            const Extents shape = {{"M", m}, {"N", n}, {"K", k}};
            INFO(m << ", " << n << ", " << k);
            const Arrays in = make_inputs(s.algorithm, shape, ++seed);
            const Arrays got = run_interpreter(p, shape, in, {}), expected = run_reference(s.algorithm, shape, in, {});
            if (s.name == "bytes") CHECK(differ_in_bits(got, expected) == "");
            else CHECK(differ(got, expected, s.name == "wide" ? 0x1p-18 : 0x1p-7) == "");
            for (bool backwards : {false, true}) {
                LockstepReport report;
                const Arrays in_step = run_lockstep(p, shape, in, {}, {8, true, backwards}, report);
                INFO(to_text(report));
                CHECK(report.hazards.empty());
                CHECK(differ_in_bits(in_step, got) == "");
            }
        }
    }
}

TEST_CASE("what schedules ask of warps and cannot have is said in words") {
    const Target target = target_named("cuda-sm80");
    const Algorithm wide = library::matmul_wide(numerics_named("bf16_machine"));
    const auto refused = [&](const std::function<void(Knobs &)> &change, const std::string &words) {
        Knobs k = by_warps("mma_bf16", 2, 32, 32);
        change(k);
        try {
            lower(wide, {{"y", k}}, target);
            FAIL("expected " << words);
        } catch (const UserError &e) { CHECK_THAT(e.what(), Catch::Contains(words)); }
    };
    refused([](Knobs &k) { k.k.clear(); }, "expected 'k' to have tiles along 'K', got none");
    refused([](Knobs &k) { k.k["K"] = 24; }, "expected tiles along 'K' to be multiples of 16; got 24");
    refused([](Knobs &k) { k.micro["N"] = 12; }, "expected 'micro' to have a multiple of 8 along 'N'; got 12");
    refused([](Knobs &k) { k.micro["N"] = 256, k.block["N"] = 256; }, "there are 48. Make micro smaller.");
    refused([](Knobs &k) { k.block["N"] = 80; }, "must be a multiple of micro N = 32");
    refused([](Knobs &k) { k.vector["N"] = 8; }, "its vectors are the family's own");
    refused([](Knobs &k) { k.pack.erase("w"); }, "Pack it there, without a layout.");
    refused([](Knobs &k) { k.pack["x"].stages = 2, k.pack["w"].stages = 3; },
            "expected one number of stages for all packs at 'k.K'; got 3 and 2.");
    refused([](Knobs &k) { k.pack["w"].stages = 3; }, "expected one number of stages for all packs at 'k.K'; got 3 and 1.");
    refused([](Knobs &k) { k.k["K"] = 2048; }, "warps load fragments of it from shared memory, where it needs");
    try {
        Knobs k;
        k.block = {{"M", 16}, {"N", 16}};
        k.pack["x"].at = "block", k.pack["x"].stages = 2;
        lower(library::matmul_wide({}), {{"y", k}}, target);
        FAIL("expected slices to be asked for");
    } catch (const UserError &e) { CHECK_THAT(e.what(), Catch::Contains("expected a loop that a block goes through. Pack it at 'k'")); }
    try {
        lower(library::matmul_wide(numerics_named("bf16")), {{"y", by_warps("mma_bf16", 2, 32, 32)}}, target);
        FAIL("expected the policy to be asked");
    } catch (const UserError &e) {
        CHECK_THAT(e.what(), Catch::Contains("what the instruction family mma_bf16 rounds is not published") &&
                                 Catch::Contains("the policy 'bf16' promises bits: its products are 'exact'"));
    }
}

// A machine that aligns what a step adds with the largest, and cuts off what is below 2^-23 of that; on the way from f64 to f32 as well.
static float by_machine(float sum, const std::vector<double> &products) {
    double most = std::fabs(sum);
    for (double p : products) most = std::max(most, std::fabs(p));
    if (most == 0) return 0;
    const double unit = std::ldexp(1, std::ilogb(most) - 23);
    const auto cut = [&](double v) { return std::trunc(v / unit) * unit; };
    double all = cut(sum);
    for (double p : products) all += cut(p);
    const float near = static_cast<float>(all);
    return std::fabs(near) > std::fabs(all) ? std::nextafter(near, 0.0f) : near;
}

TEST_CASE("products of the machine stay within the running bound") {
    const Algorithm a = library::matmul_wide(numerics_named("bf16_machine"));
    const TileProgram program = lower(a, {{"y", by_warps("mma_bf16", 2, 32, 32, 2)}}, target_named("cuda-sm80"));
    const Extents shape = {{"M", 5}, {"N", 7}, {"K", 200}};
    Arrays in = make_inputs(a, shape, 3);
    for (Array *operand : {&in.at("x"), &in.at("w")})  // of very different sizes, so that much is cut off
        for (int64_t i = 0; i < operand->size(); i++)
            operand->set(i,
                         Scalar::of_real(DType::bf16, std::ldexp(operand->values()[static_cast<size_t>(i)], static_cast<int>(i * 7 % 12))));
    Array y(DType::f32, {5, 7});
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : in) views[name] = array.view(name);
    views["y"] = y.view("y");
    const RunningErrors errors = running_errors(program, views, shape);
    CHECK(errors.unknown.empty());
    const std::vector<double> x = in.at("x").values(), w = in.at("w").values();
    for (size_t m = 0; m < 5; m++)
        for (size_t n = 0; n < 7; n++) {
            float sum = 0;
            double exact = 0, magnitude = 0;
            for (size_t k = 0; k < 200; k += 16) {
                std::vector<double> products;
                for (size_t i = k; i < std::min<size_t>(k + 16, 200); i++) products.push_back(x[m * 200 + i] * w[i * 7 + n]);
                sum = by_machine(sum, products);
                for (double p : products) exact += p, magnitude += std::fabs(p);
            }
            const double bound = errors.bounds.at("y")[m * 7 + n];
            INFO(m << ", " << n << ": " << sum << " for " << exact << ", bound " << bound);
            CHECK(std::fabs(static_cast<double>(sum) - exact) <= bound);
            CHECK(std::fabs(y.values()[m * 7 + n] - exact) <= bound);
            CHECK(bound <= 13 * 20 * 0x1p-23 * magnitude);
        }
}

// ---- NVIDIA's compiler

static std::string nvcc(const std::string &source, const std::string &options, const std::string &result) {
    std::string folder = (std::filesystem::temp_directory_path() / "tessera-mma-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    std::ofstream(folder + "/kernels.cu") << source;
    const std::string command = "cd '" + folder + "' && '" + TESSERA_NVCC + "' " + options + " kernels.cu > log 2>&1";
    const int failed = std::system(command.c_str());
    std::ifstream file(folder + "/" + (failed ? "log" : result));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove_all(folder);
    INFO(text);
    REQUIRE(failed == 0);
    return text;
}

static size_t occurrences(const std::string &text, const std::string &of) {
    size_t found = 0;
    for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) found++;
    return found;
}

TEST_CASE("NVIDIA's compiler makes an instruction of each fragment, and keeps them in registers", "[.][gpu]") {
    if (std::string(TESSERA_NVCC).empty()) {
        WARN("there is no nvcc: not compiled");
        return;
    }
    const Target target = target_named("cuda-sm80");
    for (const Scheduled &s : scheduled()) {
        const TileProgram p = lowered(s.name, s.algorithm, s.stages, target);
        const std::string source = kernels_of({{s.name, {{{}, p}}}}, target).kernels;
        INFO(source);
        size_t loads = 0;
        walk(p.body, [&](const TileNode &n) {
            const auto *move = std::get_if<Move>(&n);
            loads += move && move->from && move->from->buffer.find(".packed.tile") != std::string::npos &&
                     !(s.name == "bytes" && move->from->buffer.find(".w.") != std::string::npos);
        });
        // The compiler writes out loops over the steps of a slice, so there may be several times as many, all alike.
        const std::string ptx = nvcc(source, "-arch=sm_80 -fmad=false -ptx -o out", "out");
        const size_t steps = occurrences(ptx, "mma.sync.aligned"), own = count(p.body, is_step);
        CHECK((steps >= own && steps % own == 0));
        CHECK(occurrences(ptx, "ldmatrix.sync.aligned") == loads * (steps / own));
        // Each loop over 16 bytes of a thread is an asynchronous copy, which the compiler may write out as often as loops around it run.
        const size_t ahead = count(p.body, [](const TileNode &n) {
            const auto *copy = std::get_if<Copy>(&n);
            return copy && copy->is_asynchronous;
        });
        CHECK((ahead > 0) == (s.slots > 1));
        const size_t chunks = occurrences(ptx, "cp.async.cg.shared.global");
        CHECK((chunks >= ahead && (chunks > 0) == (ahead > 0)));
        CHECK(occurrences(ptx, "cp.async.commit_group") == static_cast<size_t>(s.slots > 1 ? s.slots : 0));
        CHECK(occurrences(ptx, "cp.async.wait_group") == (s.slots > 1 ? 2 : 0));
        const std::string said = nvcc(source, "-arch=sm_80 -fmad=false -cubin -Xptxas -v -o out", "log");
        INFO(said);
        // No fragment of an accumulator: these have 16 bytes of a thread. A few uniform words may be.
        std::smatch spilled;
        REQUIRE(std::regex_search(said, spilled, std::regex("([0-9]+) bytes spill stores")));
        CHECK(std::stoi(spilled[1]) < 16);
    }
    for (const Product &form : forms) {
        const TileProgram p = product(form);
        const std::string source = kernels_of({{form.name, {{{}, p}}}}, target).kernels;
        INFO(source);
        const std::string ptx = nvcc(source, "-arch=sm_80 -fmad=false -ptx -o out", "out");
        CHECK(occurrences(ptx, "mma.sync.aligned") == count(p.body, [](const TileNode &n) { return std::holds_alternative<Fragment>(n); }));
        const size_t loads = count(p.body, [](const TileNode &n) {
            const auto *move = std::get_if<Move>(&n);
            return move && move->from && move->from->buffer.ends_with(".tile");
        });
        // Bytes of w are loaded one by one where it lies transposed.
        const bool by_bytes = form.transposed && form.family == "mma_s8";
        CHECK(occurrences(ptx, "ldmatrix.sync.aligned") == (by_bytes ? 4 : loads));
        const std::string said = nvcc(source, "-arch=sm_80 -fmad=false -cubin -Xptxas -v -o out", "log");
        INFO(said);
        CHECK(said.find(" 0 bytes spill stores, 0 bytes spill loads") != std::string::npos);
        std::smatch registers;
        REQUIRE(std::regex_search(said, registers, std::regex("Used ([0-9]+) registers")));
        CHECK(std::stoi(registers[1]) <= 128);  // four blocks of 128 threads on a multiprocessor
    }
}

}  // namespace tessera::test_mma
