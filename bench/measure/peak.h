/* The most that one core computes: independent multiply-adds on registers, and nothing else. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

typedef enum Peak {
    PEAK_F32,      /* fma in f32 */
    PEAK_F64,      /* fma in f64 */
    PEAK_BF16,     /* bf16 pairs into f32: vdpbf16ps */
    PEAK_U8S8,     /* u8 by s8 quadruples into i32: vpdpbusd */
    PEAK_AMX_BF16, /* tiles of 16 by 16 by 32 in bf16: tdpbf16ps */
    PEAK_AMX_U8S8  /* tiles of 16 by 16 by 64 bytes: tdpbusd */
} Peak;

/* Runs `rounds` rounds of the loop on vectors of `vector_bytes` (16, 32 or 64); gives the operations done, a product and
 * its sum being two, or 0 when this processor or its system has no such instruction of that width. Where there is no fma
 * at all, f32 and f64 run as a multiplication and an addition. Tiles have one width, and go with vectors of 64 bytes. */
double peak_run(Peak peak, int vector_bytes, long rounds);

#ifdef __cplusplus
}
#endif
