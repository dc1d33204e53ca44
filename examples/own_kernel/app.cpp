// Runs both kernels with two threads and compares them with plain loops.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "linear_silu.h"
#include "row_softmax.h"

static TessFault fault = tess_fault();

static void check(int32_t status, const char *const *names) {
    if (status == TESS_OK) return;
    char message[256];
    tess_status_message(status, &fault, names, message, sizeof message);
    std::fprintf(stderr, "%s\n", message);
    std::exit(1);
}

// Asks how much workspace the kernel wants, provides it, and runs.
template <typename Workspace, typename Kernel>
static void call(Workspace workspace, Kernel kernel, const char *const *names, TessContext context) {
    check(workspace(&context, &context.workspace_bytes), names);
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (context.workspace_bytes + 64) / 64 * 64), std::free);
    context.workspace = memory.get();
    check(kernel(&context), names);
}

int main() {
    constexpr int64_t M = 37, N = 96, K = 64;
    std::vector<float> x(M * K), w(K * N), b(N), y(M * N), p(M * N);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 17) / 16 - 0.5f;
    for (size_t i = 0; i < w.size(); i++) w[i] = static_cast<float>(i % 23) / 22 - 0.5f;
    for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(i % 5);
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, b_shape[] = {N}, y_shape[] = {M, N};
    const TessTensor xs = tess_dense(x.data(), TESS_F32, 2, x_shape), ws = tess_dense(w.data(), TESS_F32, 2, w_shape);
    const TessTensor bs = tess_dense(b.data(), TESS_F32, 1, b_shape), ys = tess_dense(y.data(), TESS_F32, 2, y_shape);
    const TessTensor ps = tess_dense(p.data(), TESS_F32, 2, y_shape);

    TessContext context = tess_context();
    context.threads = 2;
    context.fault = &fault;
    context.pool = tess_pool_create(context.threads);
    call([&](const TessContext *c, uint64_t *bytes) { return linear_silu_workspace(&xs, &ws, &bs, &ys, c, bytes); },
         [&](const TessContext *c) { return linear_silu(&xs, &ws, &bs, &ys, c); }, linear_silu_argument_names, context);
    call([&](const TessContext *c, uint64_t *bytes) { return row_softmax_workspace(&ys, &ps, c, bytes); },
         [&](const TessContext *c) { return row_softmax(&ys, &ps, c); }, row_softmax_argument_names, context);
    tess_pool_destroy(const_cast<TessPool *>(context.pool));

    double worst = 0;
    for (int64_t m = 0; m < M; m++) {
        std::vector<double> row(N);
        double total = 0;
        for (int64_t n = 0; n < N; n++) {
            double sum = b[n];
            for (int64_t k = 0; k < K; k++) sum += double{x[m * K + k]} * w[k * N + n];
            row[n] = sum / (1 + std::exp(-sum));
            worst = std::max(worst, std::abs(row[n] - y[m * N + n]));
            total += std::exp(row[n]);
        }
        for (int64_t n = 0; n < N; n++) worst = std::max(worst, std::abs(std::exp(row[n]) / total - p[m * N + n]));
    }
    std::printf("largest difference from plain loops: %.2g\n", worst);
    return worst < 1e-5 ? 0 : 1;
}
