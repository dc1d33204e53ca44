// The stock generator: the standard library of algorithms.
#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "generators/generator.h"

int main(int argc, char **argv) {
    namespace library = tessera::library;
    tessera::Registry registry;
    registry.add("matmul", "y[M, N] = x[M, K] w[K, N]", library::matmul)
        .add("matmul_wide", "y[M, N] = x[M, K] w[K, N], y in the accumulate type", library::matmul_wide)
        .add("matmul_u8s8", "y[M, N] = x[M, K] w[K, N], u8 by i8 to i32", library::matmul_u8s8)
        .add("matmul_s8s8", "y[M, N] = x[M, K] w[K, N], i8 by i8 to i32", library::matmul_s8s8)
        .add("matmul_qint8", "y[M, N] = x[M, K] w[K, N] scale[N], w in i8, y in the accumulate type", library::matmul_qint8)
        .add("linear", "y[M, N] = x[M, K] w[K, N] + b[N]", library::linear)
        .add("linear_gelu", "y[M, N] = gelu(x[M, K] w[K, N] + b[N])", library::linear_gelu)
        .add("linear_qint8", "y[M, N] = x[M, K] w[K, N] scale[N] + b[N], w in i8", library::linear_qint8)
        .add("linear_gelu_qint8", "y[M, N] = gelu(x[M, K] w[K, N] scale[N] + b[N]), w in i8", library::linear_gelu_qint8)
        .add("gemv", "y[M] = a[M, K] x[K]", library::gemv)
        .add("softmax", "y[M, N] = softmax of x[M, N] over N", library::softmax)
        .add("layernorm", "y[M, N] = layernorm of x[M, N] over N, times gamma[N], plus beta[N]", library::layernorm)
        .add("residual_layernorm", "y[M, N] = layernorm of (x + r)[M, N] over N, times gamma[N], plus beta[N]", library::residual_layernorm)
        .add("rmsnorm", "y[M, N] = x[M, N] over its root mean square along N, times gamma[N]", library::rmsnorm)
        .add("attention", "o[H, S, E] = softmax(q[H, S, D] k[H, T, D]^T / sqrt(D)) v[H, T, E]", library::attention)
        .add("attention_causal", "attention in which query i sees keys 0 ..= i", library::attention_causal)
        .add("attention_kept", "attention that sees the keys of which keep[T] holds", library::attention_kept)
        .add("conv1d", "y[N, P, O] = sum over R, C of x[N, L, C] through windows along L, times w[R, C, O]", tessera::window_options(),
             library::conv1d)
        .add("conv2d_nhwc", "y[N, P, Q, O] = sum over R, S, C of x[N, H, W, C] through windows, times w[R, S, C, O]",
             tessera::window_options(), library::conv2d_nhwc)
        .add("conv2d_bias_relu_nhwc", "y[N, P, Q, O] = relu(conv2d_nhwc + b[O])", tessera::window_options(), library::conv2d_bias_relu_nhwc)
        .add("conv2d_nchw", "y[N, O, P, Q] = sum over R, S, C of x[N, C, H, W] through windows, times w[O, C, R, S]",
             tessera::window_options(), library::conv2d_nchw)
        .add("grouped_conv2d_nhwc", "conv2d_nhwc by groups: y[N, P, Q, G, O] of x[N, H, W, G, C], w[R, S, G, C, O]",
             tessera::window_options(), library::grouped_conv2d_nhwc)
        .add("depthwise_conv2d_nhwc", "y[N, P, Q, C] = sum over R, S of x[N, H, W, C] through windows, times w[R, S, C]",
             tessera::window_options(), library::depthwise_conv2d_nhwc)
        .add("max_pool2d_nhwc", "y[N, P, Q, C] = maximum of x[N, H, W, C] over windows", library::pool_options(), library::max_pool2d_nhwc)
        .add("average_pool2d_nhwc", "y[N, P, Q, C] = mean of x[N, H, W, C] over windows, 0 outside", library::pool_options(),
             library::average_pool2d_nhwc)
        .add("column_sum", "y[N] = sum over M of x[M, N]", library::column_sum)
        .add("cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N", library::cumulative_sum)
        .add("reverse_cumulative_sum", "y[M, N] = inclusive suffix sums of x[M, N] along N", library::reverse_cumulative_sum)
        .add("segmented_cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N, anew wherever segment[N] changes",
             library::segmented_cumulative_sum)
        .add("segmented_sum", "y[B, N] = sum of the rows offsets[b] ..= offsets[b + 1] - 1 of x[T, N]", library::segmented_sum)
        .add("fft", "y[B, N] = the Fourier transform of x[B, N], N = 2 points: real and imaginary parts alternate",
             library::fourier_options(), library::fft)
        .add("ifft", "y[B, N] = the inverse Fourier transform of x[B, N], N = 2 points", library::fourier_options(), library::ifft)
        .add("rfft", "y[B, K] = the first N / 2 + 1 points, in pairs, of the Fourier transform of the real x[B, N]",
             library::fourier_options(), library::rfft)
        .add("irfft", "y[B, N] = the real numbers whose rfft is x[B, K]", library::fourier_options(), library::irfft)
        .add("ring_append", "cache[B, (position + t) mod W, D] = x[B, t, D], in place", library::ring_append)
        .add("adamw", "m, v, w = a step of AdamW by the gradient g, in place", library::adamw)
        .add("histogram", "counts[V] = how many of ids[N] are v; ids outside are dropped", library::histogram)
        .add("embedding_gradient", "grad[V, D] = the sum of the rows of g[T, D] whose ids[T] are v", library::embedding_gradient)
        .add("random_uniform", "y[N] = uniform numbers of 0 ..< 1, by Philox from seed and step", library::random_uniform)
        .add("random_normal", "y[N] = normal numbers of mean 0 and variance 1, by Philox from seed and step", library::random_normal)
        .add("dropout", "y[M, N] = x[M, N] / (1 - p) where a random number keeps it, 0 elsewhere", library::dropout)
        .add("feed_forward", "y[M, D] = layernorm(x + linear(linear_gelu(x)))", library::feed_forward)
        .add("encoder_layer", "y[M, D] = a layer of BERT on x[M, D], the T tokens of B sentences", library::encoder_options(),
             library::encoder_layer)
        .add("encoder", "y[M, D] = L layers of BERT, whose weights are stacked", library::encoder_options(), library::encoder)
        .add("encoder_qint8", "encoder with weights of products in i8 and a scale for each column", library::encoder_options(),
             library::encoder_qint8);
    return tessera::generator_main(argc, argv, registry);
}
