// Arrays as files keep them: safetensors' names of types.
#pragma once
#include <optional>
#include <string>

#include "algorithms/evaluate/array.h"
#include "support/files/safetensors.h"

namespace tessera {

// "F32", "I8", "F8_E4M3"; nothing for a type that the format does not have.
std::optional<std::string> safetensors_type(DType type);
std::optional<DType> dtype_of_safetensors(const std::string &type);
// The array's bytes under this name; the array outlives it. UserError safetensors.type for a type that the format does not have.
SafeTensor safe_tensor(const std::string &name, const Array &array);
// UserError safetensors.type.
Array array_of(const SafeTensor &tensor);

}  // namespace tessera
