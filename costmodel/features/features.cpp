#include "costmodel/features/features.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tessera {

namespace {

struct Seen {
    const Profile &p;
    const Work &work;
    const Target &target;
    Rates rates;
    int threads;
    double draft, bound;
};

struct Row {
    Feature feature;
    std::function<double(const Seen &)> value;
};

double log_of(double n) { return std::log2(1 + std::max(n, 0.0)); }
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double floats(const Profile &p) { return p.fma + p.arithmetic + p.slow + p.grouped; }
double moves(const Profile &p) { return p.loads + p.broadcasts + p.gathers + p.stores + p.scatters; }

const std::vector<Row> &rows() {
    static const std::vector<Row> all = {
        {{"draft", "log2 s", "seconds that the roofline of the program predicts, over those that bound the algorithm"},
         [](const Seen &s) { return std::log2(s.draft / s.bound); }},
        {{"bound", "log2 ns", "seconds below which no schedule of the algorithm can go"},
         [](const Seen &s) { return log_of(s.bound * 1e9); }},
        {{"intensity", "log2 operations/byte", "operations of the algorithm for each byte of its arguments"},
         [](const Seen &s) { return log_of(share(s.work.operations.value_or(0), s.work.bytes)); }},
        {{"argument_bytes", "log2 bytes", "bytes of arguments"}, [](const Seen &s) { return log_of(s.p.argument_bytes); }},
        {{"floats", "log2 instructions", "float instructions"}, [](const Seen &s) { return log_of(floats(s.p)); }},
        {{"fma", "ratio", "multiply-adds among float instructions"}, [](const Seen &s) { return share(s.p.fma, floats(s.p)); }},
        {{"slow", "ratio", "divisions and square roots among float instructions"},
         [](const Seen &s) { return share(s.p.slow, floats(s.p)); }},
        {{"grouped", "ratio", "instructions of a family's groups among float instructions"},
         [](const Seen &s) { return share(s.p.grouped, floats(s.p)); }},
        {{"recomputed", "log2 ratio", "float operations over those that the algorithm needs"},
         [](const Seen &s) {
             return std::log2((1 + (2 * s.p.fma + s.p.arithmetic + s.p.slow) * s.target.vector_bytes / 4) /
                              (1 + s.work.operations.value_or(0)));
         }},
        {{"integer", "ratio", "integer operations for each float instruction"},
         [](const Seen &s) { return share(s.p.integer, floats(s.p)); }},
        {{"scalar", "ratio", "instructions that work on one element, among all"},
         [](const Seen &s) { return share(s.p.scalar, floats(s.p) + s.p.integer + moves(s.p)); }},
        {{"loads", "ratio", "vector loads for each float instruction"}, [](const Seen &s) { return share(s.p.loads, floats(s.p)); }},
        {{"broadcasts", "ratio", "loads of one element for each float instruction"},
         [](const Seen &s) { return share(s.p.broadcasts, floats(s.p)); }},
        {{"gathers", "ratio", "gathers for each float instruction"}, [](const Seen &s) { return share(s.p.gathers, floats(s.p)); }},
        {{"stores", "ratio", "vector stores for each float instruction"}, [](const Seen &s) { return share(s.p.stores, floats(s.p)); }},
        {{"scatters", "ratio", "scatters for each float instruction"}, [](const Seen &s) { return share(s.p.scatters, floats(s.p)); }},
        {{"masked", "ratio", "masked loads and stores among all"}, [](const Seen &s) { return share(s.p.masked, moves(s.p)); }},
        {{"core", "log2 ratio", "issue slots of the core over the algorithm's bound"},
         [](const Seen &s) { return std::log2((1 + s.p.core_time) / (1 + s.bound * s.rates.fma)); }},
        {{"chained", "ratio", "issue slots that wait for an earlier result, among all"},
         [](const Seen &s) { return share(s.p.chained, s.p.core_time); }},
        {{"accumulators", "vectors", "independent sums of the hottest loop"}, [](const Seen &s) { return s.p.accumulators; }},
        {{"registers", "ratio", "those sums over the target's vector registers"},
         [](const Seen &s) { return s.p.accumulators / s.target.vector_registers; }},
        {{"loads_per_fma", "ratio", "loads for each multiply-add of the hottest loop"}, [](const Seen &s) { return s.p.loads_per_fma; }},
        {{"live", "ratio", "vectors that the hottest loop needs at one time over the target's vector registers"},
         [](const Seen &s) { return s.p.live / s.target.vector_registers; }},
        {{"in_turn", "multiply-adds", "to one of those sums in one iteration"}, [](const Seen &s) { return s.p.in_turn; }},
        {{"inner_loads", "vectors", "loaded in one iteration of the hottest loop and used several times"},
         [](const Seen &s) { return s.p.inner_loads; }},
        {{"inner_rows", "log2 rows", "that lie apart in memory and are touched in one iteration of the hottest loop"},
         [](const Seen &s) { return log_of(s.p.inner_rows); }},
        {{"inner_trips", "log2 iterations", "iterations of the hottest loop"}, [](const Seen &s) { return log_of(s.p.inner_trips); }},
        {{"inner_bytes", "log2 bytes", "bytes that one iteration of the hottest loop touches"},
         [](const Seen &s) { return log_of(s.p.inner_bytes); }},
        {{"iterations", "ratio", "loop iterations for each float instruction"},
         [](const Seen &s) { return share(s.p.iterations, floats(s.p)); }},
        {{"guards", "ratio", "conditions tested for each float instruction"}, [](const Seen &s) { return share(s.p.guards, floats(s.p)); }},
        {{"partial", "ratio", "points stored under a condition for each float instruction"},
         [](const Seen &s) { return share(s.p.partial, floats(s.p)); }},
        {{"beyond_l1", "log2 ratio", "time for what the second level brings, over the bound"},
         [](const Seen &s) { return log_of(s.p.traffic[0] / s.rates.read[0] / s.bound); }},
        {{"beyond_l2", "log2 ratio", "time for what the third level brings, over the bound"},
         [](const Seen &s) { return log_of(s.p.traffic[1] / s.rates.read[1] / s.bound); }},
        {{"beyond_l3", "log2 ratio", "time for what memory brings, over the bound"},
         [](const Seen &s) { return log_of(s.p.traffic[2] / s.rates.read[2] / s.bound); }},
        {{"translations", "log2 ratio", "issue slots for addresses of pages that were not in use, over the bound"},
         [](const Seen &s) { return log_of(s.p.translations / (s.bound * s.rates.fma)); }},
        {{"copied", "log2 ratio", "elements copied by packs for each float instruction"},
         [](const Seen &s) { return log_of(16 * share(s.p.copied, floats(s.p))); }},
        {{"statements", "log2 stores", "stores after unrolling: the size of the code"},
         [](const Seen &s) { return log_of(s.p.statements); }},
        {{"stack_bytes", "log2 bytes", "registers and stack"}, [](const Seen &s) { return log_of(s.p.stack_bytes); }},
        {{"workspace_bytes", "log2 bytes", "scratch memory of the caller's"}, [](const Seen &s) { return log_of(s.p.workspace_bytes); }},
        {{"workspace_l2", "log2 ratio", "scratch memory over the second level"},
         [](const Seen &s) { return log_of(s.p.workspace_bytes / static_cast<double>(s.target.l2_bytes)); }},
        {{"parallel", "log2 iterations", "iterations of the parallel loop"}, [](const Seen &s) { return log_of(s.p.parallel); }},
        {{"imbalance", "ratio", "the busiest thread's share over the mean one's"}, [](const Seen &s) { return s.p.imbalance; }},
        {{"threads", "threads", "that the kernel runs on"}, [](const Seen &s) { return s.threads; }},
        {{"lanes", "elements", "f32 elements of a vector register"}, [](const Seen &s) { return s.target.vector_bytes / 4; }},
    };
    return all;
}

}  // namespace

const std::vector<Feature> &feature_table() {
    static const std::vector<Feature> table = [] {
        std::vector<Feature> all;
        for (const Row &row : rows()) all.push_back(row.feature);
        return all;
    }();
    return table;
}

bool is_possible(const Featured &featured) { return featured.draft >= featured.own_bound; }

Featured features_of(const Profile &profile, const Work &work, const Target &target, int threads) {
    const Rates rates = rates_of(target);
    Featured all;
    all.draft = predicted_seconds(profile, rates, threads);
    all.bound = bound_seconds(work, target, threads);
    all.own_bound = bound_seconds(work_left(profile, target), target, threads);
    const Seen seen{profile, work, target, rates, threads, all.draft, all.bound};
    for (const Row &row : rows()) all.values.push_back(static_cast<float>(row.value(seen)));
    return all;
}

}  // namespace tessera
