// The stock generator: the standard library of algorithms.
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
        .add("gemv", "y[M] = a[M, K] x[K]", library::gemv)
        .add("softmax", "y[M, N] = softmax of x[M, N] over N", library::softmax)
        .add("layernorm", "y[M, N] = layernorm of x[M, N] over N, times gamma[N], plus beta[N]", library::layernorm)
        .add("residual_layernorm", "y[M, N] = layernorm of (x + r)[M, N] over N, times gamma[N], plus beta[N]", library::residual_layernorm)
        .add("rmsnorm", "y[M, N] = x[M, N] over its root mean square along N, times gamma[N]", library::rmsnorm)
        .add("attention", "o[H, S, E] = softmax(q[H, S, D] k[H, T, D]^T / sqrt(D)) v[H, T, E]", library::attention)
        .add("attention_causal", "attention in which query i sees keys 0 ..= i", library::attention_causal)
        .add("column_sum", "y[N] = sum over M of x[M, N]", library::column_sum)
        .add("cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N", library::cumulative_sum)
        .add("reverse_cumulative_sum", "y[M, N] = inclusive suffix sums of x[M, N] along N", library::reverse_cumulative_sum)
        .add("segmented_cumulative_sum", "y[M, N] = inclusive prefix sums of x[M, N] along N, anew wherever segment[N] changes", library::segmented_cumulative_sum)
        .add("segmented_sum", "y[B, N] = sum of the rows offsets[b] ..= offsets[b + 1] - 1 of x[T, N]", library::segmented_sum)
        .add("ring_append", "cache[B, (position + t) mod W, D] = x[B, t, D], in place", library::ring_append)
        .add("feed_forward", "y[M, D] = layernorm(x + linear(linear_gelu(x)))", library::feed_forward);
    return tessera::generator_main(argc, argv, registry);
}
