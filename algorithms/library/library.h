// The standard library: algorithms that ship with Tessera, each a function of a numerics policy. Nothing in the compiler
// knows them; they are what a user would write.
#pragma once
#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"

namespace tessera::library {

// products.cpp
Algorithm matmul(const Numerics &n);        // y[M, N] = x[M, K] w[K, N]
Algorithm matmul_wide(const Numerics &n);   // the same, y in the accumulate type
Algorithm matmul_u8s8(const Numerics &n);   // the same of x: u8 and w: i8, y: i32, wrapping
Algorithm matmul_s8s8(const Numerics &n);   // the same of x, w: i8, as sums of (x + 128) w - 128 w: dot products take u8 by i8
Algorithm matmul_qint8(const Numerics &n);  // y[M, N] = x[M, K] w[K, N] scale[N], w: i8, scale: f32, y in the accumulate type
Algorithm linear(const Numerics &n);        // y[M, N] = x[M, K] w[K, N] + b[N]
Algorithm linear_gelu(const Numerics &n);   // y[M, N] = gelu(x[M, K] w[K, N] + b[N]), the exact gelu
// linear and linear_gelu of w: i8 and scale[N], f32, by which a column of the product is multiplied before b is added.
Algorithm linear_qint8(const Numerics &n);
Algorithm linear_gelu_qint8(const Numerics &n);
Algorithm gemv(const Numerics &n);  // y[M] = a[M, K] x[K]

// normalizations.cpp
Algorithm softmax(const Numerics &n);             // y[M, N] = softmax of x[M, N] over N
Algorithm layernorm(const Numerics &n);           // y[M, N] = layernorm of x[M, N] over N with gamma[N], beta[N], epsilon
Algorithm residual_layernorm(const Numerics &n);  // the same of x + r
Algorithm rmsnorm(const Numerics &n);             // y[M, N] = rmsnorm of x[M, N] over N with gamma[N]

// attention.cpp: o[H, S, D] = softmax(q[H, S, D] k[H, T, D]^T / sqrt(D)) v[H, T, D], H being batch times heads
Algorithm attention(const Numerics &n);
Algorithm attention_causal(const Numerics &n);  // query i sees keys 0 ..= i
Algorithm attention_kept(const Numerics &n);    // queries see the keys of which keep[T] holds; one at least, or o is NaN

// convolutions.cpp, with the options of window_options (convolution.h), pools with those of pool_options
Algorithm conv1d(const Numerics &n, const Options &o);                 // y[N, P, O] of x[N, L, C], w[R, C, O]
Algorithm conv2d_nhwc(const Numerics &n, const Options &o);            // y[N, P, Q, O] of x[N, H, W, C], w[R, S, C, O]
Algorithm conv2d_bias_relu_nhwc(const Numerics &n, const Options &o);  // relu of that plus b[O]
Algorithm conv2d_nchw(const Numerics &n, const Options &o);            // y[N, O, P, Q] of x[N, C, H, W], w[O, C, R, S]
Algorithm grouped_conv2d_nhwc(const Numerics &n, const Options &o);    // y[N, P, Q, G, O] of x[N, H, W, G, C], w[R, S, G, C, O]
Algorithm depthwise_conv2d_nhwc(const Numerics &n, const Options &o);  // y[N, P, Q, C] of x[N, H, W, C], w[R, S, C]
Algorithm max_pool2d_nhwc(const Numerics &n, const Options &o);        // y[N, P, Q, C] of x[N, H, W, C]
Algorithm average_pool2d_nhwc(const Numerics &n, const Options &o);    // the same; outside counts as 0
std::vector<Option> pool_options();                                    // with size, the taps along each dim

// folds.cpp
Algorithm column_sum(const Numerics &n);      // y[N] = sum over M of x[M, N]
Algorithm cumulative_sum(const Numerics &n);  // y[M, N] = inclusive prefix sums of x[M, N] along N
// y[M, N] = inclusive suffix sums of x[M, N] along N: from n to the end
Algorithm reverse_cumulative_sum(const Numerics &n);
// y[M, N] = inclusive prefix sums of x[M, N] along N, anew wherever segment[N] changes: sequences packed into one row
Algorithm segmented_cumulative_sum(const Numerics &n);
Algorithm segmented_sum(const Numerics &n);  // y[B, N] = sums of the rows offsets[b] ..= offsets[b+1]-1 of x[T, N]

// fourier.cpp, with the option points; complex numbers are pairs along N or K (fourier.h)
Algorithm fft(const Numerics &n, const Options &o);    // y[B, N] = the transform of x[B, N], N = 2 points
Algorithm ifft(const Numerics &n, const Options &o);   // its inverse
Algorithm rfft(const Numerics &n, const Options &o);   // y[B, K] of the real x[B, N], N = points, K = 2 (N / 2 + 1)
Algorithm irfft(const Numerics &n, const Options &o);  // its inverse, y[B, N] of x[B, K]
std::vector<Option> fourier_options();

// states.cpp
Algorithm ring_append(const Numerics &n);  // cache[B, (position + t) mod W, D] = x[B, t, D], in place
// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w = decay w - step m / (scale sqrt(v) + epsilon), in place, all of N.
// At step t with learning rate r and weight decay d: decay = 1 - r d, step = r / (1 - beta1^t), scale = 1 / sqrt(1 - beta2^t).
Algorithm adamw(const Numerics &n);

// scatters.cpp. Positions outside are dropped.
Algorithm histogram(const Numerics &n);           // counts[V] = how many of ids[N] are v, in i32
Algorithm embedding_gradient(const Numerics &n);  // grad[V, D] = the sum of the rows g[T, D] whose ids[T] are v

// random.cpp, by Philox (random.h), with the parameters seed and step: i64
Algorithm random_uniform(const Numerics &n);  // y[N] of 0 ..< 1
Algorithm random_normal(const Numerics &n);   // y[N] of mean 0 and variance 1
Algorithm dropout(const Numerics &n);         // y[M, N] = x[M, N] / (1 - p) where it is kept, with probability 1 - p; p: f32

// encoder.cpp
Algorithm feed_forward(const Numerics &n);  // y = layernorm(x + linear(linear_gelu(x))), by calls of the three
// A layer of BERT (Devlin et al. 2018): x[M, D] are the T tokens of B sentences, M = B T, and attention of a sentence sees those of which
// keep[B, T] holds. w_qkv[D, 3 D] has the columns of queries, keys and values side by side, each by heads.
Algorithm encoder_layer(const Numerics &n, const Options &o);
// L such layers, whose weights are stacked: w_qkv[L, D, 3 D] and so on.
Algorithm encoder(const Numerics &n, const Options &o);
// The same with the products of linear_qint8: behind each w comes its scale, scale_qkv[L, 3 D] and so on.
Algorithm encoder_qint8(const Numerics &n, const Options &o);
std::vector<Option> encoder_options();  // heads

}  // namespace tessera::library
