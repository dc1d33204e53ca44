// Random graphs of results, and the plans of costmodel/plan at some budgets, as JSON for residual_plans.py.
#include <cmath>
#include <cstdio>
#include <random>

#include "costmodel/plan/residual_plan.h"

using namespace tessera;

int main() {
    std::mt19937 random(1);
    std::printf("[");
    for (int number = 0; number < 50; number++) {
        ResidualGraph graph(10 + random() % 15);
        for (size_t v = 0; v < graph.size(); v++) {
            graph[v] = {"",   static_cast<double>(1 + random() % 1000), static_cast<double>(1 + random() % 1000), {}, random() % 3 != 0,
                        false};
            graph[v].is_kept = graph[v].is_read && random() % 12 == 0;
            for (int reads = 0; reads < 2 && v > 0; reads++)
                if (random() % 4 != 0) graph[v].reads.push_back(v - 1 - random() % std::min<size_t>(v, 4));
        }
        std::printf("%s{\"nodes\": [", number ? ",\n" : "");
        for (size_t v = 0; v < graph.size(); v++) {
            std::printf("%s[%g, %g, %d, %d, [", v ? ", " : "", graph[v].bytes, graph[v].seconds, graph[v].is_read, graph[v].is_kept);
            for (size_t i = 0; i < graph[v].reads.size(); i++) std::printf("%s%zu", i ? ", " : "", graph[v].reads[i]);
            std::printf("]]");
        }
        const double most = bytes_of(graph, cheapest_plan(graph, 0)), least = bytes_of(graph, cheapest_plan(graph, 1e9));
        std::printf("], \"plans\": [");
        for (int step = 0; step < 6; step++) {
            const auto budget = static_cast<int64_t>(least + (most - least) * step / 6);
            const ResidualPlan plan =
                plan_within(graph, budget, [&](const Kept &kept) { return static_cast<int64_t>(bytes_of(graph, kept)); });
            std::printf("%s[%lld, %g, %g]", step ? ", " : "", static_cast<long long>(budget), bytes_of(graph, plan.kept), plan.seconds);
        }
        std::printf("]}");
    }
    std::printf("]\n");
}
