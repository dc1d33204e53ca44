#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace tessera {

using Extents = std::map<std::string, int64_t>;  // by dim

}  // namespace tessera
