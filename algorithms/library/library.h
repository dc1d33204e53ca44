// The standard library: algorithms that ship with Tessera, each a function of a numerics policy. Nothing in the compiler
// knows them; they are what a user would write.
#pragma once
#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"

namespace tessera::library {

// products.cpp
Algorithm matmul(const Numerics &n);         // y[M, N] = x[M, K] w[K, N]
Algorithm matmul_wide(const Numerics &n);    // the same, y in the accumulate type
Algorithm matmul_u8s8(const Numerics &n);    // the same of x: u8 and w: i8, y: i32, wrapping
Algorithm matmul_s8s8(const Numerics &n);    // the same of x, w: i8, as sums of (x + 128) w - 128 w: dot products take u8 by i8
Algorithm linear(const Numerics &n);         // y[M, N] = x[M, K] w[K, N] + b[N]
Algorithm linear_gelu(const Numerics &n);    // y[M, N] = gelu(x[M, K] w[K, N] + b[N]), the exact gelu
Algorithm gemv(const Numerics &n);           // y[M] = a[M, K] x[K]
Algorithm linear_swiglu(const Numerics &n);  // y[M, N] = silu(x[M, K] w[K, N]) x v[K, N] (Shazeer 2020)
// y[M, N] = activation(scale x[M, K] w[K, N] + b[N] + r[M, N]), of which options say what there is (epilogue.h), and whether x is [K, M]
// and w [N, K]; batched: the same with x[B, M, K], w[B, K, N], r and y.
Algorithm gemm(const Numerics &n, const Options &o);
Algorithm batched_gemm(const Numerics &n, const Options &o);
std::vector<Option> gemm_options();

// low_bits.cpp: products with weights in 4 bits. codes[N, K] are of u4, two in a byte, and scale[N, G] is of G = K / group groups; K is a
// multiple of the group. A code q, 0 ..= 15, stands for scale (q - z), where the zero point z is 8, or zeros[N, G] in u4.
// y[M, N] = sum over G of scale[N, g] (sum over the k of g, in order, of x[M, k] (q[N, k] - z)), both sums fma by fma from 0 in the
// accumulate type, which y has.
Algorithm matmul_qint4(const Numerics &n, const Options &o);
// The same of rows that become i8 on the way, also in groups. With a = max |x| over a group, r = 127 / a (0 where a is under 2^-120) and
// d = a / 127 it has the rows p[k] = x[k] r, rounded to nearest even, and y = sum over G, fma by fma from 0, of
// scale (d (sum of p q - 8 sum of p)). The inner sums are of integers, and exact; floats are of the accumulate type. A NaN or an inf in a
// group makes the row of y NaN.
Algorithm matmul_dynamic_qint4(const Numerics &n, const Options &o);
std::vector<Option> qint4_options();          // group, half_scale, zeros
std::vector<Option> dynamic_qint4_options();  // group, half_scale
// y[M, N] = x[M, K] w[K, N] w_scales[N] of rows that become i8 on the way, w: i8, w_scales: f32. With a = max |x| of a row, r = 127 / a (0
// where a is under 2^-120) and d = a / 127 it has the rows p[k] = x[k] r, rounded to nearest even, and y = d (sum of p w) w_scales, from
// the left. The sum is of integers, and exact for K up to 132,104. Floats are of the accumulate type. A NaN or an inf in a row makes that
// row of y NaN.
Algorithm matmul_dynamic_qint8(const Numerics &n);
Algorithm linear_dynamic_qint8(const Numerics &n);  // the same plus b[N]
// Products with weights in block formats: y[M, N] = sum over G of s[N, g] (sum over the k of g, in order, of x[M, k] w[N, k]), both sums
// fma by fma from 0 in the accumulate type, which y has. K is a multiple of the block.
// MXFP8 (OCP Microscaling Formats 1.0): codes[N, K] in f8e4m3fn or f8e5m2, scale[N, G] in f8e8m0fnu, blocks of 32.
Algorithm matmul_mxfp8(const Numerics &n, const Options &o);
std::vector<Option> mxfp8_options();
// MXFP4: codes[N, K] in f4e2m1fn, two in a byte; scale[N, G] in f8e8m0fnu, blocks of 32.
Algorithm matmul_mxfp4(const Numerics &n);
// NVFP4 (arXiv 2509.25149): codes as in MXFP4, scale[N, G] in f8e4m3fn, blocks of 16, and s = scale tensor_scale, a parameter, rounded.
Algorithm matmul_nvfp4(const Numerics &n);

// activations.cpp: y[M, N] of x[M, N], with the accuracy that functions.h states
Algorithm gelu(const Numerics &n);
Algorithm gelu_tanh(const Numerics &n);
Algorithm silu(const Numerics &n);
Algorithm swiglu(const Numerics &n);  // y[M, N] = silu(gate[M, N]) up[M, N]

// normalizations.cpp
Algorithm softmax(const Numerics &n);             // y[M, N] = softmax of x[M, N] over N
Algorithm layernorm(const Numerics &n);           // y[M, N] = layernorm of x[M, N] over N with gamma[N], beta[N], epsilon
Algorithm residual_layernorm(const Numerics &n);  // the same of x + r
Algorithm rmsnorm(const Numerics &n);             // y[M, N] = rmsnorm of x[M, N] over N with gamma[N]
Algorithm residual_rmsnorm(const Numerics &n);    // total[M, N] = x + r, and y[M, N] = rmsnorm of it: what a pre-norm block begins with
// Group norm (Wu, He 2018) over the P positions and C channels of each of G groups, with gamma[G, C], beta[G, C], epsilon:
Algorithm group_norm_nhwc(const Numerics &n);  // y[N, P, G, C] of x[N, P, G, C]
Algorithm group_norm_nchw(const Numerics &n);  // y[N, G, C, P] of x[N, G, C, P]
// Batch norm at inference (Ioffe, Szegedy 2015): y[M, C] = (x[M, C] - mean[C]) gamma[C] / sqrt(variance[C] + epsilon) + beta[C], as one fma
// by a scale and a shift of channels.
Algorithm batch_norm(const Numerics &n);
// The same put into what comes before it: folded_w[K, C] = w scale, folded_b[C] = (b - mean) scale + beta. K are all other dims of w.
Algorithm fold_batch_norm(const Numerics &n);
Algorithm logsumexp(const Numerics &n);      // y[M] = log of the sum over N of exp(x[M, N])
Algorithm cross_entropy(const Numerics &n);  // loss[M] = logsumexp of x[M, N] - x[M, id[M]] in the accumulate type; 0 where id is outside

// attention.cpp: o[H, S, D] = softmax(q[H, S, D] k[H, T, D]^T / sqrt(D)) v[H, T, D], H being batch times heads
Algorithm attention(const Numerics &n);
Algorithm attention_causal(const Numerics &n);  // query i sees keys 0 ..= i
Algorithm attention_kept(const Numerics &n);    // queries see the keys of which keep[T] holds; o is 0 where it holds of none
// G queries share a head of keys and values (Ainslie et al. 2023): o[H, G, S, E] of q[H, G, S, D], k[H, T, D], v[H, T, E]. Options: query i
// stands at `position` + i of the keys, so that a prompt may go on, and sees those up to its own (causal), of which the last `window`
// (Beltagy et al. 2020; without causal, all later ones too; what is before it has weight 0); mask[S, T] is added to the scores. o is 0
// where a query sees no key, or all scores are -inf.
Algorithm attention_grouped(const Numerics &n, const Options &o);
std::vector<Option> grouped_attention_options();
// One query of each head against a cache: o[H, G, E] of q[H, G, D], k[H, T, D], v[H, T, E]. T is how many keys there are: a cache with room
// for more is a view of them, whose stride along H says so. o is 0 where T is 0.
Algorithm attention_decode(const Numerics &n);

// caches.cpp: attention over a cache of keys and values (build/cache.h, which says what the tensors of each layout are), with options for
// its layout, codes and scales.
// The rows k[B, S, H, D] and v[B, S, H, E] become positions length[b] + s.
Algorithm cache_append(const Numerics &n, const Options &o);
std::vector<Option> cache_append_options();
// o[B, H, G, S, E] of q[B, H, G, S, D], the last S tokens of each sequence: query s stands at length[b] - S + s. The first queries of a
// sequence of fewer tokens see no key, and are 0.
Algorithm attention_cached(const Numerics &n, const Options &o);
std::vector<Option> attention_cached_options();
// pages[pairs[n, 1]] = pages[pairs[n, 0]] of pages[P, X], any tensor of pages as bytes; pairs[N, 2]: what a fork copies
Algorithm cache_copy_pages(const Numerics &n);

// convolutions.cpp, with the options of window_options (convolution.h), pools with those of pool_options
Algorithm conv1d(const Numerics &n, const Options &o);                 // y[N, P, O] of x[N, L, C], w[R, C, O]
Algorithm conv2d_nhwc(const Numerics &n, const Options &o);            // y[N, P, Q, O] of x[N, H, W, C], w[R, S, C, O]
Algorithm conv2d_bias_relu_nhwc(const Numerics &n, const Options &o);  // relu of that plus b[O]
Algorithm conv2d_nchw(const Numerics &n, const Options &o);            // y[N, O, P, Q] of x[N, C, H, W], w[O, C, R, S]
Algorithm conv3d_ndhwc(const Numerics &n, const Options &o);           // y[N, U, P, Q, O] of x[N, D, H, W, C], w[T, R, S, C, O]
Algorithm grouped_conv2d_nhwc(const Numerics &n, const Options &o);    // y[N, P, Q, G, O] of x[N, H, W, G, C], w[R, S, G, C, O]
Algorithm depthwise_conv2d_nhwc(const Numerics &n, const Options &o);  // y[N, P, Q, C] of x[N, H, W, C], w[R, S, C]
Algorithm max_pool2d_nhwc(const Numerics &n, const Options &o);        // y[N, P, Q, C] of x[N, H, W, C]
Algorithm average_pool2d_nhwc(const Numerics &n, const Options &o);    // the same; outside counts as 0
std::vector<Option> pool_options();                                    // with size, the taps along each dim

// With what follows them (epilogue.h): y[N, P, Q, O] = activation(scale conv2d_nhwc + b[O] + r[N, P, Q, O]), the second by channel.
Algorithm conv2d_fused_nhwc(const Numerics &n, const Options &o);
Algorithm depthwise_conv2d_fused_nhwc(const Numerics &n, const Options &o);
std::vector<Option> fused_window_options();
// y[N, P, Q, O] of x[N, H, W, C], w[R, S, C, O], P = (H - 1) stride - 2 padding + R + end, with the same epilogue
Algorithm transposed_conv2d_nhwc(const Numerics &n, const Options &o);
std::vector<Option> transposed_conv_options();
Algorithm global_average_pool_nhwc(const Numerics &n);  // y[N, C] = mean over H, W of x[N, H, W, C]

// recurrences.cpp, of states that are inputs and, after the last step, outputs: a sequence in pieces gives the same bits as in one call
// (build/recurrent.h, which has the formulas). y[T, N, H], h_last[N, H] and c_last[N, H] of x[T, N, I], w[I, G], r[K, G], b[G],
// recurrent_b[G], h[N, H] and c[N, H], which like all states here are of the type that is computed in. K is H; G is 4 H of an LSTM, 3 H of
// a GRU, H of an RNN.
Algorithm lstm(const Numerics &n, const Options &o);
Algorithm gru(const Numerics &n, const Options &o);
Algorithm rnn(const Numerics &n, const Options &o);
std::vector<Option> lstm_options();
std::vector<Option> gru_options();
std::vector<Option> rnn_options();
// y[T, N, H], the states h[N, H] = a h + b of the matrices a[T, N, H, K], K = H, or a[H, K], and b[T, N, H]
Algorithm linear_recurrence(const Numerics &n, const Options &o);
std::vector<Option> linear_recurrence_options();
// y[N, L, O] of x[N, L, C], w[R, C, O], where element l sees those of l - (R - 1) dilation ..= l. Those before x are history[N, J, C],
// J = (R - 1) dilation; history_last[N, J, C] are those before what follows x. With what options ask for behind it (epilogue.h).
Algorithm causal_conv1d(const Numerics &n, const Options &o);
std::vector<Option> causal_conv1d_options();

// resizing.cpp: y[N, P, Q, C] of x[N, H, W, C], for any P and Q
Algorithm resize_nearest_nhwc(const Numerics &n);  // of row floor(p H / P), and so along W
// Between the two nearest rows and columns: p is at (p + 1/2) H / P - 1/2, at least 0, or with align_corners at p (H - 1) / (P - 1).
Algorithm resize_bilinear_nhwc(const Numerics &n, const Options &o);
// Between the four nearest rows and columns, by Keys's kernel with a = -0.75, or -0.5 with antialias.
Algorithm resize_bicubic_nhwc(const Numerics &n, const Options &o);
std::vector<Option> resize_options();  // for both

// folds.cpp
Algorithm column_sum(const Numerics &n);      // y[N] = sum over M of x[M, N]
Algorithm cumulative_sum(const Numerics &n);  // y[M, N] = inclusive prefix sums of x[M, N] along N
// y[M, N] = inclusive suffix sums of x[M, N] along N: from n to the end
Algorithm reverse_cumulative_sum(const Numerics &n);
// y[M, N] = inclusive prefix sums of x[M, N] along N, anew wherever segment[N] changes: sequences packed into one row
Algorithm segmented_cumulative_sum(const Numerics &n);
Algorithm segmented_sum(const Numerics &n);  // y[B, N] = sums of the rows offsets[b] ..= offsets[b+1]-1 of x[T, N]

// segments.cpp: segment b has the rows offsets[b] ..= offsets[b + 1] - 1, as Builder::segments takes offsets[B + 1]. Results of rows that
// no segment has are 0.
Algorithm grouped_matmul(const Numerics &n);  // y[T, N] = the rows of x[T, K] in segment b times w[b] of w[B, K, N]
// o[S, H, E] = attention of the queries of each segment, q[S, H, D], over its keys, k[T, H, D] and v[T, H, E]
Algorithm attention_segments(const Numerics &n, const Options &o);
std::vector<Option> attention_segments_options();
Algorithm segmented_softmax(const Numerics &n);  // y[T, N] = softmax of x[T, N] over the rows of each segment
Algorithm segmented_mean(const Numerics &n);     // y[B, N] = means of the rows of x[T, N], 0 of none
Algorithm segmented_max(const Numerics &n);      // y[B, N] = maxima of the rows of x[T, N], -inf of none
Algorithm embedding_bag(const Numerics &n);      // y[B, D] = sums of the rows ids[t] of table[V, D] by segments of ids[T]; 0 outside
// Products of a sparse matrix a of B rows and C columns in CSR: values[T] and columns[T] (i32) of the rows, one behind another, which
// offsets[B + 1] group; a column outside counts as 0.
Algorithm spmv(const Numerics &n);  // y[B] = a x[C]
Algorithm spmm(const Numerics &n);  // y[B, N] = a x[C, N]

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
// Under the policy `training` the states are masters in f32, and the option `narrow` gives the weights that forward passes read.
Algorithm adamw(const Numerics &n, const Options &o);
std::vector<Option> adamw_options();

// m = momentum m + (g + decay w), w = w - rate m, in place (Sutskever et al. 2013, as PyTorch has it)
Algorithm sgd_momentum(const Numerics &n);

// tokens.cpp
Algorithm embedding(const Numerics &n);  // y[T, D] = the row ids[t] of table[V, D]; 0 where it is outside
// Rotary positions (Su et al. 2021): each pair (a, b) of x becomes (a cos - b sin, b cos + a sin) of an angle (position + t) base^(-c / C).
// x[T, H, 2, C] lies in memory as [T, H, D] with a half in front of the other, x[T, H, C, 2] with pairs of neighbours (option interleaved).
// cos and sin are inputs, or computed from f64 angles, exact to their rounding for positions up to 2^45.
Algorithm rotary(const Numerics &n, const Options &o);
std::vector<Option> rotary_options();

// selections.cpp, in the order of selection.h: NaN above inf, -0 as 0, of equals the lower index first
Algorithm argmax(const Numerics &n);                   // at[M] = where x[M, N] is largest, i32
Algorithm top_k(const Numerics &n, const Options &o);  // y[M, K], at[M, K] = the k largest of x[M, N], downwards, and where they are
Algorithm sort(const Numerics &n, const Options &o);   // y[M, N], at[M, N] = x[M, N] sorted upwards, N = length, and where it was
std::vector<Option> top_k_options();
std::vector<Option> sort_options();

// rearrangements.cpp
Algorithm transpose(const Numerics &n);                // y[N, M] = x[M, N]
Algorithm concat(const Numerics &n);                   // y[M, C] = a[M, A], then b[M, B]
Algorithm slice(const Numerics &n, const Options &o);  // y[M, L] = x[M, begin + step l]; 0 where that is outside
std::vector<Option> slice_options();

// scatters.cpp. Positions outside are dropped.
Algorithm histogram(const Numerics &n);           // counts[V] = how many of ids[N] are v, in i32
Algorithm embedding_gradient(const Numerics &n);  // grad[V, D] = the sum of the rows g[T, D] whose ids[T] are v

// random.cpp, by Philox (random.h), with the parameters seed and step: i64
Algorithm random_uniform(const Numerics &n);  // y[N] of 0 ..< 1, in f32 under every policy
Algorithm random_normal(const Numerics &n);   // y[N] of mean 0 and variance 1
Algorithm dropout(const Numerics &n);         // y[M, N] = x[M, N] / (1 - p) where it is kept, with probability 1 - p; p: f32

// encoder.cpp
Algorithm feed_forward(const Numerics &n);  // y = layernorm(x + linear(linear_gelu(x))), by calls of the three
// A layer of BERT (Devlin et al. 2018): x[M, D] are the T tokens of B sentences, M = B T, and attention of a sentence sees those of which
// keep[B, T] holds. w_qkv[D, 3 D] has the columns of queries, keys and values side by side, each by heads.
Algorithm encoder_layer(const Numerics &n, const Options &o);
// L such layers, whose weights are stacked: w_qkv[L, D, 3 D] and so on.
Algorithm encoder(const Numerics &n, const Options &o);
std::vector<Option> encoder_options();  // heads

}  // namespace tessera::library
