/* Calls a kernel of a bundle from C, as docs/bundle.md shows: bundle_app BUNDLE KERNEL ROWS. It takes x[M, K] and the weights w[K, N] and
 * b[N], and gives y[M, N], whose bytes are written. tests/generators/replay.py compares them with those of a linked kernel. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/bundle/bundle.h"

static int32_t call_up(const char *path, const char *name, const TessTensor *x, const TessTensor *y, TessBundleError *error) {
    TessContext context = tess_context();
    TessKernel kernel = tess_kernel();
    TessBundle *bundle = NULL;
    TessTensor w, b;
    uint64_t bytes = 0;
    void *memory = NULL;
    int32_t status = tess_bundle_bytes(path, &bytes, error);
    if (status == TESS_OK) memory = malloc(bytes);
    if (status == TESS_OK) status = tess_bundle_open(path, NULL, memory, bytes, &bundle, error);
    if (status == TESS_OK) status = tess_bundle_kernel(bundle, name, &kernel, error);
    if (status == TESS_OK) status = tess_bundle_weight(bundle, name, "w", &w, error);
    if (status == TESS_OK) status = tess_bundle_weight(bundle, name, "b", &b, error);
    if (status == TESS_OK) {
        const TessTensor *tensors[] = {x, &w, &b, y};
        status = tess_call_workspace(&kernel, tensors, &context, &context.workspace_bytes);
        context.workspace_bytes = (context.workspace_bytes + 63) / 64 * 64;
        context.workspace = aligned_alloc(TESS_WORKSPACE_ALIGNMENT, context.workspace_bytes + 64);
        if (status == TESS_OK) status = tess_call(&kernel, tensors, NULL, &context);
        free(context.workspace);
    }
    tess_bundle_close(bundle);
    free(memory);
    return status;
}

int main(int count, char **words) {
    enum { K = 32, N = 48 };
    const int64_t rows = count == 4 ? atoi(words[3]) : 0, xs[] = {rows, K}, ys[] = {rows, N};
    float *x = calloc((size_t)rows * K + 1, sizeof *x), *y = calloc((size_t)rows * N + 1, sizeof *y);
    const TessTensor xt = tess_dense(x, TESS_F32, 2, xs), yt = tess_dense(y, TESS_F32, 2, ys);
    TessBundleError error = {0, ""};
    int64_t i;
    int32_t status;
    if (count != 4) return 2;
    for (i = 0; i < rows * K; ++i) x[i] = (float)(i % 17) / 16 - 0.5f;
    status = call_up(words[1], words[2], &xt, &yt, &error);
    if (status != TESS_OK) fprintf(stderr, "%s: %s\n", tess_status_kind(status), error.text);
    else fwrite(y, sizeof *y, (size_t)(rows * N), stdout);
    free(x);
    free(y);
    return status != TESS_OK;
}
