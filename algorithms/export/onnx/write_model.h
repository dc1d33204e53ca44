// A model as the bytes of its file: the inverse of read_model (algorithms/import/onnx/model.h).
#pragma once
#include <string>

#include "algorithms/import/onnx/model.h"

namespace tessera::onnx {

// Equal models are equal bytes, and reading them gives the model again. UserError onnx.too-large: over 2 GiB, which no reader of Protocol
// Buffers takes.
std::string write_model(const Model &model);

// A file of one tensor (TensorProto), as test data are.
std::string write_tensor(const TensorData &tensor);

}  // namespace tessera::onnx
