/* Runs the kernels `product` and `row_softmax` on two threads and compares them with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "product.h"
#include "row_softmax.h"

enum { M = 37, N = 24, K = 19 };

static float x[M * K], w[K * N], y[M * N], p[M * N];

static TessFault fault;

static void check(int32_t status, const char *const *names) {
    char words[256];
    if (status == TESS_OK) return;
    tess_status_message(status, &fault, names, words, sizeof words);
    printf("%s\n", words);
    exit(1);
}

static void provide(TessContext *context, uint64_t bytes) {
    context->workspace_bytes = (bytes + 63) / 64 * 64;
    context->workspace = bytes ? aligned_alloc(TESS_WORKSPACE_ALIGNMENT, context->workspace_bytes) : NULL;
}

int main(void) {
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, y_shape[] = {M, N};
    const TessTensor xs = tess_dense(x, TESS_F32, 2, x_shape), ws = tess_dense(w, TESS_F32, 2, w_shape);
    const TessTensor ys = tess_dense(y, TESS_F32, 2, y_shape), ps = tess_dense(p, TESS_F32, 2, y_shape);
    TessContext context = tess_context();
    TessPool *pool = tess_pool_create(2);
    double worst = 0;
    uint64_t bytes = 0;
    int m, n, k;
    for (k = 0; k < M * K; ++k) x[k] = (float)(k % 17) / 16 - 0.5f;
    for (k = 0; k < K * N; ++k) w[k] = (float)(k % 23) / 22 - 0.5f;
    fault = tess_fault();
    context.fault = &fault;
    context.threads = 2;
    context.pool = pool;
    check(product_workspace(&xs, &ws, &ys, &context, &bytes), product_argument_names);
    provide(&context, bytes);
    check(product(&xs, &ws, &ys, &context), product_argument_names);
    free(context.workspace);
    check(row_softmax_workspace(&ys, &ps, &context, &bytes), row_softmax_argument_names);
    provide(&context, bytes);
    check(row_softmax(&ys, &ps, &context), row_softmax_argument_names);
    free(context.workspace);
    tess_pool_destroy(pool);
    for (m = 0; m < M; ++m) {
        double sums[N], total = 0;
        for (n = 0; n < N; ++n) {
            sums[n] = 0;
            for (k = 0; k < K; ++k) sums[n] += (double)x[m * K + k] * w[k * N + n];
            total += exp(sums[n]);
        }
        for (n = 0; n < N; ++n) worst = fmax(worst, fmax(fabs(sums[n] - y[m * N + n]), fabs(exp(sums[n]) / total - p[m * N + n])));
    }
    printf("largest error %g\n", worst);
    return worst < 1e-5 ? 0 : 1;
}
