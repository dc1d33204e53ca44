/* Calls the kernel of examples/own_kernel from C, as the README shows, and compares it with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "linear_silu.h"

static int32_t silu_layer(float *x, float *w, float *b, float *y, int64_t rows) {
    const int64_t x_shape[] = {rows, 64}, w_shape[] = {64, 96}, b_shape[] = {96}, y_shape[] = {rows, 96};
    const TessTensor xs = tess_dense(x, TESS_F32, 2, x_shape), ws = tess_dense(w, TESS_F32, 2, w_shape);
    const TessTensor bs = tess_dense(b, TESS_F32, 1, b_shape), ys = tess_dense(y, TESS_F32, 2, y_shape);

    TessFault fault = tess_fault();
    TessContext context = tess_context(); /* one thread; a pool and its size would go here */
    context.fault = &fault;
    uint64_t bytes = 0;
    int32_t status = linear_silu_workspace(&xs, &ws, &bs, &ys, &context, &bytes);
    context.workspace_bytes = (bytes + 63) / 64 * 64;
    context.workspace = aligned_alloc(TESS_WORKSPACE_ALIGNMENT, context.workspace_bytes);
    if (status == TESS_OK) status = linear_silu(&xs, &ws, &bs, &ys, &context);
    free(context.workspace);

    char words[256];
    if (status != TESS_OK) {
        tess_status_message(status, &fault, linear_silu_argument_names, words, sizeof words);
        fprintf(stderr, "linear_silu: %s\n", words);
    }
    return status;
}

int main(void) {
    enum { rows = 37, no_avx2 = 77 };
    static float x[rows * 64], w[64 * 96], b[96], y[rows * 96];
    double worst = 0;
    int i, n, k, status;
    for (i = 0; i < rows * 64; i++) x[i] = (float)(i % 17) / 16 - 0.5f;
    for (i = 0; i < 64 * 96; i++) w[i] = (float)(i % 23) / 22 - 0.5f;
    for (i = 0; i < 96; i++) b[i] = (float)(i % 5);
    status = silu_layer(x, w, b, y, rows);
    if (tess_status_code(status) == TESS_CPU) return no_avx2;
    if (status != TESS_OK) return 1;
    for (i = 0; i < rows; i++)
        for (n = 0; n < 96; n++) {
            double sum = b[n];
            for (k = 0; k < 64; k++) sum += (double)x[i * 64 + k] * w[k * 96 + n];
            worst = fmax(worst, fabs(sum / (1 + exp(-sum)) - y[i * 96 + n]));
        }
    printf("largest difference from plain loops: %.2g\n", worst);
    return worst < 1e-5 && tess_status_code(silu_layer(NULL, w, b, y, rows)) == TESS_NULL_DATA ? 0 : 1;
}
