// The hash of reduction trees: equal ones give equal bits, and only what changes bits changes it. TESSERA_RANDOM_PROGRAMS and
// TESSERA_RANDOM_SEED make its law run longer and elsewhere.
#include "compiler/lower/reduction_trees.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/random_case.h"

namespace tessera::test_reduction_trees {

using namespace tessera::test;

using How = Split::How;
using Names = std::set<std::string>;

static const Target &avx2() {
    static const Target target = target_named("avx2");
    return target;
}

static ReductionTrees trees(const Algorithm &a, const KnobsByStage &stages) { return reduction_trees(a, stages); }
static std::string hash(const Algorithm &a, const KnobsByStage &stages) { return trees(a, stages).hash; }

static Knobs split(const std::string &dim, How how, int64_t size) {
    Knobs k;
    k.split[dim] = {how, size};
    return k;
}

static Algorithm matmul(DType type = DType::f32, DType accumulate = DType::f32) {
    Builder f("product");
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}, type == DType::i32 ? DType::u8 : type), w = f.input("w", {K, N}, type == DType::i32 ? DType::i8 : type);
    Tile acc = dot(cast(accumulate, x), cast(accumulate, w), {K}).named("acc");
    return f.output("y", acc).build();
}

// y[N] = Σ over P, Q, R of x[N, P, Q, R]
static Algorithm sum_of_three() {
    Builder f("sums");
    Dim N = f.dim("N"), P = f.dim("P"), Q = f.dim("Q"), R = f.dim("R");
    return f.output("y", f.fold(sum_monoid(DType::f32), {f.input("x", {N, P, Q, R})}, {"P", "Q", "R"})[0].named("s")).build();
}

TEST_CASE("tiles, vectors, threads, unrolling, packs and places keep the bits hash") {
    const Algorithm a = matmul();
    const std::string plain = hash(a, {});
    Knobs tiled;
    tiled.block = {{"M", 16}, {"N", 32}}, tiled.k = {{"K", 7}}, tiled.micro = {{"M", 2}, {"N", 16}}, tiled.vector = {{"N", 8}};
    tiled.unroll = {{"K", 4}}, tiled.parallel = {"block.M"}, tiled.tail = {{"M", Tail::narrow}, {"K", Tail::loop}};
    tiled.pack["w"] = {"block.N", {{"N", 8, false}, {"K", 0, false}, {"N", 8, true}}};
    CHECK(hash(a, {{"acc", tiled}}) == plain);
    tiled.loops = {"block.N", "block.M", "k.K", "micro.N", "micro.M"};
    tiled.instruction = "fma";
    CHECK(hash(a, {{"acc", tiled}}) == plain);

    const Algorithm linear = library::linear_gelu({});
    const std::string of_linear = hash(linear, {});
    Knobs placed, y;
    placed.place = Place{Place::Kind::at, "y", "micro"}, y.micro = {{"M", 4}, {"N", 16}};
    CHECK(hash(linear, {{"acc", placed}, {"y", y}}) == of_linear);
    CHECK(hash(library::linear_gelu(numerics_named("bf16")), {}) != of_linear);
}

TEST_CASE("chunks, lanes and their sizes change the bits hash; who computes chunks does not") {
    const Algorithm a = matmul();
    const std::string plain = hash(a, {}), chunks = hash(a, {{"acc", split("K", How::chunks, 64)}});
    CHECK(chunks != plain);
    CHECK(hash(a, {{"acc", split("K", How::threads, 64)}}) == chunks);
    CHECK(hash(a, {{"acc", split("K", How::chunks, 32)}}) != chunks);
    const std::string lanes = hash(a, {{"acc", split("K", How::lanes, 64)}});
    CHECK(lanes != chunks);
    CHECK(lanes != plain);
    // A tree is short for lanes inside lanes.
    Knobs tree, outer;
    tree.split["K"] = {How::tree, 0, {64, 8}};
    outer.split["K"] = {How::lanes, 64}, outer.split["K.i"] = {How::lanes, 8};
    CHECK(hash(a, {{"acc", tree}}) == hash(a, {{"acc", outer}}));
    CHECK(hash(a, {{"acc", tree}}) != lanes);
    // Also for partial results.
    Knobs again = split("K.i", How::chunks, 16);
    CHECK(hash(a, {{"acc", split("K", How::chunks, 64)}, {"acc.partial", again}}) != chunks);
    // Batch forms.
    const Algorithm s = library::softmax({});
    CHECK(hash(s, {{"sum", split("N", How::chunks, 64)}}) != hash(s, {}));
}

