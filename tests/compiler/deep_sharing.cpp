// Random expressions that are deep and share nearly everything, and chains of tiles that are read at several places of the one before:
// as trees they have some 2^60 nodes. Whatever looks at an expression takes steps for its nodes, not for its paths, or refuses it.
#include <catch2/catch.hpp>

#include <random>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/expr/value_numbering.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "compiler/compile/lower_variants.h"
#include "compiler/emit/emit_source.h"
#include "support/text/error.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_deep_sharing {

using namespace tessera::test;

// Nodes in memory, and how many of them differ.
struct Size {
    size_t nodes = 0, different = 0;
};

static Size size_of(const Algorithm &a) {
    Size size;
    for (const Stage &stage : a.stages()) {
        AddressSet seen;
        ValueNumbering table;
        auto count = [&](const Expr &) { size.nodes++; };
        for (const Expr &e : expressions_of(stage)) walk_unseen(e, count, seen), table.number(e);
        size.different += static_cast<size_t>(table.size());
    }
    return size;
}

class Chain {
public:
    Chain(const std::string &name, uint32_t seed) : f(name), random(seed) {
        M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N}), table = f.input("table", {N}, DType::i32);
        tiles = {x, f.input("w", {N})};
        positions = {variable("N"), bounded(table.value(), 0, extent("N"))};
    }

    // So many steps, each over what the last ones made.
    Algorithm made(int steps, const std::vector<int> &kinds) {
        for (int i = 0; i < steps; i++) step(kinds[pick(kinds.size())]);
        const Tile y = f.tile(tiles.back().value() + load("w", DType::f32, {bounded(positions.back(), 0, extent("N"))}), {M, N});
        return f.output("y", y).build();
    }

    static constexpr int count = 13;

private:
    Builder f;
    std::mt19937 random;
    Dim M, N;
    std::vector<Tile> tiles;
    std::vector<Expr> positions;

    size_t pick(size_t below) { return random() % below; }
    const Tile &recent() { return tiles[tiles.size() - 1 - pick(2)]; }
    const Expr &position() { return positions[positions.size() - 1 - pick(2)]; }
    void add(const Tile &t) { tiles.push_back(broadcast(t, {M, N})); }
    Tile there(const Tile &t, const Expr &n) { return t.at({{"N", n}}, {"M", "N"}); }

    void step(int kind) {
        const Tile &a = tiles.back(), &b = recent();
        const Expr one = bounded(variable("N") + Expr(1), 0, extent("N"));
        switch (kind) {
        case 0: return add(a * 0.5 + b);
        case 1: return add(fma(a, b, a) * 0.25);
        case 2: return add(select(a < b, a * 0.5, b + a));
        case 3: return add(min(a, b) - max(a, b * 0.5));
        case 4: return add(a * 0.5 + there(b, one));
        case 5: return add(there(a, one) - there(b, one));
        case 6: {  // nothing before the first
            const Expr before = variable("N") - Expr(1);
            return add(a + f.tile(read_where(there(a, before).value(), Expr(0) <= before), {M, N}));
        }
        case 7: return add(select(f.index(N) < 3, there(a, one), b));
        case 8: return positions.push_back(min(position() + Expr(1), max(positions.back() - Expr(2), Expr(0))));
        case 9: return positions.push_back(bounded(position() + positions.back(), 0, extent("N")));
        case 10: return positions.push_back(select(positions.back() < position(), position() / Expr(2), positions.back() % Expr(7)));
        case 11: return positions.push_back(
            bounded(load("table", DType::i32, {bounded(positions.back() + position(), 0, extent("N"))}), 0, extent("N")));
        case 12: {
            const Expr at = positions.back();
            const Expr other = position();
            const auto inside = [](const Expr &n) { return Expr(0) <= n && n < extent("N"); };
            const Expr sum = load_or("table", DType::i32, {at}, inside(at), constant_int(DType::i32, 3)) +
                             load_or("table", DType::i32, {other}, inside(other), constant_int(DType::i32, 1));
            return positions.push_back(bounded(sum, 0, extent("N")));
        }
        default: throw InternalError("unknown step");
        }
    }
};

