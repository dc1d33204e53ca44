#include "bench/measure/peak.h"

/* As many accumulators as hide the latency of two instructions at once and fit the registers beside the operands. */
enum { FEW = 12, MANY = 24 };

/* Every loop over the accumulators is unrolled, so that they are registers and not an array. They are used up at the end,
 * so that no compiler drops the work. */
#define EACH(accumulators) _Pragma("GCC unroll 24") for (int i = 0; i < accumulators; i++)
#define PEAK_LOOP(name, target_attribute, type, accumulators, start, step, constraint, operations) \
    target_attribute static double name(long rounds) {                                             \
        type a[accumulators];                                                                      \
        EACH(accumulators) a[i] = start;                                                           \
        for (long n = 0; n < rounds; n++) EACH(accumulators) a[i] = step;                          \
        EACH(accumulators) __asm__ volatile("" : : constraint(a[i]));                              \
        return (double)(operations)*accumulators * (double)rounds;                                 \
    }

#if defined(__x86_64__)
#include <immintrin.h>

#include "runtime/abi/tessera.h"

#define FOR(features) __attribute__((target(features)))
#define ANY

/* Values stay near 1: neither infinities nor gradual underflow, which some processors take longer for. */
PEAK_LOOP(f32_512, FOR("avx512f"), __m512, MANY, _mm512_set1_ps((float)i),
          _mm512_fmadd_ps(a[i], _mm512_set1_ps(0.999f), _mm512_set1_ps(1e-3f)), "v", 32)
PEAK_LOOP(f64_512, FOR("avx512f"), __m512d, MANY, _mm512_set1_pd(i), _mm512_fmadd_pd(a[i], _mm512_set1_pd(0.999), _mm512_set1_pd(1e-3)),
          "v", 16)
PEAK_LOOP(f32_256, FOR("avx2,fma"), __m256, FEW, _mm256_set1_ps((float)i),
          _mm256_fmadd_ps(a[i], _mm256_set1_ps(0.999f), _mm256_set1_ps(1e-3f)), "x", 16)
PEAK_LOOP(f64_256, FOR("avx2,fma"), __m256d, FEW, _mm256_set1_pd(i), _mm256_fmadd_pd(a[i], _mm256_set1_pd(0.999), _mm256_set1_pd(1e-3)),
          "x", 8)
PEAK_LOOP(f32_128, ANY, __m128, FEW, _mm_set1_ps((float)i), _mm_add_ps(_mm_mul_ps(a[i], _mm_set1_ps(0.999f)), _mm_set1_ps(1e-3f)), "x", 8)
PEAK_LOOP(f64_128, ANY, __m128d, FEW, _mm_set1_pd(i), _mm_add_pd(_mm_mul_pd(a[i], _mm_set1_pd(0.999)), _mm_set1_pd(1e-3)), "x", 4)

/* 0x3f80 is 1 in bf16, 0x2f80 is 2^-32: sums stay where they start. */
PEAK_LOOP(bf16_512, FOR("avx512f,avx512bw,avx512bf16"), __m512, MANY, _mm512_set1_ps((float)i),
          _mm512_dpbf16_ps(a[i], (__m512bh)_mm512_set1_epi16(0x3f80), (__m512bh)_mm512_set1_epi16(0x2f80)), "v", 64)
PEAK_LOOP(bf16_256, FOR("avx512f,avx512bw,avx512vl,avx512bf16"), __m256, FEW, _mm256_set1_ps((float)i),
          _mm256_dpbf16_ps(a[i], (__m256bh)_mm256_set1_epi16(0x3f80), (__m256bh)_mm256_set1_epi16(0x2f80)), "v", 32)
PEAK_LOOP(u8s8_512, FOR("avx512f,avx512vnni"), __m512i, MANY, _mm512_set1_epi32(i),
          _mm512_dpbusd_epi32(a[i], _mm512_set1_epi32(0x01020304), _mm512_set1_epi32(0x01020304)), "v", 128)
PEAK_LOOP(u8s8_256, FOR("avx512f,avx512vl,avx512vnni"), __m256i, FEW, _mm256_set1_epi32(i),
          _mm256_dpbusd_epi32(a[i], _mm256_set1_epi32(0x01020304), _mm256_set1_epi32(0x01020304)), "v", 64)
