#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/abi/kernel.h"

namespace tessera::test_stream {

TEST_CASE("what is streamed arrives, wherever it begins and however long it is, and nothing beside it is touched") {
    constexpr size_t room = 1024, margin = 128;
    std::vector<uint8_t> from(room), to(room);
    std::iota(from.begin(), from.end(), uint8_t{1});
    std::vector<int32_t> widths = {16};
    if (tess_cpu_features() >> TESS_CPU_AVX & 1) widths.push_back(32);
    if (tess_cpu_features() >> TESS_CPU_AVX512F & 1) widths.push_back(64);
    for (int32_t width : widths)
        for (size_t first : {0, 1, 4, 31, 64})
            for (size_t target : {0, 3, 16, 63})
                for (int64_t bytes :
                     {int64_t{-4}, int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{200}, int64_t{512}}) {
                    std::fill(to.begin(), to.end(), uint8_t{0});
                    REQUIRE(tess_abi2_stream(to.data() + margin + target, from.data() + first, bytes, width) == TESS_OK);
                    REQUIRE(tess_abi2_end_stream() == TESS_OK);
                    std::vector<uint8_t> expected(room, 0);
                    if (bytes > 0) std::memcpy(expected.data() + margin + target, from.data() + first, static_cast<size_t>(bytes));
                    INFO(width << " " << first << " " << target << " " << bytes);
                    REQUIRE(to == expected);
                }
}

}  // namespace tessera::test_stream
