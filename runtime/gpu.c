#include "runtime/gpu.h"

/* Elements from the first of a tensor down to its lowest address and up to its highest, which axes of negative strides reach and
 * those of positive ones; `any` is 0 where there are none. */
typedef struct Reach {
    int64_t below, above;
    int any;
} Reach;

static Reach reach_of(const int64_t *spec, const int64_t *frame, int64_t tensor) {
    const int64_t *record = tess_spec_tensor(spec, tensor);
    Reach reach = {0, 0, 1};
    int64_t axis;
    for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis) {
        const int64_t extent = frame[tess_frame_dim(record[TESS_SPEC_TENSOR_AXES + axis])];
        const int64_t stride = frame[tess_frame_stride(spec, tensor, axis)];
        if (extent == 0) reach.any = 0;
        if (extent > 1 && stride < 0) reach.below -= stride * (extent - 1);
        if (extent > 1 && stride > 0) reach.above += stride * (extent - 1);
    }
    if (!reach.any) reach.below = 0;
    return reach;
}

void tess_gpu1_start(TessGpuRun *run, const TessGpuProgram *program, const int64_t *spec, const int64_t *frame) {
    int64_t t;
    run->program = program;
    run->spec = spec;
    run->frame = frame;
    for (t = 0; t <= spec[TESS_SPEC_N_TENSORS]; ++t) run->buffers[t] = NULL;
}

int32_t tess_gpu1_numbers(const TessGpuRun *run, const int64_t *own, int32_t count, int64_t *numbers) {
    const int64_t *spec = run->spec, *frame = run->frame;
    int64_t n = 0, i, t, axis;
    int64_t wanted = spec[TESS_SPEC_N_DIMS] + spec[TESS_SPEC_N_TENSORS] + spec[TESS_SPEC_N_PARAMETERS] + count;
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) wanted += tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK];
    if (wanted > TESS_GPU_MAX_NUMBERS) return -1;
    for (i = 0; i < spec[TESS_SPEC_N_DIMS]; ++i) numbers[n++] = frame[tess_frame_dim(i)];
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) {
        for (axis = 0; axis + 1 < tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK]; ++axis)
            numbers[n++] = frame[tess_frame_stride(spec, t, axis)];
    }
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) numbers[n++] = reach_of(spec, frame, t).below;
    for (i = 0; i < spec[TESS_SPEC_N_PARAMETERS]; ++i) numbers[n++] = frame[tess_frame_parameter(spec, i)];
    for (i = 0; i < count; ++i) numbers[n++] = own[i];
    return (int32_t)n;
}

void tess_gpu1_memory(const int64_t *spec, const int64_t *frame, int64_t tensor, void **address, uint64_t *bytes) {
    uint64_t size;
    Reach reach;
    if (tensor == spec[TESS_SPEC_N_TENSORS]) {
        *address = (void *)(uintptr_t)frame[tess_frame_workspace(spec)];
        *bytes = *address == NULL ? 0 : (uint64_t)frame[tess_frame_shared_bytes(spec)];
        return;
    }
    size = tess_dtype_size((int32_t)tess_spec_tensor(spec, tensor)[TESS_SPEC_TENSOR_DTYPE]);
    reach = reach_of(spec, frame, tensor);
    *address = (void *)((uintptr_t)frame[tess_frame_data(spec, tensor)] - (uintptr_t)((uint64_t)reach.below * size));
    *bytes = reach.any ? (uint64_t)(reach.below + reach.above + 1) * size : 0;
}
