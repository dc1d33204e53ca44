// The nodes of a function or of a graph within one, as they are made.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/import/onnx/model.h"

namespace tessera::onnx {

using Attributes = std::map<std::string, Attribute>;
Attribute integer_attribute(const std::string &name, int64_t value);
Attribute integers_attribute(const std::string &name, const std::vector<int64_t> &values);
Attribute text_attribute(const std::string &name, const std::string &value);
Attribute tensor_attribute(const std::string &name, const TensorData &tensor);
Attribute graph_attribute(const std::string &name, Graph graph);
// Those of one node, by their names.
Attributes attributes(const std::vector<Attribute> &all);

// What the functions of one model share: the bytes that tensors point into, and the opset that its nodes need.
struct ModelParts {
    std::deque<std::string> bytes;
    int64_t opset = 21;

    void needs_opset(int64_t version) { opset = std::max(opset, version); }
};

// Names of values, each of which is made once in a function, graphs within it included.
class ValueNames {
public:
    // `wanted`, or the first of wanted_1, wanted_2, … that is free.
    std::string fresh(const std::string &wanted);

private:
    std::set<std::string> taken_;
    std::map<std::string, int64_t> counts_;
};

// Nodes in the order of their use. A node that is like one before it, here or in a body around this one, is that one.
class Body {
public:
    Body(ModelParts &parts, ValueNames &names, const Body *outer = nullptr) : parts(parts), names(names), outer_(outer) {}

    ModelParts &parts;
    ValueNames &names;
    std::vector<Node> nodes;
    std::string topic = "v";  // what values that are made now are named after

    std::string one(const std::string &op, const std::vector<std::string> &inputs, const Attributes &attributes = {});
    // As many results as `outputs` says; nodes with graphs are never shared.
    std::vector<std::string> several(const std::string &op, const std::vector<std::string> &inputs, const Attributes &attributes,
                                     size_t outputs, const std::string &domain = "");

    std::string number(const Scalar &value);                   // without axes
    std::string integer(int64_t value);                        // i64, without axes
    std::string integers(const std::vector<int64_t> &values);  // i64, one axis
    std::string table(DType type, const std::vector<int64_t> &extents, const std::string &bytes);

private:
    const Body *outer_;
    std::map<std::string, std::vector<std::string>> made_;  // by what makes them

    const std::vector<std::string> *find(const std::string &key) const;
};

// ONNX's number of a type; positions are int64. 0 where ONNX lacks it.
int32_t onnx_type(DType type);

// What an inner graph says of an input or output: its type and how many axes it has. Their extents are those of what it is given.
ValueInfo inner_value(const std::string &name, DType type, size_t rank);

inline bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// A name as ONNX's checkers take it: letters, digits and '_'.
std::string identifier(const std::string &name);

}  // namespace tessera::onnx
