// Which results of a forward pass are kept for the backward pass, and which are computed again: the least time within a budget of memory.
//
// Each result is kept, or computed again once, from what it reads, which is kept or computed again in turn. For a price of a byte the
// cheapest plan is a minimum cut. Of a result v that the backward pass reads, the network has
//
//     source ──∞──► wanted(v) ──price · bytes(v)──► made(v) ──seconds(v)──► sink          made(v) ──∞──► wanted(u) for each u that v reads
//
// so the cut pays for keeping v, or for making it and wanting what it reads. The price that a budget has lies between those of two such
// plans, one of which takes too much and one of which is slower than it needs to be. What the cheaper plan costs at that price, without
// what the whole budget costs, bounds the seconds of all plans within the budget from below (Lagrange); so a search that decides one
// result after another, those first in which the two plans differ, ends with the best plan, mostly after a few cuts.
//
// Whether a plan fits is not asked of a sum of bytes but of who knows: the memory plan of the program that the plan makes. The sum that
// fits is bisected.
//
// Sources: Griewank, Walther, "Evaluating Derivatives", 2008, 12; Jain et al., "Checkmate", MLSys 2020 (a result may be made several
// times there); minimum cuts for the choice of residuals are PyTorch's (min_cut_rematerialization_partition).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tessera {

// A result of the forward pass.
struct ResidualNode {
    std::string name;
    double bytes = 0;           // that keeping it takes, all rounds together
    double seconds = 0;         // that computing it again takes, all rounds together
    std::vector<size_t> reads;  // of earlier nodes
    bool is_read = false;       // the backward pass reads it
    bool is_kept = false;       // it cannot be computed again
};
using ResidualGraph = std::vector<ResidualNode>;  // in an order in which they can be computed

using Kept = std::set<size_t>;  // nodes

// The nodes that are computed again where these are kept. What is neither read nor needed for that is not among them.
std::set<size_t> computed_again(const ResidualGraph &graph, const Kept &kept);
double seconds_of(const ResidualGraph &graph, const Kept &kept);  // of what is computed again; INFINITY where it cannot be
double bytes_of(const ResidualGraph &graph, const Kept &kept);

// The cheapest plan where a byte costs `price` seconds, at least 0. What nothing reads is not kept.
Kept cheapest_plan(const ResidualGraph &graph, double price);
// The fastest plan that keeps at most so many bytes; nothing where there is none. After `most_cuts` minimum cuts it is the fastest that was
// found until then; 1,000 are enough for what 24 results leave open.
std::optional<Kept> fastest_plan(const ResidualGraph &graph, double bytes, size_t most_cuts = 4000);

struct ResidualPlan {
    Kept kept;
    double seconds = 0;  // of what is computed again
    int64_t peak = 0;    // bytes, as they were asked
    size_t asked = 0;    // how many plans the peak was asked of
    bool fits = false;   // where it does not, this is the plan with the least peak that was found
};

// The fastest plan that is found whose peak is at most `budget` bytes. `peak_of` is asked at most `most_asked` times, once for each plan.
ResidualPlan plan_within(const ResidualGraph &graph, int64_t budget, const std::function<int64_t(const Kept &)> &peak_of,
                         size_t most_asked = 24);

}  // namespace tessera
