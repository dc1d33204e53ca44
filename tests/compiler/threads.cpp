// Blocks and threads: the tile programs of a GPU against their algorithms, and what they look like.
#include <catch2/catch.hpp>

#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"

namespace tessera::test_threads {

using namespace tessera::test;

TEST_CASE("a tile program for a GPU computes what its algorithm says") { check_programs(gpu_cases(), target_named("opencl")); }

}  // namespace tessera::test_threads
