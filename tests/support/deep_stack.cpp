#include "support/processes/deep_stack.h"

#include <catch2/catch.hpp>

#include <thread>

namespace tessera::test_deep_stack {

// Some hundreds of bytes for each level.
static int depth_of(int levels) {
    volatile char frame[256] = {1};
    return levels == 0 ? 0 : frame[0] + depth_of(levels - 1);
}

TEST_CASE("a deep stack holds what a thread of its default size would not, in threads made there too") {
    constexpr int levels = 60000;  // some 17 MiB
    CHECK(on_deep_stack([&] { return depth_of(levels); }) == levels);
    CHECK(on_deep_stack([&] {
              int depth = 0;
              std::thread([&] { depth = depth_of(levels); }).join();
              return depth;
          }) == levels);
}

}  // namespace tessera::test_deep_stack
