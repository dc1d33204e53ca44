#pragma once
#include <chrono>

namespace tessera {

// Seconds of a clock that only goes forward; its zero means nothing.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace tessera
