// Parts of a graph as algorithms of their own, which the program calls: an anchor, which folds, with the element-wise nodes behind it.
// Equal parts are one callee, of any extents: a schedule of it serves all its calls, and code is emitted once.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

// What is known of a node once the graph was imported without outlining.
struct NodeFacts {
    bool folds = false;                      // its handler made a stage that folds
    bool is_plain = false;                   // it made no stage: an expression
    std::vector<std::vector<Expr>> extents;  // of its outputs
};

// Nodes that become one callee, in the order of the graph. Only the last one's first output is used outside.
struct Part {
    std::vector<const Node *> nodes;
};

// Parts that do not overlap. A graph's outputs are used outside.
std::vector<Part> parts_of(const Graph &graph, const std::map<const Node *, NodeFacts> &facts);

// A callee, and how a part calls it.
struct Callee {
    std::shared_ptr<const Algorithm> algorithm;
    Value result;                              // in the callee's dims
    std::vector<std::string> inputs;           // the graph's names of tensors, in the order of the callee's inputs; "" for weights
    std::vector<Weight> weights;               // in the order of the callee's inputs that are weights
    std::vector<std::string> tensors;          // the callee's inputs in their order
    std::map<std::string, double> parameters;  // numbers that differ from call to call
    Space::Meaning meaning;
};

// The part as an algorithm. `value` gives what a name stands for in the caller. Nothing where the part cannot be one: a node that is
// refused, or a value that follows from the caller's extents.
std::optional<Callee> callee_of(const Part &part, const Space &caller, const Model &model, const std::map<std::string, Value> &values);

}  // namespace tessera::onnx
