// What masters of weights, moments and losses are in: f32, or f64 where the functions compute in it.
#pragma once
#include <tessera.h>

#ifdef ENCODER2_F64
using Number = double;
constexpr TessDType number_type = TESS_F64;
#else
using Number = float;
constexpr TessDType number_type = TESS_F32;
#endif
