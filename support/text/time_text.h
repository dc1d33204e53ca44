// Seconds as people read them.
#pragma once
#include <string>

namespace tessera {

std::string time_text(double seconds);  // "1.250 ms"

}  // namespace tessera
