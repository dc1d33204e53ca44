#include "costmodel/plan/minimum_cut.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "support/text/error.h"

namespace tessera {

namespace {
constexpr size_t unreached = SIZE_MAX;
}

size_t FlowNetwork::add_node() {
    out_.emplace_back();
    return out_.size() - 1;
}

void FlowNetwork::add_edge(size_t from, size_t to, double capacity) {
    require(capacity >= 0 && from != to, "an edge has a capacity and two ends");
    out_[from].push_back({to, capacity, out_[to].size()});
    out_[to].push_back({from, 0, out_[from].size() - 1});
}

// Numbers of edges from the source, by edges that have capacity left.
bool FlowNetwork::find_levels(size_t source, size_t sink) {
    level_.assign(out_.size(), unreached);
    level_[source] = 0;
    std::deque<size_t> open = {source};
    while (!open.empty()) {
        const size_t node = open.front();
        open.pop_front();
        for (const Edge &e : out_[node])
            if (e.left > 0 && level_[e.to] == unreached) level_[e.to] = level_[node] + 1, open.push_back(e.to);
    }
    return level_[sink] != unreached;
}

double FlowNetwork::push(size_t node, size_t sink, double most) {
    if (node == sink) return most;
    for (size_t &i = next_[node]; i < out_[node].size(); i++) {
        Edge &e = out_[node][i];
        if (e.left <= 0 || level_[e.to] != level_[node] + 1) continue;
        const double pushed = push(e.to, sink, std::min(most, e.left));
        if (pushed <= 0) continue;
        require(std::isfinite(pushed), "a path from source to sink has an edge of finite capacity");
        e.left -= pushed;  // exactly 0 for the edge that limits the path
        out_[e.to][e.reverse].left += pushed;
        return pushed;
    }
    return 0;
}

std::vector<bool> FlowNetwork::minimum_cut(size_t source, size_t sink) {
    while (find_levels(source, sink)) {
        next_.assign(out_.size(), 0);
        while (push(source, sink, INFINITY) > 0) {}
    }
    std::vector<bool> side;
    for (size_t level : level_) side.push_back(level != unreached);
    return side;
}

}  // namespace tessera
