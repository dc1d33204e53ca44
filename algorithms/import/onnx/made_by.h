// Values that ONNX's own operators make within the handler of another, of what it is made of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

using Values = std::vector<Value>;

Attribute attribute(const std::string &name, int64_t value);
Attribute attribute(const std::string &name, double value);

// What ONNX's own operator makes of these values; one without a name, axes and elements is left out.
Values made_by(Context &c, const std::string &op, const Values &inputs, const std::vector<Attribute> &attributes = {}, size_t outputs = 1);

// Input i, or a value that is left out.
Value given(Context &c, size_t i);
Value sum_of(Context &c, const Value &a, const Value &b);

}  // namespace tessera::onnx
