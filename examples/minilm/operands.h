// The operands of the generated function by their names, made of the model's weights: joined, stacked, transposed.
#pragma once
#include <string>

#include "weights.h"

// Those of sentence_embedding (generator.cpp), which the number of layers decides. std::runtime_error for any other name.
Weight operand(const Weights &weights, const std::string &name, int64_t layers);
