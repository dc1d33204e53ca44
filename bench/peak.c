#include "peak.h"

#include <immintrin.h>

enum { ACCUMULATORS_512 = 24, ACCUMULATORS_256 = 12 };

__attribute__((target("avx512f"))) static double run_512(long iterations, float *sink) {
    __m512 a[ACCUMULATORS_512];
    const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    for (int i = 0; i < ACCUMULATORS_512; i++) a[i] = _mm512_set1_ps((float)i);
    for (long n = 0; n < iterations; n++) {
#pragma GCC unroll 24
        for (int i = 0; i < ACCUMULATORS_512; i++) a[i] = _mm512_fmadd_ps(a[i], x, y);
    }
    for (int i = 0; i < ACCUMULATORS_512; i++) *sink += _mm512_reduce_add_ps(a[i]);
    return 2.0 * 16 * ACCUMULATORS_512 * (double)iterations;
}

__attribute__((target("avx2,fma"))) static double run_256(long iterations, float *sink) {
    __m256 a[ACCUMULATORS_256];
    const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    for (int i = 0; i < ACCUMULATORS_256; i++) a[i] = _mm256_set1_ps((float)i);
    for (long n = 0; n < iterations; n++) {
#pragma GCC unroll 12
        for (int i = 0; i < ACCUMULATORS_256; i++) a[i] = _mm256_fmadd_ps(a[i], x, y);
    }
    for (int i = 0; i < ACCUMULATORS_256; i++) {
        float lanes[8];
        _mm256_storeu_ps(lanes, a[i]);
        *sink += lanes[0];
    }
    return 2.0 * 8 * ACCUMULATORS_256 * (double)iterations;
}

double peak_run(long iterations, float *sink) {
    return __builtin_cpu_supports("avx512f") ? run_512(iterations, sink) : run_256(iterations, sink);
}
