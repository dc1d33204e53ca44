// Tensors of four bits an element in bytes: what a schedule, loops and machine code see of them.
//
//   an input w[N, K] of i4     the input w[N, K.bytes] of u8, K.bytes = (|K| + 1)/2; w[n, k] is the half k % 2 of w[n, k/2]
//   an output y[M, N] of i4    the stage that computes it is "y.codes", with a code in each byte; the stage y[M, N.bytes] of u8 after it
//                              joins two of them, and 0 behind the end of a row
//   a constant                 likewise, joined here
//
// What is between stages has a byte for each element.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Whether it has any that callers see, or a constant: what in_bytes has something to do for.
bool has_half_bytes(const Algorithm &algorithm);
// The algorithm over bytes, `half_bytes` of which says what callers see. Calls with such tensors are inlined. The algorithm itself where
// it has none. UserError half-bytes.call where such a call repeats.
Algorithm in_bytes(const Algorithm &algorithm);

// The dim of the bytes along a dim of elements, "<its name>.bytes".
Dim bytes_along(const Dim &elements);

}  // namespace tessera