TEST_CASE("mul_add and dot2 change the bits hash") {
    const Algorithm a = matmul(), halves = matmul(DType::bf16);
    Knobs k;
    k.instruction = "mul_add";
    CHECK(hash(a, {{"acc", k}}) != hash(a, {}));
    k.instruction = "dot2";
    const std::string dot2 = hash(halves, {{"acc", k}});
    CHECK(dot2 != hash(halves, {}));
    k.k["K"] = 64;  // the same groups
    CHECK(hash(halves, {{"acc", k}}) == dot2);
    k.k["K"] = 5;  // a group of one in each tile
    CHECK(hash(halves, {{"acc", k}}) != dot2);
}

TEST_CASE("integers are added in any order") {
    const Algorithm a = matmul(DType::i32, DType::i32);
    const std::string plain = hash(a, {});
    Knobs k;
    k.instruction = "dot4";
    CHECK(hash(a, {{"acc", k}}) == plain);
    CHECK(hash(a, {{"acc", split("K", How::lanes, 64)}}) == plain);
    CHECK(trees(a, {}).folds.at(0).steps.at(0) == "acc: dot over K < |K|, exact in any order");
}

TEST_CASE("the order of loops over several folded dims changes the bits hash where it changes the order of elements") {
    const Algorithm a = sum_of_three();
    const std::string plain = hash(a, {});
    auto loops = [&](std::vector<std::string> names, Extents k = {}) {
        Knobs knobs;
        knobs.loops = std::move(names), knobs.k = std::move(k);
        return hash(a, {{"s", knobs}});
    };
    CHECK(loops({"N", "P", "Q", "R"}) == plain);
    CHECK(loops({"N", "Q", "P", "R"}) != plain);
    CHECK(loops({"k.P", "N", "P", "Q", "R"}, {{"P", 4}}) == plain);
    CHECK(loops({"k.Q", "N", "P", "Q", "R"}, {{"Q", 4}}) != plain);
    CHECK(loops({"k.Q", "N", "P", "Q", "R"}, {{"Q", 4}}) != loops({"k.Q", "N", "P", "Q", "R"}, {{"Q", 2}}));
    CHECK(loops({"k.Q", "N", "P", "Q", "R"}, {{"Q", 4}}) != loops({"N", "Q", "P", "R"}));
}

TEST_CASE("stages that share loops have one order, also where it is exact for the one whose loops they are") {
    Builder f("two");
    Dim N = f.dim("N"), P = f.dim("P"), Q = f.dim("Q");
    const Tile x = f.input("x", {N, P, Q}), c = f.input("c", {N, P, Q}, DType::i32);
    f.output("y", f.fold(sum_monoid(DType::f32), {x}, {"P", "Q"})[0].named("s"));
    const Algorithm a = f.output("z", f.fold(sum_monoid(DType::i32), {c}, {"P", "Q"})[0].named("t")).build();
    Knobs guest, host;
    guest.place = Place{Place::Kind::beside, "t", ""};
    const std::string plain = hash(a, {{"s", guest}});
    CHECK(plain == hash(a, {}));
    host.loops = {"N", "P", "Q"};
    CHECK(hash(a, {{"s", guest}, {"t", host}}) == plain);
    host.loops = {"N", "Q", "P"};
    CHECK(hash(a, {{"s", guest}, {"t", host}}) != plain);
    CHECK(hash(a, {{"t", host}}) == plain);
}

