#include "support/text/time_text.h"

#include <fmt/format.h>

namespace tessera {

std::string time_text(double seconds) {
    return seconds < 1e-6   ? fmt::format("{:.1f} ns", seconds * 1e9)
           : seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6)
           : seconds < 1    ? fmt::format("{:.3f} ms", seconds * 1e3)
                            : fmt::format("{:.2f} s", seconds);
}

}  // namespace tessera
