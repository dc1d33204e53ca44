/* The loader on 64-bit ARM, under an emulator: a library that a C compiler wrote and, where one is given, a matmul that `generate` wrote.
 *
 *     load_arm64 <library of load_library.c> [<libmatmul.a>]
 *
 * Prints what is wrong and exits with 1. */
#include <stdio.h>
#include <string.h>

#include "runtime/abi/tessera.h"
#include "runtime/load/load.h"

static int failures;

static void check(int holds, const char *what) {
    if (!holds) printf("wrong: %s\n", what), ++failures;
}

static TessLoaded *load(const char *path) {
    TessLoaded *loaded;
    TessLoadError error;
    if (tess_load_file(path, &loaded, &error) != TESS_LOAD_OK)
        printf("%s: %s\n", tess_load_status_id(error.status), error.text), ++failures;
    return loaded;
}

static void plain_library(const char *path) {
    TessLoaded *loaded = load(path);
    int64_t (*run_steps)(int64_t, int64_t), (*count_up)(void), (*cleared)(char *, int64_t);
    float (*from_table)(int64_t);
    char bytes[64];
    int i, zeros = 0;
    if (!loaded) return;
    *(void **)&run_steps = tess_loaded_symbol(loaded, "run_steps");
    *(void **)&count_up = tess_loaded_symbol(loaded, "count_up");
    *(void **)&cleared = tess_loaded_symbol(loaded, "cleared");
    *(void **)&from_table = tess_loaded_symbol(loaded, "from_table");
    check(run_steps && count_up && cleared && from_table, "the names of functions");
    if (failures) return;
    check(run_steps(6, 0) == 42 && run_steps(2, 1) == 42, "a table of functions");
    check(count_up() == 41 && count_up() == 42 && run_steps(2, 1) == 44, "data that two objects share");
    memset(bytes, 1, sizeof bytes);
    check(cleared(bytes, 64) == 106, "a call outside");
    for (i = 0; i < 64; ++i) zeros += bytes[i] == 0;
    check(zeros == 64, "memset");
    check(from_table(1) == 1.5f, "a table of floats");
    tess_loaded_close(loaded);
}

static void matmul(const char *path) {
    enum { M = 5, N = 7, K = 9 };
    TessLoaded *loaded = load(path);
    int32_t (*multiply)(const TessTensor *const *, const TessContext *);
    float x[M * K], w[K * N], y[M * N];
    const int64_t xs[] = {M, K}, ws[] = {K, N}, ys[] = {M, N};
    const TessTensor tensors[] = {tess_dense(x, TESS_F32, 2, xs), tess_dense(w, TESS_F32, 2, ws), tess_dense(y, TESS_F32, 2, ys)};
    const TessTensor *table[] = {&tensors[0], &tensors[1], &tensors[2]};
    TessContext context = tess_context();
    static uint64_t workspace[1 << 16] __attribute__((aligned(64)));
    int i, j, k, equal = 0;
    if (!loaded) return;
    *(void **)&multiply = tess_loaded_symbol(loaded, "matmul_table");
    check(multiply != NULL, "the kernel's name");
    if (failures) return;
    for (i = 0; i < M * K; ++i) x[i] = (float)(i % 11 - 5);
    for (i = 0; i < K * N; ++i) w[i] = (float)(i % 13 - 6);
    context.workspace = workspace;
    context.workspace_bytes = sizeof workspace;
    check(multiply(table, &context) == TESS_OK, "the status of a kernel");
    for (i = 0; i < M; ++i)
        for (j = 0; j < N; ++j) {
            float sum = 0;
            for (k = 0; k < K; ++k) sum += x[i * K + k] * w[k * N + j];
            equal += sum == y[i * N + j];
        }
    check(equal == M * N, "what a kernel computes");
    tess_loaded_close(loaded);
}

int main(int count, char **words) {
    if (count < 2) return 2;
    plain_library(words[1]);
    if (count > 2) matmul(words[2]);
    return failures != 0;
}
