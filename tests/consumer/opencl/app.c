/* Runs the kernels `product` and `row_softmax` on a device, where the product stays between them, and compares them with plain loops. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "product.h"
#include "row_softmax.h"

enum { M = 37, N = 24, K = 19 };

static float x[M * K], w[K * N], p[M * N];
static cl_context device_context;
static TessFault fault;

static void check(int32_t status, const char *const *names) {
    char words[256];
    if (status == TESS_OK) return;
    tess_status_message(status, &fault, names, words, sizeof words);
    printf("%s\n", words);
    exit(1);
}

static cl_mem memory(size_t bytes, void *from) {
    return clCreateBuffer(device_context, CL_MEM_READ_WRITE | (from ? CL_MEM_COPY_HOST_PTR : 0), bytes ? bytes : 1, from, NULL);
}

static TessTensor on_device(cl_mem data, const int64_t *extents) {
    TessTensor tensor = tess_dense(data, TESS_F32, 2, extents);
    tensor.device.type = TESS_OPENCL;
    return tensor;
}

static void note(void *state, int32_t status) { *(volatile int32_t *)state = status; }

int main(void) {
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, y_shape[] = {M, N};
    cl_platform_id platform;
    cl_device_id device;
    cl_command_queue queue;
    TessTensor xs, ws, ys, ps;
    TessContext context = tess_context();
    volatile int32_t told = -1;
    double worst = 0;
    uint64_t bytes = 0, more = 0;
    int m, n, k;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 1;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 1;
    device_context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(device_context, device, 0, NULL);
    for (k = 0; k < M * K; ++k) x[k] = (float)(k % 17) / 16 - 0.5f;
    for (k = 0; k < K * N; ++k) w[k] = (float)(k % 23) / 22 - 0.5f;
    xs = on_device(memory(sizeof x, x), x_shape), ws = on_device(memory(sizeof w, w), w_shape);
    ys = on_device(memory(sizeof p, NULL), y_shape), ps = on_device(memory(sizeof p, NULL), y_shape);
    fault = tess_fault();
    context.fault = &fault;
    context.stream = queue;
    check(product_workspace(&xs, &ws, &ys, &context, &bytes), product_argument_names);
    check(row_softmax_workspace(&ys, &ps, &context, &more), row_softmax_argument_names);
    context.workspace_bytes = bytes > more ? bytes : more;
    context.workspace = memory(context.workspace_bytes, NULL);
    check(product(&xs, &ws, &ys, &context), product_argument_names);
    context.done = note, context.done_state = (void *)&told;
    check(row_softmax(&ys, &ps, &context), row_softmax_argument_names);
    clEnqueueReadBuffer(queue, ps.data, CL_TRUE, 0, sizeof p, p, 0, NULL, NULL);
    while (told == -1) clFinish(queue);
    if (told != TESS_OK) return 1;
    for (m = 0; m < M; ++m) {
        double sums[N], total = 0;
        for (n = 0; n < N; ++n) {
            sums[n] = 0;
            for (k = 0; k < K; ++k) sums[n] += (double)x[m * K + k] * w[k * N + n];
            total += exp(sums[n]);
        }
        for (n = 0; n < N; ++n) worst = fmax(worst, fabs(exp(sums[n]) / total - p[m * N + n]));
    }
    printf("largest error %g\n", worst);
    return worst < 1e-5 ? 0 : 1;
}
