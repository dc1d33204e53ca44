// An algorithm as an ONNX model, which any runtime can run: each algorithm of a program is a function of the domain `tessera`, made of
// ONNX's own operators, and says in its metadata what it was made of. The importer recognises it by that
// (algorithms/import/onnx/exported.h).
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera::onnx {

// The bytes of the model's file. Its graph calls the algorithm's function. Inputs are the algorithm's inputs and states, its parameters (as
// tensors without axes), and the extents of dims that no tensor has; results are its outputs, then what its states have become.
//
// What has no form in ONNX is refused at once: UserError onnx.refused lists stages, what it is of them, and what to do.
std::string export_model(const Algorithm &algorithm);

}  // namespace tessera::onnx
