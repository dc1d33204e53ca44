// The minimum cut between two nodes of a directed graph whose edges have capacities (Dinic's algorithm, 1970).
#pragma once
#include <cstddef>
#include <vector>

namespace tessera {

class FlowNetwork {
public:
    explicit FlowNetwork(size_t nodes) : out_(nodes) {}

    size_t add_node();
    // `capacity` is at least 0; INFINITY for an edge that no cut has.
    void add_edge(size_t from, size_t to, double capacity);

    // Which nodes stand on the source's side of a cut whose edges have the least capacity together: of all such cuts the one with the
    // fewest nodes there. A network is cut once. Every path from source to sink has an edge of finite capacity.
    std::vector<bool> minimum_cut(size_t source, size_t sink);

private:
    struct Edge {
        size_t to;
        double left;     // capacity that no flow takes
        size_t reverse;  // of the edges out of `to`
    };
    std::vector<std::vector<Edge>> out_;
    std::vector<size_t> level_, next_;

    bool find_levels(size_t source, size_t sink);
    double push(size_t node, size_t sink, double most);
};

}  // namespace tessera
