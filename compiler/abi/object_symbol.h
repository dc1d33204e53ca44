// A symbol of an object file, of whatever format.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

struct ObjectSymbol {
    std::string name;
    uint64_t bytes = 0;
    bool defined = false, global = false, hidden = false, function = false;
};

}  // namespace tessera