TEST_CASE("trees in words") {
    const Algorithm a = matmul();
    const ReductionTrees plain = trees(a, {});
    REQUIRE(plain.folds.size() == 1);
    CHECK(plain.folds[0] == FoldTree{"acc", {"acc: dot over K < |K|"}});
    CHECK(
        trees(a, {{"acc", split("K", How::chunks, 64)}}).folds[0] ==
        FoldTree{"acc",
                 {"acc.partial, for each K.o < (|K| + 63)/64: dot over K.i < min(64, |K| - K.o*64)", "acc: dot over K.o < (|K| + 63)/64"}});
    Knobs order;
    order.loops = {"k.Q", "N", "P", "Q", "R"}, order.k = {{"Q", 4}}, order.tail = {{"Q", Tail::loop}};
    CHECK(trees(sum_of_three(), {{"s", order}}).folds[0].steps[0] ==
          "s: sum over P < |P| and Q < |Q| and R < |R|, in the order Q in tiles of 4, what is left point by point; P; Q; R");
}

TEST_CASE("dims on whose extents no bits depend") {
    CHECK(trees(matmul(), {}).invariant == Names{"M", "N"});
    CHECK(trees(matmul(), {{"acc", split("K", How::lanes, 64)}}).invariant == Names{"M", "N"});
    CHECK(trees(library::softmax({}), {}).invariant == Names{"M"});
    Builder f("edges");
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    const Expr next = variable("M") + Expr(1);
    const Algorithm edges =
        f.output("y", f.tile(load_or("x", DType::f32, {next, variable("N")}, next < extent("M"), constant(DType::f32, 0)), {M, N})).build();
    CHECK(trees(edges, {}).invariant == Names{"N"});
}

TEST_CASE("a call that is emitted once has the bits of one that is inlined; rounds have those of their callee") {
    Builder f("caller");
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
    const Tile y = f.call("up", matmul(), {x, w})[0];
    const Algorithm a = f.output("z", y + 1.0).build();
    Knobs once;
    once.call = "once";
    CHECK(hash(a, {{"up", once}}) == hash(a, {}));
    const Knobs chunks = split("K", How::chunks, 8);
    const std::string split_inside = hash(a, {{"up", once}, {"up.acc", chunks}});
    CHECK(split_inside != hash(a, {}));
    CHECK(split_inside == hash(a, {{"up.acc", chunks}}));
    CHECK(trees(a, {}).invariant == Names{"M", "N"});
}

// ---- laws

static std::optional<TileProgram> tried(const Case &c) {
    try {
        return lowered(c, avx2());
    } catch (const UserError &) { return std::nullopt; }
}

static unsigned number(const char *variable, unsigned otherwise) {
    const char *given = std::getenv(variable);
    return given ? static_cast<unsigned>(std::atoll(given)) : otherwise;
}

struct Pairs {
    int equal = 0, other = 0, differing = 0;  // hashes; results of those with other hashes
};

struct Schedule {
    KnobsByStage stages;
    std::string hash;
    std::vector<Arrays> results;  // by shape, of inputs that make rounding visible
};

// Whether its shapes say how long all axes of its arguments are.
static bool has_extents(const Case &c) {
    const Extents extents = complete(c.algorithm, c.shapes[0]);
    return std::all_of(c.algorithm.tensors.begin(), c.algorithm.tensors.end(), [&](const Tensor &t) {
        return std::all_of(t.dims.begin(), t.dims.end(), [&](const std::string &d) { return extents.count(d) > 0; });
    });
}

// Nothing where the schedule is refused.
static std::optional<Schedule> run(const Case &c) {
    const std::optional<TileProgram> program = tried(c);
    if (!program) return std::nullopt;
    Schedule s{c.stages, hash(c.algorithm, c.stages), {}};
    for (size_t i = 0; i < c.shapes.size(); i++) {
        const Arrays inputs = make_inputs(c.algorithm, c.shapes[i], static_cast<uint32_t>(i) + 3, i == 1);
        s.results.push_back(run_interpreter(*program, c.shapes[i], inputs, {}));
    }
    return s;
}

