#include "bench/measure/bandwidth.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/abi/tessera.h"

namespace tessera::test_bandwidth {

TEST_CASE("a copy copies every byte and no more, in vectors of each width") {
    constexpr size_t bytes = 2048;
    for (const int width : {16, 32, 64}) {
        if (width == 32 && !(tess_cpu_features() >> TESS_CPU_AVX2 & 1)) continue;
        if (width == 64 && !(tess_cpu_features() >> TESS_CPU_AVX512F & 1)) continue;
        const std::unique_ptr<unsigned char, decltype(&std::free)> memory(
            static_cast<unsigned char *>(std::aligned_alloc(64, 2 * bytes + 64)), std::free);
        for (size_t i = 0; i < 2 * bytes + 64; i++) memory.get()[i] = static_cast<unsigned char>(i < bytes ? i * 7 : 255);
        bandwidth_copy(memory.get() + bytes, memory.get(), bytes, width, 2);
        bandwidth_read(memory.get(), bytes, width, 2);
        INFO(width);
        CHECK(std::vector(memory.get(), memory.get() + bytes) == std::vector(memory.get() + bytes, memory.get() + 2 * bytes));
        CHECK(std::vector(memory.get() + 2 * bytes, memory.get() + 2 * bytes + 64) == std::vector<unsigned char>(64, 255));
    }
}

}  // namespace tessera::test_bandwidth