PEAK_LOOP(u8s8_avx, FOR("avx2,avxvnni"), __m256i, FEW, _mm256_set1_epi32(i),
          _mm256_dpbusd_avx_epi32(a[i], _mm256_set1_epi32(0x01020304), _mm256_set1_epi32(0x01020304)), "x", 64)

/* Four accumulators by two operands, all zeros: a step takes as long with any values. The configuration has palette 1, bytes of rows at 16
 * and rows at 48; compilers think that the intrinsic reads 8 bytes of it. */
#define TILE_LOOP(name, features, step, products)                               \
    FOR(features) static double name(long rounds) {                             \
        _Alignas(64) unsigned char tiles[64] = {1};                             \
        for (int t = 0; t < 6; t++) tiles[16 + 2 * t] = 64, tiles[48 + t] = 16; \
        __asm__ volatile("" : : "r"(tiles) : "memory");                         \
        _tile_loadconfig(tiles);                                                \
        _tile_zero(0);                                                          \
        _tile_zero(1);                                                          \
        _tile_zero(2);                                                          \
        _tile_zero(3);                                                          \
        _tile_zero(4);                                                          \
        _tile_zero(5);                                                          \
        for (long n = 0; n < rounds; n++) {                                     \
            step(0, 4, 5);                                                      \
            step(1, 4, 5);                                                      \
            step(2, 4, 5);                                                      \
            step(3, 4, 5);                                                      \
        }                                                                       \
        _tile_release();                                                        \
        return 2.0 * 16 * 16 * (products)*4 * (double)rounds;                   \
    }
TILE_LOOP(amx_bf16, "amx-tile,amx-bf16", _tile_dpbf16ps, 32)
TILE_LOOP(amx_u8s8, "amx-tile,amx-int8", _tile_dpbusd, 64)

static int has(int feature) { return (int)(tess_cpu_features() >> feature & 1u); }

double peak_run(Peak peak, int vector_bytes, long rounds) {
    if (vector_bytes == 64 && !has(TESS_CPU_AVX512F)) return 0;
    if (vector_bytes == 32 && !(has(TESS_CPU_AVX2) && has(TESS_CPU_FMA))) return 0;
    switch (peak) {
    case PEAK_F32: return vector_bytes == 64 ? f32_512(rounds) : vector_bytes == 32 ? f32_256(rounds) : f32_128(rounds);
    case PEAK_F64: return vector_bytes == 64 ? f64_512(rounds) : vector_bytes == 32 ? f64_256(rounds) : f64_128(rounds);
    case PEAK_BF16:
        if (!has(TESS_CPU_AVX512_BF16) || vector_bytes < 32) return 0;
        return vector_bytes == 64 ? bf16_512(rounds) : bf16_256(rounds);
    case PEAK_U8S8:
        if (vector_bytes == 64) return has(TESS_CPU_AVX512_VNNI) ? u8s8_512(rounds) : 0;
        if (vector_bytes < 32) return 0;
        if (has(TESS_CPU_AVX512_VNNI) && has(TESS_CPU_AVX512VL)) return u8s8_256(rounds);
        return has(TESS_CPU_AVX_VNNI) ? u8s8_avx(rounds) : 0;
    case PEAK_AMX_BF16: return vector_bytes == 64 && has(TESS_CPU_AMX_BF16) ? amx_bf16(rounds) : 0;
    case PEAK_AMX_U8S8: return vector_bytes == 64 && has(TESS_CPU_AMX_INT8) ? amx_u8s8(rounds) : 0;
    }
    return 0;
}
#else
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));

PEAK_LOOP(f32_128, , Floats, FEW, (Floats){} + (float)i, a[i] * 0.999f + 1e-3f, "w", 8)
PEAK_LOOP(f64_128, , Doubles, FEW, (Doubles){} + (double)i, a[i] * 0.999 + 1e-3, "w", 4)

double peak_run(Peak peak, int vector_bytes, long rounds) {
    if (vector_bytes != 16) return 0;
    return peak == PEAK_F32 ? f32_128(rounds) : peak == PEAK_F64 ? f64_128(rounds) : 0;
}
#endif