static void compare(const Schedule &a, const Schedule &b, Pairs &pairs) {
    const bool same = a.hash == b.hash;
    (same ? pairs.equal : pairs.other)++;
    bool differs = false;
    for (size_t i = 0; i < a.results.size(); i++) {
        const std::string wrong = differ_in_bits(a.results[i], b.results[i]);
        if (same && !wrong.empty()) FAIL(wrong);
        differs |= !wrong.empty();
    }
    pairs.differing += !same && differs;
}

TEST_CASE("schedules of random programs with one bits hash give equal bits", "[random]") {
    std::mt19937 random(number("TESSERA_RANDOM_SEED", 20));
    Pairs pairs;
    for (unsigned i = 0, n = number("TESSERA_RANDOM_PROGRAMS", 250); i < n; i++) {
        RandomCase c;
        try {
            c = random_case("p" + std::to_string(i), random, avx2());
        } catch (const UserError &) { continue; }  // that makes no program
        Case built = build(c);
        if (!has_extents(built)) continue;
        std::vector<Schedule> legal;
        for (int tries = 0; tries < 12 && legal.size() < 4; tries++) {
            built.stages = random_stages(c, random, avx2());
            std::erase_if(built.stages, [&](const auto &) { return random() % 2; });
            if (std::optional<Schedule> s = run(built)) legal.push_back(std::move(*s));
        }
        for (size_t a = 0; a < legal.size(); a++)
            for (size_t b = a + 1; b < legal.size(); b++) {
                RandomCase one = c, other = c;
                one.stages = legal[a].stages, other.stages = legal[b].stages;
                INFO(to_cpp(one) << "and\n" << to_cpp(other));
                compare(legal[a], legal[b], pairs);
            }
    }
    CHECK(pairs.equal > 100);
    CHECK(pairs.differing > 10);
}

TEST_CASE("random orders of three folded dims with one bits hash give equal bits") {
    std::mt19937 random(7);
    Pairs pairs;
    const Algorithm a = sum_of_three();
    auto schedule = [&] {
        Knobs k;
        std::vector<std::string> tiles, points = {"P", "Q", "R"};
        for (const char *d : {"P", "Q", "R"})
            if (random() % 2) k.k[d] = 1 + static_cast<int64_t>(random() % 4), tiles.push_back(std::string("k.") + d);
        for (const char *d : {"P", "Q", "R"})
            if (random() % 3 == 0) k.tail[d] = Tail::loop;
        if (random() % 3) std::shuffle(points.begin(), points.end(), random);
        std::shuffle(tiles.begin(), tiles.end(), random);
        k.loops = tiles;
        k.loops.insert(random() % 2 ? k.loops.begin() : k.loops.end(), "N");
        k.loops.insert(k.loops.end(), points.begin(), points.end());
        if (random() % 4 == 0) k.split[std::string(1, static_cast<char>('P' + random() % 3))] = {How::chunks, 3};
        if (!k.split.empty()) k.loops.clear(), k.k.clear(), k.tail.clear();
        return KnobsByStage{{"s", k}};
    };
    const std::vector<Extents> shapes = {{{"N", 2}, {"P", 5}, {"Q", 7}, {"R", 6}}, {{"N", 3}, {"P", 3}, {"Q", 4}, {"R", 5}}};
    std::vector<Schedule> legal;
    for (int i = 0; i < 120; i++)
        if (std::optional<Schedule> s = run({"s", a, schedule(), shapes})) legal.push_back(std::move(*s));
    for (size_t i = 0; i < legal.size(); i++)
        for (size_t j = i + 1; j < legal.size(); j++) compare(legal[i], legal[j], pairs);
    CHECK(pairs.equal > 100);
    CHECK(pairs.differing > 1000);
}

}  // namespace tessera::test_reduction_trees
