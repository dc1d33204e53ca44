// Blocks of GGUF's quantised types (https://github.com/ggml-org/ggml, ggml-common.h and ggml-quants.c): neighbours along the last axis with
// codes and scales between each other.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/files/gguf.h"

namespace tessera {

// Codes of a tensor without their scales, and the scales: one for each block. As bytes of these types of safetensors.
struct CodesAndScales {
    std::string codes_type, scales_type;
    int64_t codes_in_a_byte = 1;  // of two, the first is in the low half
    int64_t block = 0;            // codes that share a scale
    std::string codes, scales;
};

// Q8_0: i8, a number is scale * code, scales f16. Q4_0: codes of 4 bits, scale * (code - 8), scales f16. MXFP4: codes of f4e2m1fn, scales
// of f8e8m0fnu. Nothing for other types.
std::optional<CodesAndScales> codes_and_scales(const GgufTensor &tensor);

// Whether `numbers_of` knows the type.
bool has_known_numbers(const GgufType &type);
std::vector<std::string> types_with_known_numbers();
// The numbers of a tensor of a quantised type, row-major, in f32, computed as ggml does. InternalError for a type that is not known.
std::vector<float> numbers_of(const GgufTensor &tensor);

}  // namespace tessera
