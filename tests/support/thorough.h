// How much of a long law the suite runs: a fixed share of its cases, and all of them with TESSERA_THOROUGH=1 (./tessera test --thorough).
#pragma once
#include <cstdlib>
#include <cstring>

namespace tessera::test {

inline bool is_thorough() {
    const char *asked = std::getenv("TESSERA_THOROUGH");
    return asked && std::strcmp(asked, "0") != 0;
}

// Every how many-th of the cases are run, where the suite runs every `n`-th.
inline size_t every(size_t n) { return is_thorough() ? 1 : n; }

}  // namespace tessera::test
