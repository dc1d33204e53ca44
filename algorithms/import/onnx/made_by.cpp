#include "algorithms/import/onnx/made_by.h"

#include <algorithm>

#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

Attribute attribute(const std::string &name, int64_t value) {
    Attribute a;
    a.name = name, a.type = 2, a.integer = value;
    return a;
}

Attribute attribute(const std::string &name, double value) {
    Attribute a;
    a.name = name, a.type = 1, a.real = static_cast<float>(value);
    return a;
}

static bool is_there(const Value &v) { return v.is_constant() || v.is_known() || !v.name.empty() || !v.axes.empty(); }

Values made_by(Context &c, const std::string &op, const Values &inputs, const std::vector<Attribute> &attributes, size_t outputs) {
    Node node;
    node.op = op, node.name = c.node.name;
    for (const Attribute &a : attributes) node.attributes[a.name] = a;
    for (size_t i = 0; i < inputs.size(); i++) node.inputs.push_back(is_there(inputs[i]) ? "in_" + std::to_string(i) : "");
    for (size_t i = 0; i < outputs; i++) node.outputs.push_back(c.node.outputs.at(0) + "_" + std::to_string(i));
    Context own(c.space, node, inputs, std::max<int64_t>(c.model.opset(""), 17), c.model, c.runner);
    return find_operator("", op)->handler(own);
}

Value given(Context &c, size_t i) { return c.has(i) ? c.in(i) : Value(); }

Value sum_of(Context &c, const Value &a, const Value &b) { return made_by(c, "Add", {a, b})[0]; }

}  // namespace tessera::onnx
