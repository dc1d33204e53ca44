// A C program that runs an imported model, and the CMake that builds it with an installed Tessera.
#pragma once
#include <map>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Texts by the names of files: CMakeLists.txt, main.c, model.h. They stand in a folder beside program.json and weights.safetensors, which
// has tensors for the inputs of the program that no call gives (`has_weights`). `model` is what the program was made of, for comments.
// Dims that a call decides have extents of 1 along the first axis of an input and about 32 elsewhere, as their constraints allow.
std::map<std::string, std::string> model_example(const Algorithm &program, const std::string &model, bool has_weights);

}  // namespace tessera
