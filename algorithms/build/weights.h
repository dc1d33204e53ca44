// Weights of products, kept as the numerics policy says (WeightFormat). An algorithm that declares its weights so serves every such policy:
//
//     Tile acc = multiply(x, weights(f, "w", {}, K, N), "acc");   // (M, N) of x (M, K), in the accumulate type
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

// The tensors, in the order in which they are declared, and in which a callee that declares the same takes them:
//   storage         w[K, N]
//   i8, f8e4m3fn    w[K, N] codes, w_scales[N] f32
//   nvfp4           w[N, K / 2] u8, two codes of f4e2m1fn in a byte, the first in the low half, as `quantize` writes them, so that programs
//                   whose calls repeat or stay calls can pass them on; w_scales[N, K / 16] f8e4m3fn; w_tensor_scale[] f32, no dims
// each with `outer` dims in front.
struct Weights {
    std::vector<Tile> tensors;
    Dim K, N;
};

// Rows of weights are a multiple of what this gives: codes of a group have one scale. 1 where there are no groups.
int64_t multiple_of_rows(const Numerics &policy);
Dim rows_of_weights(const std::string &name, const Numerics &policy);  // a symbolic dim of such a multiple

// Declares the inputs. UserError weights.rows where K is not known to be a multiple of multiple_of_rows.
Weights weights(Builder &f, const std::string &name, const std::vector<Dim> &outer, const Dim &K, const Dim &N,
                Span caller = std::source_location::current());

// x w, x with K as its last dim; `w` has no outer dims. Folds in the accumulate type: codes are exact there, a scale multiplies the sum of
// its column or group. With a name, the fold over K is the stage of that name under every policy, so that schedules for several policies
// address one stage. Where there are codes, "<prefix>weights" are their numbers and "<prefix>inner" is a fold without a name; where there
// are groups, "<prefix>inner" are the sums of each and "<prefix>scales" their scales.
Tile multiply(const Tile &x, const Weights &w, const std::string &name = "", const std::string &prefix = "",
              Span caller = std::source_location::current());

// An input's elements in the type of its tensor, where the input itself is in the compute type, and flushed if the policy says so.
Tile as_stored(const Tile &input, Span caller = std::source_location::current());

}  // namespace tessera
