#include "bench/measure/bandwidth.h"

enum { UNROLL = 8 };

/* Every load is used, and every store seen, as far as the compiler knows. */
#define BANDWIDTH(width, target_attribute, constraint)                                                                       \
    typedef long long Vector##width __attribute__((vector_size(width), may_alias));                                          \
    target_attribute static void read_##width(const char *from, size_t bytes, long passes) {                                 \
        for (long p = 0; p < passes; p++)                                                                                    \
            for (size_t i = 0; i < bytes; i += UNROLL * width) _Pragma("GCC unroll 8") for (size_t u = 0; u < UNROLL; u++) { \
                    Vector##width v = *(const Vector##width *)(from + i + u * width);                                        \
                    __asm__ volatile("" : : constraint(v));                                                                  \
                }                                                                                                            \
    }                                                                                                                        \
    target_attribute static void copy_##width(char *to, const char *from, size_t bytes, long passes) {                       \
        for (long p = 0; p < passes; p++) {                                                                                  \
            for (size_t i = 0; i < bytes; i += UNROLL * width) _Pragma("GCC unroll 8") for (size_t u = 0; u < UNROLL; u++) { \
                    Vector##width v = *(const Vector##width *)(from + i + u * width);                                        \
                    __asm__ volatile("" : "+" constraint(v));                                                                \
                    *(Vector##width *)(to + i + u * width) = v;                                                              \
                }                                                                                                            \
            __asm__ volatile("" : : "r"(to) : "memory");                                                                     \
        }                                                                                                                    \
    }

#if defined(__x86_64__)
BANDWIDTH(16, , "x")
BANDWIDTH(32, __attribute__((target("avx2"))), "x")
BANDWIDTH(64, __attribute__((target("avx512f"))), "v")
#else
BANDWIDTH(16, , "w")
#endif

void bandwidth_read(const void *from, size_t bytes, int vector_bytes, long passes) {
#if defined(__x86_64__)
    if (vector_bytes == 64) {
        read_64(from, bytes, passes);
        return;
    }
    if (vector_bytes == 32) {
        read_32(from, bytes, passes);
        return;
    }
#endif
    (void)vector_bytes;
    read_16(from, bytes, passes);
}

void bandwidth_copy(void *to, const void *from, size_t bytes, int vector_bytes, long passes) {
#if defined(__x86_64__)
    if (vector_bytes == 64) {
        copy_64(to, from, bytes, passes);
        return;
    }
    if (vector_bytes == 32) {
        copy_32(to, from, bytes, passes);
        return;
    }
#endif
    (void)vector_bytes;
    copy_16(to, from, bytes, passes);
}
