#pragma once
#include <string>
#include <string_view>

namespace tessera {

// "sha256:<64 hexadecimal digits>" (FIPS 180-4).
std::string sha256(std::string_view bytes);

}  // namespace tessera
