// Plans of residuals against all plans that there are, and cuts against all cuts.
#include "costmodel/plan/residual_plan.h"

#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "costmodel/plan/minimum_cut.h"

namespace tessera::test_residual_plan {

namespace {

ResidualGraph random_graph(uint32_t seed) {
    std::mt19937 random(seed);
    ResidualGraph graph(6 + random() % 9);
    for (size_t v = 0; v < graph.size(); v++) {
        graph[v] = {
            "v" + std::to_string(v), static_cast<double>(random() % 100), static_cast<double>(1 + random() % 100), {}, false, false};
        graph[v].is_read = random() % 3 != 0 || v + 1 == graph.size();
        graph[v].is_kept = random() % 12 == 0;
        for (int reads = 0; reads < 2 && v > 0; reads++)
            if (random() % 4 != 0) graph[v].reads.push_back(random() % v);
    }
    return graph;
}

struct Everything {
    std::vector<std::pair<double, double>> plans;  // bytes and seconds

    explicit Everything(const ResidualGraph &graph) {
        for (size_t mask = 0; mask < size_t{1} << graph.size(); mask++) {
            Kept kept;
            for (size_t v = 0; v < graph.size(); v++)
                if (mask >> v & 1) kept.insert(v);
            if (const double seconds = seconds_of(graph, kept); std::isfinite(seconds)) plans.emplace_back(bytes_of(graph, kept), seconds);
        }
    }
    double least_seconds(double bytes) const {
        double least = INFINITY;
        for (const auto &[b, s] : plans)
            if (b <= bytes) least = std::min(least, s);
        return least;
    }
    double least_bytes() const {
        double least = INFINITY;
        for (const auto &[b, s] : plans) least = std::min(least, b);
        return least;
    }
};

}  // namespace

TEST_CASE("what is computed again is what is read and not kept, with all that it needs") {
    // a -> b -> c, of which the backward pass reads b and c
    const ResidualGraph graph = {{"a", 8, 1, {}, false}, {"b", 8, 2, {0}, true}, {"c", 8, 4, {1}, true}, {"d", 8, 8, {2}, false}};
    CHECK(computed_again(graph, {}) == std::set<size_t>{0, 1, 2});
    CHECK(computed_again(graph, {1}) == std::set<size_t>{2});
    CHECK(computed_again(graph, {2}) == std::set<size_t>{0, 1});
    CHECK(seconds_of(graph, {0}) == 6);
    CHECK(bytes_of(graph, {1, 2}) == 16);
    CHECK(cheapest_plan(graph, 0) == Kept{1, 2});
    CHECK(cheapest_plan(graph, 0.3) == Kept{1, 2});
    CHECK(cheapest_plan(graph, 0.4) == Kept{2});  // 3 seconds for a and b, and no 8 bytes for b
    CHECK(cheapest_plan(graph, 100).empty());
    ResidualGraph kept = graph;
    kept[0].is_kept = true;
    CHECK(cheapest_plan(kept, 100) == Kept{1});  // in place of a
    CHECK(std::isinf(seconds_of(kept, {})));
}

TEST_CASE("a minimum cut is one of all cuts") {
    std::mt19937 random(3);
    for (int graph = 0; graph < 50; graph++) {
        const size_t nodes = 2 + random() % 8;
        std::vector<std::tuple<size_t, size_t, double>> edges;
        FlowNetwork network(nodes);
        for (size_t i = 0; i < 3 * nodes; i++) {
            const size_t from = random() % nodes, to = random() % nodes;
            if (from == to) continue;
            edges.emplace_back(from, to, random() % 20);
            network.add_edge(from, to, std::get<2>(edges.back()));
        }
        const auto cost = [&](size_t mask) {
            double sum = 0;
            for (const auto &[from, to, capacity] : edges)
                if ((mask >> from & 1) && !(mask >> to & 1)) sum += capacity;
            return sum;
        };
        double least = INFINITY;
        for (size_t mask = 0; mask < size_t{1} << nodes; mask++)
            if ((mask & 1) && !(mask >> 1 & 1)) least = std::min(least, cost(mask));
        const std::vector<bool> side = network.minimum_cut(0, 1);
        size_t mask = 0;
        for (size_t v = 0; v < nodes; v++) mask |= size_t{side[v]} << v;
        CHECK(side[0]);
        CHECK(!side[1]);
        CHECK(cost(mask) == least);
    }
}

TEST_CASE("plans of 50 random graphs are the fastest of all within each budget") {
    for (uint32_t seed = 0; seed < 50; seed++) {
        INFO("seed " << seed);
        const ResidualGraph graph = random_graph(seed);
        const Everything everything(graph);
        const double least = everything.least_bytes(), most = bytes_of(graph, cheapest_plan(graph, 0));
        const auto sum = [&](const Kept &kept) { return static_cast<int64_t>(bytes_of(graph, kept)); };
        for (const double price : {0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 20.0}) {  // a cut is the best with as many bytes as it takes
            const Kept kept = cheapest_plan(graph, price);
            CHECK(seconds_of(graph, kept) == Approx(everything.least_seconds(bytes_of(graph, kept))));
        }
        for (int step = 0; step <= 8; step++) {
            const auto budget = static_cast<int64_t>(least + (most - least) * step / 8);
            const std::optional<Kept> fastest = fastest_plan(graph, static_cast<double>(budget));
            REQUIRE(fastest);
            CHECK(bytes_of(graph, *fastest) <= static_cast<double>(budget));
            CHECK(seconds_of(graph, *fastest) == Approx(everything.least_seconds(static_cast<double>(budget))));
            const ResidualPlan plan = plan_within(graph, budget, sum);
            CHECK(plan.fits);
            CHECK(plan.peak <= budget);
            CHECK(plan.seconds == Approx(everything.least_seconds(static_cast<double>(budget))));
        }
        if (least == 0) continue;
        CHECK(!fastest_plan(graph, least - 1));
        const ResidualPlan none = plan_within(graph, static_cast<int64_t>(least) - 1, sum);
        CHECK(!none.fits);
        CHECK(none.peak == static_cast<int64_t>(least));
    }
}

TEST_CASE("a plan fits where its peak does, whatever the bytes that it keeps") {
    for (uint32_t seed = 0; seed < 50; seed++) {
        INFO("seed " << seed);
        const ResidualGraph graph = random_graph(seed);
        // Beside what is kept a program needs room for its largest copy, and some bytes in any case.
        const auto peak = [&](const Kept &kept) {
            double room = 0;
            for (const size_t v : computed_again(graph, kept)) room = std::max(room, graph[v].bytes);
            return static_cast<int64_t>(bytes_of(graph, kept) + room + 1000);
        };
        std::mt19937 random(seed);
        int64_t least = INT64_MAX;
        for (size_t mask = 0; mask < size_t{1} << graph.size(); mask++) {
            Kept kept;
            for (size_t v = 0; v < graph.size(); v++)
                if (mask >> v & 1) kept.insert(v);
            if (std::isfinite(seconds_of(graph, kept))) least = std::min(least, peak(kept));
        }
        for (int i = 0; i < 6; i++) {
            const int64_t budget = 1000 + static_cast<int64_t>(random() % 600);
            size_t asked = 0;
            const ResidualPlan plan = plan_within(
                graph, budget, [&](const Kept &kept) { return asked++, peak(kept); }, 12);
            CHECK(asked <= 12);
            CHECK(plan.asked == asked);
            CHECK(plan.peak == peak(plan.kept));
            CHECK(plan.fits == (plan.peak <= budget));
            if (budget >= peak(cheapest_plan(graph, 0))) CHECK(plan.seconds == seconds_of(graph, cheapest_plan(graph, 0)));
            if (least > budget) CHECK(!plan.fits);
        }
    }
}

}  // namespace tessera::test_residual_plan
