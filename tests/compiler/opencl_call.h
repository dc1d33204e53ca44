/* Calls a kernel for OpenCL on tensors of the host: copies of what they span are on the device while it runs. C99, for glue. */
#ifndef TESSERA_TESTS_OPENCL_CALL_H
#define TESSERA_TESTS_OPENCL_CALL_H

#include "autotune/measure/device_memory.h"

enum { MOST_ON_DEVICE = 64 };

typedef struct OnDevice {
    TessTensor tensor;
    unsigned char *lowest; /* on the host */
    size_t bytes;
} OnDevice;

/* Null data stays null. */
static int put_on_device(OnDevice *d, const TessTensor *t) {
    const int half = t->type.bits == 4; /* two elements to a byte: all is counted in bytes */
    const int64_t size = (t->type.bits + 7) / 8;
    int64_t below = 0, above = 0, dense = 1, any = 1, axis;
    for (axis = t->rank - 1; axis >= 0; --axis) {
        const int last = axis == t->rank - 1;
        const int64_t extent = half && last ? (t->extents[axis] + 1) / 2 : t->extents[axis];
        const int64_t stride = t->strides == NULL ? dense : half && !last ? t->strides[axis] / 2 : t->strides[axis];
        dense *= extent > 1 ? extent : 1;
        if (extent == 0) any = 0;
        if (extent > 1 && stride < 0) below -= stride * (extent - 1);
        if (extent > 1 && stride > 0) above += stride * (extent - 1);
    }
    d->tensor = *t;
    d->tensor.device.type = TESS_OPENCL;
    d->tensor.data = NULL;
    d->bytes = 0;
    if (!any || t->data == NULL) return 0;
    d->lowest = (unsigned char *)t->data + t->byte_offset - below * size;
    d->bytes = (size_t)((below + above + 1) * size);
    d->tensor.data = device_memory(d->lowest, d->bytes);
    d->tensor.byte_offset = (uint64_t)(below * size);
    return d->tensor.data == NULL;
}

static void told(void *state, int32_t status) { *(volatile int32_t *)state = status; }

/* The status of the call, or where `bytes` is not null of the workspace query. -1000 where there is no device, -1001 where the completion
 * is not called, -1002 where the device has no room for a tensor. */
static int call_on_device(const TessKernel *kernel, const TessTensor *const *tensors, int n, const void *parameters,
                          const TessContext *given, uint64_t *bytes) {
    static TessContext opened;
    OnDevice there[MOST_ON_DEVICE];
    const TessTensor *pointers[MOST_ON_DEVICE];
    TessContext context = *given;
    volatile int32_t told_status = -1;
    int status = 0, i;
    if (opened.size == 0) {
        opened = tess_context();
        if (device_open(&opened) != 0) return -1000;
    }
    context.device = opened.device;
    context.stream = opened.stream;
    context.done = told;
    context.done_state = (void *)&told_status;
    for (i = 0; i < n; ++i) {
        if (put_on_device(&there[i], tensors[i]) != 0) status = -1002;
        pointers[i] = &there[i].tensor;
    }
    if (context.workspace != NULL) context.workspace = device_memory(context.workspace, context.workspace_bytes);
    if (status == 0)
        status = bytes != NULL ? tess_call_workspace(kernel, pointers, &context, bytes) : tess_call(kernel, pointers, parameters, &context);
    device_wait();
    for (i = 0; i < 100000000 && bytes == NULL && status == 0 && told_status == -1; ++i) continue;
    if (bytes == NULL && status == 0 && told_status != 0) status = -1001;
    for (i = 0; i < n; ++i) {
        if (there[i].bytes == 0) continue;
        if (bytes == NULL) device_read(there[i].tensor.data, there[i].lowest, there[i].bytes);
        device_release(there[i].tensor.data);
    }
    device_release(context.workspace);
    return status;
}

#endif
