#include "bench/measure/peak.h"

#include <catch2/catch.hpp>

#include "runtime/abi/tessera.h"

namespace tessera::test_peak {

static bool has(TessCpuFeature feature) { return tess_cpu_features() >> feature & 1; }

TEST_CASE("a peak counts two operations for each lane of each product, round by round") {
    CHECK(peak_run(PEAK_F32, 16, 10) == 10.0 * 12 * 4 * 2);
    CHECK(peak_run(PEAK_F64, 16, 10) == 10.0 * 12 * 2 * 2);
    if (has(TESS_CPU_AVX2) && has(TESS_CPU_FMA)) CHECK(peak_run(PEAK_F32, 32, 3) == 3.0 * 12 * 8 * 2);
    if (has(TESS_CPU_AVX512F)) CHECK(peak_run(PEAK_F64, 64, 3) == 3.0 * 24 * 8 * 2);
    if (has(TESS_CPU_AVX512_BF16)) CHECK(peak_run(PEAK_BF16, 64, 3) == 3.0 * 24 * 16 * 2 * 2);
    if (has(TESS_CPU_AVX512_VNNI)) CHECK(peak_run(PEAK_U8S8, 64, 3) == 3.0 * 24 * 16 * 4 * 2);
}

TEST_CASE("what the processor does not have has no peak") {
    for (const Peak peak : {PEAK_F32, PEAK_F64, PEAK_BF16, PEAK_U8S8})
        if (!has(TESS_CPU_AVX512F)) CHECK(peak_run(peak, 64, 1) == 0);
    CHECK((peak_run(PEAK_BF16, 64, 1) > 0) == has(TESS_CPU_AVX512_BF16));
    CHECK((peak_run(PEAK_U8S8, 64, 1) > 0) == has(TESS_CPU_AVX512_VNNI));
    CHECK(peak_run(PEAK_BF16, 16, 1) == 0);
    CHECK(peak_run(PEAK_U8S8, 16, 1) == 0);
}

}  // namespace tessera::test_peak
