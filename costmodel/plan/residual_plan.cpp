#include "costmodel/plan/residual_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "costmodel/plan/minimum_cut.h"
#include "support/text/error.h"

namespace tessera {

std::set<size_t> computed_again(const ResidualGraph &graph, const Kept &kept) {
    std::vector<bool> wanted(graph.size());
    std::set<size_t> again;
    for (size_t v = graph.size(); v-- > 0;) {
        if ((!graph[v].is_read && !wanted[v]) || kept.count(v)) continue;
        again.insert(v);
        for (const size_t u : graph[v].reads) {
            require(u < v, "nodes stand in an order in which they can be computed");
            wanted[u] = true;
        }
    }
    return again;
}

double seconds_of(const ResidualGraph &graph, const Kept &kept) {
    double seconds = 0;
    for (const size_t v : computed_again(graph, kept)) seconds += graph[v].is_kept ? INFINITY : graph[v].seconds;
    return seconds;
}

double bytes_of(const ResidualGraph &graph, const Kept &kept) {
    double bytes = 0;
    for (const size_t v : kept) bytes += graph[v].bytes;
    return bytes;
}

namespace {

enum class Decision : uint8_t { open, kept, again };
using Decisions = std::vector<Decision>;

struct Point {
    Kept kept;
    double bytes = 0, seconds = 0;
};

Kept cheapest(const ResidualGraph &graph, double price, const Decisions &decisions) {
    constexpr double never = std::numeric_limits<double>::max();
    FlowNetwork network(2 * graph.size());
    const size_t source = network.add_node(), sink = network.add_node();
    const auto wanted = [](size_t v) { return 2 * v; };
    const auto made = [](size_t v) { return 2 * v + 1; };
    for (size_t v = 0; v < graph.size(); v++) {
        const ResidualNode &node = graph[v];
        if (node.is_read) network.add_edge(source, wanted(v), INFINITY);
        network.add_edge(wanted(v), made(v), decisions[v] == Decision::again ? INFINITY : price * node.bytes);
        if (node.is_kept || decisions[v] == Decision::kept) {
            network.add_edge(made(v), sink, never);
            continue;
        }
        network.add_edge(made(v), sink, node.seconds);
        for (const size_t u : node.reads) network.add_edge(made(v), wanted(u), INFINITY);
    }
    const std::vector<bool> side = network.minimum_cut(source, sink);
    Kept kept;
    for (size_t v = 0; v < graph.size(); v++)
        if (side[wanted(v)] && !side[made(v)]) kept.insert(v);
    return kept;
}

// Seconds for a byte that are more than all that computing again takes.
double any_price(const ResidualGraph &graph) {
    double seconds = 0, least = INFINITY;
    for (const ResidualNode &v : graph) {
        seconds += v.seconds;
        if (v.bytes > 0) least = std::min(least, v.bytes);
    }
    return std::isfinite(least) ? 2 * (seconds + 1e-12) / least : 1;
}

// Branch and bound: decides one node after another, with bounds by prices.
class Fastest {
public:
    Fastest(const ResidualGraph &graph, double bytes, size_t most_cuts) : graph_(graph), most_bytes_(bytes), cuts_left_(most_cuts) {}

    std::optional<Kept> run() {
        Decisions decisions(graph_.size(), Decision::open);
        for (size_t v = 0; v < graph_.size(); v++)
            if (graph_[v].is_kept) decisions[v] = Decision::kept;
        decide(decisions);
        if (best_) return best_->kept;
        return std::nullopt;
    }

private:
    const ResidualGraph &graph_;
    const double most_bytes_;
    size_t cuts_left_;
    std::optional<Point> best_;

    Point point(double price, const Decisions &decisions) {
        if (cuts_left_ > 0) cuts_left_--;
        const Kept kept = cheapest(graph_, price, decisions);
        Point made{kept, bytes_of(graph_, kept), seconds_of(graph_, kept)};
        if (made.bytes <= most_bytes_ && (!best_ || made.seconds < best_->seconds)) best_ = made;
        return made;
    }

