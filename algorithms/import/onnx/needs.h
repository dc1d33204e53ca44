// What a node must have before its operator is built: how many inputs, and of what rank at least.
#pragma once
#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

// UserErrors onnx.input (a required input is left out), onnx.rank (an input has too few axes). By ONNX's operator schemas.
void check_needs(const Context &c);

}  // namespace tessera::onnx
