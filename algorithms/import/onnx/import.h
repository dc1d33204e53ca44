// An ONNX model as an algorithm: the program, and the constants that it takes as inputs.
#pragma once
#include "algorithms/import/onnx/imported.h"

namespace tessera::onnx {

// All that is refused is refused at once: UserError onnx.refused lists the nodes, why, and what to do. UserErrors onnx.shape and onnx.bind
// for options that name nothing; those of model.h.
Imported import_model(const Model &model, const ImportOptions &options);

}  // namespace tessera::onnx
