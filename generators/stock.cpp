// The stock generator: the standard library of algorithms.
#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "generators/generator.h"

int main(int argc, char **argv) {
    namespace library = tessera::library;
    tessera::Registry registry;
    registry.family("products")
        .add("matmul", "y[M, N] = x[M, K] w[K, N]", library::matmul)
        .add("matmul_wide", "y[M, N] = x[M, K] w[K, N], y in the accumulate type", library::matmul_wide)
        .add("matmul_u8s8", "y[M, N] = x[M, K] w[K, N], u8 by i8 to i32", library::matmul_u8s8)
        .add("matmul_s8s8", "y[M, N] = x[M, K] w[K, N], i8 by i8 to i32", library::matmul_s8s8)
        .add("linear", "y[M, N] = x[M, K] w[K, N] + b[N]", library::linear)
        .add("linear_gelu", "y[M, N] = gelu(x[M, K] w[K, N] + b[N])", library::linear_gelu)
        .add("gemv", "y[M] = a[M, K] x[K]", library::gemv)
        .add("linear_swiglu", "y[M, N] = silu(x[M, K] w[K, N]) (x[M, K] v[K, N])", library::linear_swiglu)
        .add("gemm", "y[M, N] = activation(scale x[M, K] w[K, N] + b[N] + r[M, N]), each as options say", library::gemm_options(),
             library::gemm)
        .add("batched_gemm", "gemm of x[B, M, K], w[B, K, N], with b[N] and r[B, M, N]", library::gemm_options(), library::batched_gemm)
        .add("matmul_qint4",
             "y[M, N] = sum over G of scale[N, G] (sum within a group of x[M, K] (codes[N, K] - 8 or zeros[N, G])), codes in u4",
             library::qint4_options(), library::matmul_qint4)
        .add("matmul_dynamic_qint4", "matmul_qint4 of rows that are rounded to i8 on the way, with a scale for each group",
             library::dynamic_qint4_options(), library::matmul_dynamic_qint4)
        .add("matmul_dynamic_qint8",
             "y[M, N] = x[M, K] w[K, N] w_scales[N], w in i8, rows of x rounded to i8 on the way, with a scale for each",
             library::matmul_dynamic_qint8)
        .add("linear_dynamic_qint8", "matmul_dynamic_qint8 plus b[N]", library::linear_dynamic_qint8)
        .add("matmul_mxfp8",
             "y[M, N] = sum over G of scale[N, G] (sum within a block of x[M, K] codes[N, K]), floats of 8 bits in blocks of 32",
             library::mxfp8_options(), library::matmul_mxfp8)
        .add("matmul_mxfp4", "matmul_mxfp8 of floats of 4 bits", library::matmul_mxfp4)
        .add("matmul_nvfp4", "matmul_mxfp4 in blocks of 16, with scales of 8 bits and one for the whole tensor", library::matmul_nvfp4)
        .family("activations")
        .add("gelu", "y[M, N] = gelu(x[M, N])", library::gelu)
        .add("gelu_tanh", "y[M, N] = gelu(x[M, N]), the approximation by tanh", library::gelu_tanh)
        .add("silu", "y[M, N] = silu(x[M, N])", library::silu)
        .add("swiglu", "y[M, N] = silu(gate[M, N]) up[M, N]", library::swiglu)
        .family("norms and softmax")
        .add("softmax", "y[M, N] = softmax of x[M, N] over N", library::softmax)
        .add("layernorm", "y[M, N] = layernorm of x[M, N] over N, times gamma[N], plus beta[N]", library::layernorm)
        .add("residual_layernorm", "y[M, N] = layernorm of (x + r)[M, N] over N, times gamma[N], plus beta[N]", library::residual_layernorm)
        .add("rmsnorm", "y[M, N] = x[M, N] over its root mean square along N, times gamma[N]", library::rmsnorm)
        .add("residual_rmsnorm", "total[M, N] = x + r, and y[M, N] = rmsnorm of it", library::residual_rmsnorm)
        .add("group_norm_nhwc", "y[N, P, G, C] = x[N, P, G, C] normalized over P and C, times gamma[G, C], plus beta[G, C]",
             library::group_norm_nhwc)
        .add("group_norm_nchw", "y[N, G, C, P] = x[N, G, C, P] normalized over C and P, times gamma[G, C], plus beta[G, C]",
             library::group_norm_nchw)
        .add("batch_norm", "y[M, C] = x[M, C] by the mean[C] and variance[C] of training, times gamma[C], plus beta[C]",
             library::batch_norm)
        .add("fold_batch_norm", "folded_w[K, C], folded_b[C] = weights w[K, C] and bias b[C] with a batch norm that follows them",
             library::fold_batch_norm)
        .add("logsumexp", "y[M] = log of the sum over N of exp(x[M, N])", library::logsumexp)
        .add("cross_entropy", "loss[M] = logsumexp of x[M, N] - x[M, id[M]]; 0 where id is outside", library::cross_entropy)
        .family("attention")
        .add("attention", "o[H, S, E] = softmax(q[H, S, D] k[H, T, D]^T / sqrt(D)) v[H, T, E]", library::attention)
        .add("attention_causal", "attention in which query i sees keys 0 ..= i", library::attention_causal)
        .add("attention_kept", "attention that sees the keys of which keep[T] holds", library::attention_kept)
        .add("attention_grouped",
             "attention of q[H, G, S, D], k[H, T, D], v[H, T, E]: causal from a position, windowed, masked, as options say",
             library::grouped_attention_options(), library::attention_grouped)
        .add("attention_decode", "o[H, G, E] = attention of one query a head, q[H, G, D], over a cache k[H, T, D], v[H, T, E]",
             library::attention_decode)
        .add("attention_cached", "o[B, H, G, S, E] = attention of the last S tokens, q[B, H, G, S, D], over a cache with lengths or pages",
             library::attention_cached_options(), library::attention_cached)
        .family("convolutions")
        .add("conv1d", "y[N, P, O] = sum over R, C of x[N, L, C] through windows along L, times w[R, C, O]", tessera::window_options(),
             library::conv1d)
        .add("conv2d_nhwc", "y[N, P, Q, O] = sum over R, S, C of x[N, H, W, C] through windows, times w[R, S, C, O]",
             tessera::window_options(), library::conv2d_nhwc)
        .add("conv2d_bias_relu_nhwc", "y[N, P, Q, O] = relu(conv2d_nhwc + b[O])", tessera::window_options(), library::conv2d_bias_relu_nhwc)
        .add("conv2d_nchw", "y[N, O, P, Q] = sum over R, S, C of x[N, C, H, W] through windows, times w[O, C, R, S]",
             tessera::window_options(), library::conv2d_nchw)
        .add("conv3d_ndhwc", "y[N, U, P, Q, O] = sum over T, R, S, C of x[N, D, H, W, C] through windows, times w[T, R, S, C, O]",
             tessera::window_options(), library::conv3d_ndhwc)
        .add("grouped_conv2d_nhwc", "conv2d_nhwc by groups: y[N, P, Q, G, O] of x[N, H, W, G, C], w[R, S, G, C, O]",
             tessera::window_options(), library::grouped_conv2d_nhwc)
        .add("depthwise_conv2d_nhwc", "y[N, P, Q, C] = sum over R, S of x[N, H, W, C] through windows, times w[R, S, C]",
             tessera::window_options(), library::depthwise_conv2d_nhwc)
        .family("pooling and resizing")
        .add("max_pool2d_nhwc", "y[N, P, Q, C] = maximum of x[N, H, W, C] over windows", library::pool_options(), library::max_pool2d_nhwc)
        .add("average_pool2d_nhwc", "y[N, P, Q, C] = mean of x[N, H, W, C] over windows, 0 outside", library::pool_options(),
             library::average_pool2d_nhwc)
        .family("convolutions")
        .add("conv2d_fused_nhwc", "y[N, P, Q, O] = activation(scale conv2d_nhwc + b[O] + r[N, P, Q, O]), each as options say",
             library::fused_window_options(), library::conv2d_fused_nhwc)
        .add("depthwise_conv2d_fused_nhwc", "the same of depthwise_conv2d_nhwc, with b[C] and r[N, P, Q, C]",
             library::fused_window_options(), library::depthwise_conv2d_fused_nhwc)
        .add("transposed_conv2d_nhwc", "y[N, P, Q, O]: x[N, H, W, C] times w[R, S, C, O], added up stride apart; then as conv2d_fused_nhwc",
             library::transposed_conv_options(), library::transposed_conv2d_nhwc)
        .family("pooling and resizing")
        .add("global_average_pool_nhwc", "y[N, C] = mean over H, W of x[N, H, W, C]", library::global_average_pool_nhwc)
        .add("resize_nearest_nhwc", "y[N, P, Q, C] = x[N, floor(p H / P), floor(q W / Q), C]", library::resize_nearest_nhwc)
        .add("resize_bilinear_nhwc", "y[N, P, Q, C] = x[N, H, W, C] between the nearest rows and columns", library::resize_options(),
             library::resize_bilinear_nhwc)
        .add("resize_bicubic_nhwc", "y[N, P, Q, C] = x[N, H, W, C] between the four nearest rows and columns", library::resize_options(),
             library::resize_bicubic_nhwc)
        .family("sums")
        .add("column_sum", "y[N] = sum over M of x[M, N]", library::column_sum)
        .add("cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N", library::cumulative_sum)
        .add("reverse_cumulative_sum", "y[M, N] = inclusive suffix sums of x[M, N] along N", library::reverse_cumulative_sum)
        .add("segmented_cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N, anew wherever segment[N] changes",
             library::segmented_cumulative_sum)
        .add("segmented_sum", "y[B, N] = sum of the rows offsets[b] ..= offsets[b + 1] - 1 of x[T, N]", library::segmented_sum)
        .family("segments")
        .add("grouped_matmul", "y[T, N] = the rows of x[T, K] in segment b times w[b] of w[B, K, N]", library::grouped_matmul)
        .add("attention_segments", "o[S, H, E] = attention of q[S, H, D] over k[T, H, D], v[T, H, E], each segment by itself",
             library::attention_segments_options(), library::attention_segments)
        .add("segmented_softmax", "y[T, N] = softmax of x[T, N] over the rows of each segment", library::segmented_softmax)
        .add("segmented_mean", "y[B, N] = means of the rows of x[T, N] in each segment", library::segmented_mean)
        .add("segmented_max", "y[B, N] = maxima of the rows of x[T, N] in each segment", library::segmented_max)
        .add("embedding_bag", "y[B, D] = sums of the rows ids[t] of table[V, D] over each segment of ids[T]", library::embedding_bag)
        .add("spmv", "y[B] = the sparse matrix values[T], columns[T], offsets[B + 1] (CSR) times x[C]", library::spmv)
        .add("spmm", "y[B, N] = the sparse matrix values[T], columns[T], offsets[B + 1] (CSR) times x[C, N]", library::spmm)
        .family("Fourier transforms")
        .add("fft", "y[B, N] = the Fourier transform of x[B, N], N = 2 points: real and imaginary parts alternate",
             library::fourier_options(), library::fft)
        .add("ifft", "y[B, N] = the inverse Fourier transform of x[B, N], N = 2 points", library::fourier_options(), library::ifft)
        .add("rfft", "y[B, K] = the first N / 2 + 1 points, in pairs, of the Fourier transform of the real x[B, N]",
             library::fourier_options(), library::rfft)
        .add("irfft", "y[B, N] = the real numbers whose rfft is x[B, K]", library::fourier_options(), library::irfft)
        .family("states and training")
        .add("ring_append", "cache[B, (position + t) mod W, D] = x[B, t, D], in place", library::ring_append)
        .add("cache_append", "k[B, S, H, D], v[B, S, H, E] become positions length[B] + S of a cache, in place",
             library::cache_append_options(), library::cache_append)
        .add("cache_copy_pages", "pages[pairs[N, 1], X] = pages[pairs[N, 0], X], in place", library::cache_copy_pages)
        .add("adamw", "m, v, w = a step of AdamW by the gradient g, in place", library::adamw_options(), library::adamw)
        .add("sgd_momentum", "m, w = a step of gradient descent with momentum by the gradient g, in place", library::sgd_momentum)
        .family("recurrences")
        .add("lstm", "y[T, N, H], h_last, c_last = T steps of an LSTM on x[T, N, I] from h[N, H], c[N, H]", library::lstm_options(),
             library::lstm)
        .add("gru", "y[T, N, H], h_last = T steps of a gated recurrent unit on x[T, N, I] from h[N, H]", library::gru_options(),
             library::gru)
        .add("rnn", "y[T, N, H], h_last = T steps of h = tanh(x w + h r + b) on x[T, N, I] from h[N, H]", library::rnn_options(),
             library::rnn)
        .add("linear_recurrence", "y[T, N, H], h_last = T steps of h = a h + b from h[N, H], with matrices a[T, N, H, K]",
             library::linear_recurrence_options(), library::linear_recurrence)
        .add("causal_conv1d",
             "y[N, L, O] = conv1d of x[N, L, C] behind history[N, J, C], of what came before; history_last is for what follows",
             library::causal_conv1d_options(), library::causal_conv1d)
        .family("tokens")
        .add("embedding", "y[T, D] = the row ids[t] of table[V, D]; 0 where it is outside", library::embedding)
        .add("rotary", "y = x[T, H, 2, C] or x[T, H, C, 2] turned by the angles of its positions", library::rotary_options(),
             library::rotary)
        .family("selection")
        .add("argmax", "at[M] = where x[M, N] is largest along N, the first of equals", library::argmax)
        .add("top_k", "y[M, K], at[M, K] = the k largest of x[M, N], downwards, and where they are", library::top_k_options(),
             library::top_k)
        .add("sort", "y[M, N], at[M, N] = x[M, N] sorted upwards, and where it was", library::sort_options(), library::sort)
        .family("rearrangement")
        .add("transpose", "y[N, M] = x[M, N]", library::transpose)
        .add("concat", "y[M, C] = a[M, A], then b[M, B]", library::concat)
        .add("slice", "y[M, L] = x[M, begin + step l]; 0 where that is outside", library::slice_options(), library::slice)
        .family("scattering")
        .add("histogram", "counts[V] = how many of ids[N] are v; ids outside are dropped", library::histogram)
        .add("embedding_gradient", "grad[V, D] = the sum of the rows of g[T, D] whose ids[T] are v", library::embedding_gradient)
        .family("random numbers")
        .add("random_uniform", "y[N] = uniform numbers of 0 ..< 1, by Philox from seed and step", library::random_uniform)
        .add("random_normal", "y[N] = normal numbers of mean 0 and variance 1, by Philox from seed and step", library::random_normal)
        .add("dropout", "y[M, N] = x[M, N] / (1 - p) where a random number keeps it, 0 elsewhere", library::dropout)
        .family("whole layers and models")
        .add("feed_forward", "y[M, D] = layernorm(x + linear(linear_gelu(x)))", library::feed_forward)
        .add("encoder_layer", "y[M, D] = a layer of BERT on x[M, D], the T tokens of B sentences", library::encoder_options(),
             library::encoder_layer)
        .add("encoder", "y[M, D] = L layers of BERT, whose weights are stacked", library::encoder_options(), library::encoder);
    return tessera::generator_main(argc, argv, registry);
}
