// The most that one core computes: independent fused multiply-adds on registers.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

// Runs `iterations` rounds of the widest f32 FMA loop of this processor; gives the floating-point operations done.
// `sink` keeps the compiler from dropping the work.
double peak_run(long iterations, float *sink);

#ifdef __cplusplus
}
#endif
