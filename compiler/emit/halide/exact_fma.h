// fma where a processor has none.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

bool has_fma(const Halide::Target &target);

// The statement with each fma of f32 as operations on f64, which give its bits: the product is exact there, and the sum, rounded to
// odd, has more than two bits to spare when it is rounded again (Boldo and Melquiond, Emulation of FMA and correctly rounded sums,
// IEEE Transactions on Computers 57, 2008). On vectors this is a few times as fast as calling fmaf for every lane, and it is right
// whatever the C library's fmaf does. fma of f64 stays a call of the C library.
Halide::Internal::Stmt with_exact_fma(const Halide::Internal::Stmt &s, const Halide::Target &target);

}  // namespace tessera::emit
