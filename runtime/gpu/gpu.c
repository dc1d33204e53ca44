#include "runtime/gpu/gpu.h"

void tess_gpu2_start(TessGpuRun *run, const TessGpuProgram *program, const int64_t *spec, const int64_t *frame, const TessCall *call) {
    run->program = program;
    run->spec = spec;
    run->frame = frame;
    run->context = call->context;
    run->loaded = NULL;
    run->stream = run->context != NULL ? run->context->stream : NULL;
    run->in_order = 1;
}

/* Elements from the begin of a tensor's memory to the first: of a memory object, since other memory begins at the first. */
static int64_t first_of(const TessGpuRun *run, int64_t tensor) {
    const int64_t size = tess_unit_bytes(tess_spec_tensor(run->spec, tensor)[TESS_SPEC_TENSOR_DTYPE]);
    return run->spec[TESS_SPEC_DEVICE] == TESS_OPENCL ? run->frame[tess_frame_offset(run->spec, tensor)] / size : 0;
}

int32_t tess_gpu2_numbers(const TessGpuRun *run, const int64_t *own, int32_t count, int64_t *numbers) {
    const int64_t *spec = run->spec, *frame = run->frame;
    int64_t n = 0, i, t, axis;
    int64_t wanted = spec[TESS_SPEC_N_DIMS] + 2 * spec[TESS_SPEC_N_TENSORS] + 2 + spec[TESS_SPEC_N_PARAMETERS] + count;
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) wanted += tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK];
    if (wanted > TESS_GPU_MAX_LAUNCH) return -1;
    for (i = 0; i < spec[TESS_SPEC_N_DIMS]; ++i) numbers[n++] = frame[tess_frame_dim(i)];
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) {
        for (axis = 0; axis + 1 < tess_spec_tensor(spec, t)[TESS_SPEC_TENSOR_RANK]; ++axis)
            numbers[n++] = frame[tess_frame_stride(spec, t, axis)];
    }
    for (t = 0; t < spec[TESS_SPEC_N_TENSORS]; ++t) numbers[n++] = first_of(run, t);
    for (i = 0; i < spec[TESS_SPEC_N_PARAMETERS]; ++i) numbers[n++] = frame[tess_frame_parameter(spec, i)];
    for (i = 0; i < count; ++i) numbers[n++] = own[i];
    return (int32_t)n;
}

TessGpuLoaded *tess_gpu2_loaded(TessGpuProgram *program, const void *context, const void *device) {
    int i;
    for (i = 0; i < TESS_GPU_MAX_CONTEXTS; ++i) {
        TessGpuLoaded *loaded = &program->loaded[i];
        if (loaded->program == NULL || (loaded->context == context && loaded->device == device)) return loaded;
    }
    return NULL;
}
