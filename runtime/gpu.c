#include "runtime/gpu.h"

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
    int64_t wanted = spec[TESS_SPEC_N_DIMS] + spec[TESS_SPEC_N_PARAMETERS] + count;
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) wanted += tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK];
    if (wanted > TESS_GPU_MAX_NUMBERS) return -1;
    for (i = 0; i < spec[TESS_SPEC_N_DIMS]; ++i) numbers[n++] = frame[tess_frame_dim(i)];
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) {
        for (axis = 0; axis + 1 < tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK]; ++axis) numbers[n++] = frame[tess_frame_stride(spec, t, axis)];
    }
    for (i = 0; i < spec[TESS_SPEC_N_PARAMETERS]; ++i) numbers[n++] = frame[tess_frame_parameter(spec, i)];
    for (i = 0; i < count; ++i) numbers[n++] = own[i];
    return (int32_t)n;
}

void tess_gpu1_memory(const int64_t *spec, const int64_t *frame, int64_t tensor, void **address, uint64_t *bytes) {
    const int64_t *record;
    int64_t axis, elements = 1;
    if (tensor == spec[TESS_SPEC_N_TENSORS]) {
        *address = (void *)(uintptr_t)frame[tess_frame_workspace(spec)];
        *bytes = *address == NULL ? 0 : (uint64_t)frame[tess_frame_shared_bytes(spec)];
        return;
    }
    record = tess_spec_tensor(spec, tensor);
    for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis) {
        const int64_t extent = frame[tess_frame_dim(record[TESS_SPEC_TENSOR_AXES + axis])];
        if (extent == 0) elements = 0;
        if (elements > 0) elements += (extent - 1) * frame[tess_frame_stride(spec, tensor, axis)];
    }
    *address = (void *)(uintptr_t)frame[tess_frame_data(spec, tensor)];
    *bytes = (uint64_t)elements * tess_dtype_size((int32_t)record[TESS_SPEC_TENSOR_DTYPE]);
}
