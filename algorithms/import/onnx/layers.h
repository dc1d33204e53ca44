// Equal layers behind each other as one that a `repeat` calls (algorithms/transform/roll).
#pragma once
#include "algorithms/import/onnx/imported.h"

namespace tessera::onnx {

// The program with chains of equal steps rolled, and the weights of each chain one behind another.
Imported with_layers(Imported made);

}  // namespace tessera::onnx
