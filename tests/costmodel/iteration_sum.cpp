#include "costmodel/features/iteration_sum.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>

namespace tessera::test_iteration_sum {

static LoopMask loops_in(const Expr &e) {
    LoopMask all = 0;
    for (const std::string &name : variables_in(e)) all |= LoopMask{1} << (name[0] - 'a');
    return all;
}

// Loops a, b, c, … of these counts.
struct Nest {
    std::vector<Expr> counts;
    std::vector<std::pair<Expr, bool>> conditions;  // with whether they must hold
    LoopMask shares = 0;
    LoopPositions at = {};

    IterationSum sum(const Expr &e) const {
        static const char *names[] = {"a", "b", "c", "d", "e"};
        std::vector<SummedLoop> loops;
        for (size_t i = 0; i < counts.size(); i++)
            loops.push_back({i, names[i], counts[i], loops_in(counts[i]), 20, (shares >> i & 1) != 0});
        std::vector<SummedCondition> all;
        for (const auto &[condition, holds] : conditions) all.push_back({condition, !holds, loops_in(condition)});
        return iteration_sum(at, loops, all, e);
    }

    // One iteration after the other.
    IterationSum walked(const Expr &e) const {
        LoopPositions walker = at;
        IterationSum all;
        walk(e, walker, 0, 1, all);
        return all;
    }

    void walk(const Expr &e, LoopPositions &walker, size_t loop, double share, IterationSum &all) const {
        if (loop < counts.size()) {
            const int64_t n = walker.value(counts[loop]);
            int64_t &position = walker.loops[std::string(1, static_cast<char>('a' + loop))];
            for (int64_t i = 0; i < n; i++) {
                position = i;
                walk(e, walker, loop + 1, shares >> loop & 1 ? share / static_cast<double>(n) : share, all);
            }
            return;
        }
        for (const auto &[condition, holds] : conditions)
            if ((walker.value(condition) != 0) != holds) return;
        all.points += share, all.value += share * static_cast<double>(walker.value(e));
    }
};

static const Expr a = variable("a"), b = variable("b"), c = variable("c");

TEST_CASE("sums are over the iterations that there are") {
    const Nest tiles{{Expr(2), min(Expr(24), Expr(32) - a * Expr(24))}, {}};  // 64 rows in blocks of 48, in tiles of 2
    CHECK(tiles.sum(min(Expr(2), Expr(64) - a * Expr(48) - b * Expr(2))).points == 32);
    CHECK(tiles.sum(min(Expr(2), Expr(64) - a * Expr(48) - b * Expr(2))).value == 64);
    const Nest triangle{{Expr(1000), a + Expr(1)}, {}};
    CHECK(triangle.sum(b).points == 500500);
    CHECK(triangle.sum(b).value == 166666500);
    CHECK(triangle.sum(a).value == 333333000);
    const Nest below{{Expr(10), Expr(7)}, {{b < a, true}, {a < Expr(4), false}}};
    CHECK(below.sum(Expr(1)).points == 4 + 5 + 6 + 7 * 3);
    CHECK(Nest{{Expr(5), a - Expr(2)}, {}}.sum(b).points == 3);
}

TEST_CASE("a loop whose iterations share what is done counts once, where it has any") {
    CHECK(Nest{{Expr(5), a - Expr(2)}, {}, 2}.sum(Expr(1)).points == 2);
    CHECK(Nest{{Expr(5), a + Expr(1)}, {{b < Expr(1), true}}, 2}.sum(Expr(1)).points == Approx(1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5));
}

// Expressions of the shapes that index arithmetic has, down to a given depth.
static Expr random_index(std::mt19937 &random, size_t loops, int depth) {
    const auto below = [&](uint32_t n) { return static_cast<int>(random() % n); };
    const auto operand = [&] { return random_index(random, loops, depth - 1); };
    if (depth == 0)
        return loops > 0 && below(3) ? variable(std::string(1, static_cast<char>('a' + below(static_cast<uint32_t>(loops)))))
                                     : Expr(below(20));
    switch (below(9)) {
    case 0: return operand() + operand();
    case 1: return operand() - operand();
    case 2: return operand() * Expr(below(6) - 1);
    case 3: return min(operand(), operand());
    case 4: return max(operand(), operand());
    case 5: return operand() / Expr(1 + below(7));
    case 6: return operand() % Expr(1 + below(7));
    case 7: return select(operand() < operand(), operand(), operand());
    default: return bounded(operand(), Expr(below(4)), Expr(4 + below(9)));
    }
}

static Expr random_condition(std::mt19937 &random, size_t loops) {
    const Expr l = random_index(random, loops, 2), r = random_index(random, loops, 1);
    switch (random() % 5) {
    case 0: return l < r;
    case 1: return l <= r;
    case 2: return l == r;
    case 3: return l != r;
    default: return l < r && Expr(1) < l;
    }
}

TEST_CASE("a sum is that of a walk: random loops and conditions") {
    std::mt19937 random(1);
    for (int i = 0; i < 3000; i++) {
        Nest nest;
        const size_t loops = 1 + random() % 4;
        for (size_t l = 0; l < loops; l++) nest.counts.push_back(min(random_index(random, l, 2), Expr(9)));
        for (uint32_t n = random() % 3; n > 0; n--) nest.conditions.push_back({random_condition(random, loops), random() % 3 != 0});
        const Expr e = random_index(random, loops, 2);
        if (random() % 4 == 0) nest.shares = random() % 16;
        const IterationSum sum = nest.sum(e), walked = nest.walked(e);
        std::string text;
        for (const Expr &count : nest.counts) text += to_string(count) + "; ";
        for (const auto &[condition, holds] : nest.conditions) text += (holds ? "" : "not ") + to_string(condition) + "; ";
        INFO(text << to_string(e) << " shares " << nest.shares);
        CHECK(sum.points == Approx(walked.points).epsilon(1e-12));
        CHECK(sum.value == Approx(walked.value).epsilon(1e-9).margin(1e-9));
    }
}

TEST_CASE("where there are too many evaluations some iterations stand for others") {
    // Three rows out of seven, in blocks whose columns depend on both.
    const Expr where = (a * Expr(3) + b) % Expr(7) < Expr(3);
    Nest nest{{Expr(400), Expr(300), min(Expr(16), Expr(2000) - a * Expr(3) - b * Expr(2))}, {{where, true}}};
    std::vector<SummedLoop> loops{
        {0, "a", nest.counts[0], 0, 400, false}, {1, "b", nest.counts[1], 0, 300, false}, {2, "c", nest.counts[2], 3, 15, false}};
    const IterationSum sum = iteration_sum({}, loops, {{where, false, 3}, {c < Expr(5) + a % Expr(2), false, 5}}, c);
    nest.conditions.push_back({c < Expr(5) + a % Expr(2), true});
    const IterationSum walked = nest.walked(c);
    CHECK(sum.points == Approx(walked.points).epsilon(0.01));
    CHECK(sum.value == Approx(walked.value).epsilon(0.01));
    // A million corners in one loop.
    const IterationSum corners = iteration_sum({}, {{0, "a", Expr(3000000), 0, 3e6, false}}, {{a % Expr(3) < Expr(1), false, 1}}, a);
    CHECK(corners.points == Approx(1e6).epsilon(0.01));
}

}  // namespace tessera::test_iteration_sum