    void decide(Decisions &decisions) {
        Point small = point(any_price(graph_), decisions);
        if (small.bytes > most_bytes_) return;
        Point fast = point(0, decisions);
        if (fast.bytes <= most_bytes_) return;
        // The two neighbours of the budget among the plans of all prices.
        double price = 0;
        while (fast.bytes > small.bytes && small.seconds > fast.seconds) {
            price = (small.seconds - fast.seconds) / (fast.bytes - small.bytes);
            const Point middle = point(price, decisions);
            const double line = fast.seconds + price * fast.bytes;
            if (middle.seconds + price * middle.bytes >= line - 1e-12 * std::abs(line)) break;
            (middle.bytes <= most_bytes_ ? small : fast) = middle;
        }
        const double bound = small.seconds - price * (most_bytes_ - small.bytes);
        if (cuts_left_ == 0 || bound >= best_->seconds * (1 - 1e-12)) return;
        std::optional<size_t> next;
        for (const Kept *one : {&fast.kept, &small.kept})
            for (const size_t v : *one) {
                const bool is_in_both = fast.kept.count(v) && small.kept.count(v);
                if (decisions[v] == Decision::open && !is_in_both && (!next || graph_[v].bytes > graph_[*next].bytes)) next = v;
            }
        if (!next) return;
        for (const Decision d : {Decision::kept, Decision::again}) {
            decisions[*next] = d;
            decide(decisions);
        }
        decisions[*next] = Decision::open;
    }
};

}  // namespace

Kept cheapest_plan(const ResidualGraph &graph, double price) { return cheapest(graph, price, Decisions(graph.size(), Decision::open)); }

std::optional<Kept> fastest_plan(const ResidualGraph &graph, double bytes, size_t most_cuts) {
    return Fastest(graph, bytes, most_cuts).run();
}

ResidualPlan plan_within(const ResidualGraph &graph, int64_t budget, const std::function<int64_t(const Kept &)> &peak_of,
                         size_t most_asked) {
    ResidualPlan best;
    std::map<Kept, int64_t> peaks;
    // Asks once for each plan, and keeps the better of two: one that fits, then the faster, or the smaller where none fits.
    const auto ask = [&](const Kept &kept) {
        const auto [peak, is_new] = peaks.try_emplace(kept);
        if (!is_new) return peak->second;
        peak->second = peak_of(kept);
        const ResidualPlan plan{kept, seconds_of(graph, kept), peak->second, 0, peak->second <= budget};
        const bool is_better =
            peaks.size() == 1 || (plan.fits ? !best.fits || plan.seconds < best.seconds : !best.fits && plan.peak < best.peak);
        if (is_better) best = plan;
        return peak->second;
    };
    const Kept all = cheapest_plan(graph, 0);
    if (ask(all) > budget) {
        // Sums of bytes: `low` is known to fit, where anything does, and `high` is known not to.
        const Kept least = cheapest_plan(graph, any_price(graph));
        double low = bytes_of(graph, least), high = bytes_of(graph, all);
        const double rest = static_cast<double>(ask(least)) - low;  // what the program needs beside
        double wished = static_cast<double>(budget) - rest;
        while (peaks.size() < most_asked && high - low >= 1) {
            const double sum = low < wished && wished < high ? wished : std::floor((low + high) / 2);
            const std::optional<Kept> plan = fastest_plan(graph, sum);
            require(plan.has_value(), "what is within fewer bytes is within these");
            const bool is_within = ask(*plan) <= budget;
            // All sums from the plan's own to this one give this plan.
            if (is_within) low = std::max(sum, low + 1);
            else high = std::min(bytes_of(graph, *plan), high - 1);
            wished = -1;
        }
    }
    best.asked = peaks.size();
    return best;
}

}  // namespace tessera
