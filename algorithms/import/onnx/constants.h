// What is known when a model is imported: nodes of constants, and integers that follow from extents.
#pragma once
#include <optional>
#include <vector>

#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

// The node of constants, computed by the reference interpreter. Nothing where the operator draws numbers or takes graphs.
std::optional<std::vector<Value>> folded_node(const Operator &op, const Node &node, const std::vector<Value> &inputs, const Model &model);

// A constant of a few integers or truths, as shapes have them, as known ones, so that what they meet becomes known too; any other value as
// it is.
Value as_known(const Value &value);

// A result that is made of known integers alone becomes known itself, element by element.
bool become_known(Space &space, Context &c, Value &r);

}  // namespace tessera::onnx