// "" where all agree, or the id of the error that refuses it.
static std::string through(const std::string &name, uint32_t seed, int steps, const std::vector<int> &kinds) {
    const Target target = target_named("avx2");
    try {
        const Algorithm a = Chain(name, seed).made(steps, kinds);
        const Size size = size_of(a);
        CHECK(size.nodes <= 20 * size.different + 100);
        CHECK(size.different <= 25000);
        const std::string text = to_text(a);
        CHECK(text.size() <= 100 * size.different + 5000);
        const Algorithm back = algorithm_from_json(to_json(a));
        CHECK(semantic_hash(back) == semantic_hash(a));
        CHECK(to_text(back) == text);
        const Extents shape = {{"M", 2}, {"N", 9}};
        const Arrays inputs = make_inputs(a, shape, seed), expected = run_reference(a, shape, inputs, {});
        CHECK(differ_in_bits(run_reference(back, shape, inputs, {}), expected) == "");
        const TileProgram program = lower_candidate(a, {}, target);
        CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), expected) == "");
        CHECK(source_of({{program.name, {{{}, program}}}}, target).size() <= 1000 * size.different + 50000);
    } catch (const UserError &e) { return e.id(); }
    return "";
}

// y reads each of n smoothing steps at two places, `apart` of the step.
static Algorithm smoothed(int n, const std::function<int(int)> &apart) {
    Builder f("smoothed");
    const Dim N = f.dim("N");
    Tile x = f.input("x", {N});
    for (int i = 0; i < n; i++) x = x + x.at({{"N", bounded(variable("N") + Expr(apart(i)), 0, extent("N"))}}, {"N"}) * 0.5;
    return f.output("y", x).build();
}

TEST_CASE("a chain of shifted tiles has a node for each value, and one with 2^n values is refused early", "[deep-sharing]") {
    for (int n : {12, 24, 48}) {
        const Size size = size_of(smoothed(n, [](int) { return 1; }));
        CHECK(size.nodes <= static_cast<size_t>(3 * n * (n + 1) / 2 + 5 * n + 10));
    }
    check_words([] { smoothed(40, [](int i) { return i % 30 + 1; }); },
                {"error[expr.size]: an expression: expected at most 20000 different operations and operands, got more, as a chain of tiles "
                 "does that are each read at several places of the one before: without a name, each reader computes all of it again. Name "
                 "a tile on the way (named), and its elements are computed once. The expression begins "});
}

TEST_CASE("guarded loads in the indices of guarded loads are refused where they multiply", "[deep-sharing]") {
    check_words([] { Chain("gathers", 1).made(60, {12}); },
                {"error[algorithm.guards]: gathers.y: there are more than 100000 operations under different guards, as where guarded loads "
                 "lie in the indices of guarded loads again and again; name an index on the way (named), and it is computed once."});
}

TEST_CASE("what shares nodes is declared, written, read, verified, evaluated and lowered by its nodes, or refused", "[deep-sharing]") {
    std::vector<int> all(Chain::count);
    for (int i = 0; i < Chain::count; i++) all[static_cast<size_t>(i)] = i;
    int done = 0, cases = 0;
    std::string refused;
    auto check = [&](const std::vector<int> &kinds, int steps) {
        const std::string name = "chain" + std::to_string(++cases);
        INFO(name);
        const std::string id = through(name, static_cast<uint32_t>(cases), steps, kinds);
        if (id.empty()) done++;
        else refused += name + ": " + id + "\n";
    };
    for (int kind : all) check({kind}, 60);
    for (int kind : all) check({kind, 0, 4, 9}, 60);
    for (int i = 0; i < 20; i++) check(all, 60);
    INFO(refused);
    CHECK(done >= 20);
}

}  // namespace tessera::test_deep_sharing
