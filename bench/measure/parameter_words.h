// A kernel's parameters as numbers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// 8 bytes for each, which begin with its value, in the order of the program's.
std::vector<int64_t> parameter_words(const TileProgram &program, const std::map<std::string, Scalar> &parameters);

}  // namespace tessera
