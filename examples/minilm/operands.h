// The operands of the generated functions by their names, made of the model's weights: joined, stacked, transposed, rounded.
#pragma once
#include <tessera.h>

#include <string>
#include <vector>

#include "support/files/safetensors.h"

struct Operand {
    std::vector<int64_t> extents;
    std::vector<char> bytes;  // row-major
};

// That of sentence_embedding (generator.cpp) with `layers` layers. In bf16, values are rounded to nearest; in i8 they are a product's
// weights with a scale for each column, scale_<product>. std::runtime_error for a name or type that the model has nothing for.
Operand operand(const tessera::Safetensors &weights, const std::string &name, int32_t type, int64_t layers);
