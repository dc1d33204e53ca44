#include <string.h>

#include "runtime/abi/kernel.h"

/* Stores past the caches: whole cache lines, which need not be read before they are written, and what the caches hold stays there. */
#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64 };

static void stream_lines_16(uint8_t *to, const uint8_t *from, int64_t bytes) {
    int64_t i;
    for (i = 0; i < bytes; i += 16) _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
}

__attribute__((target("avx"))) static void stream_lines_32(uint8_t *to, const uint8_t *from, int64_t bytes) {
    int64_t i;
    for (i = 0; i < bytes; i += 32) _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
}

__attribute__((target("avx512f"))) static void stream_lines_64(uint8_t *to, const uint8_t *from, int64_t bytes) {
    int64_t i;
    for (i = 0; i < bytes; i += 64) _mm512_stream_si512((__m512i *)(to + i), _mm512_loadu_si512(from + i));
}

int32_t tess_abi2_stream(void *to, const void *from, int64_t bytes, int32_t vector_bytes) {
    uint8_t *target = to;
    const uint8_t *source = from;
    int64_t before = -(int64_t)((uintptr_t)to % LINE) & (LINE - 1), lines;
    if (bytes <= 0) return TESS_OK;
    if (before > bytes) before = bytes;
    memcpy(target, source, (size_t)before);
    lines = (bytes - before) / LINE * LINE;
    if (vector_bytes >= 64) {
        stream_lines_64(target + before, source + before, lines);
    } else if (vector_bytes >= 32) {
        stream_lines_32(target + before, source + before, lines);
    } else {
        stream_lines_16(target + before, source + before, lines);
    }
    memcpy(target + before + lines, source + before + lines, (size_t)(bytes - before - lines));
    return TESS_OK;
}

int32_t tess_abi2_end_stream(void) {
    _mm_sfence();
    return TESS_OK;
}
#else
int32_t tess_abi2_stream(void *to, const void *from, int64_t bytes, int32_t vector_bytes) {
    (void)vector_bytes;
    if (bytes > 0) memcpy(to, from, (size_t)bytes);
    return TESS_OK;
}

int32_t tess_abi2_end_stream(void) { return TESS_OK; }
#endif
