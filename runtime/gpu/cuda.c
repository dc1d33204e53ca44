#include <cuda.h>
#include <pthread.h>

#include "runtime/gpu/gpu.h"

/* Devices in their primary contexts, which CUDA's own runtime uses as well. */
static struct {
    pthread_mutex_t lock;
    CUcontext contexts[TESS_GPU_MAX_CONTEXTS]; /* null: not opened */
} here = {PTHREAD_MUTEX_INITIALIZER, {NULL}};

static int32_t fault(int32_t kind) { return tess_abi2_status(kind, -1); }

static int32_t open_device(int32_t number) {
    CUdevice device;
    if (number < 0 || number >= TESS_GPU_MAX_CONTEXTS) return fault(TESS_GPU_NONE);
    if (here.contexts[number] != NULL) return TESS_OK;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, number) != CUDA_SUCCESS) return fault(TESS_GPU_NONE);
    return cuDevicePrimaryCtxRetain(&here.contexts[number], device) == CUDA_SUCCESS ? TESS_OK : fault(TESS_GPU_NONE);
}

static int32_t load(TessGpuProgram *program, TessGpuLoaded *loaded, CUcontext context) {
    CUmodule module;
    CUdeviceptr constants = 0;
    if (cuModuleLoadData(&module, program->image) != CUDA_SUCCESS) return fault(TESS_GPU_BUILD);
    if (program->constants != NULL && (cuMemAlloc(&constants, program->constant_bytes) != CUDA_SUCCESS ||
                                       cuMemcpyHtoD(constants, program->constants, program->constant_bytes) != CUDA_SUCCESS)) {
        if (constants != 0) cuMemFree(constants);
        cuModuleUnload(module);
        return fault(TESS_GPU_MEMORY);
    }
    loaded->constants = (void *)(uintptr_t)constants;
    loaded->context = context;
    loaded->program = module;
    return TESS_OK;
}

int32_t tess_cuda2_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame, void *call) {
    const int32_t number = ((const TessCall *)call)->device;
    TessGpuLoaded *loaded = NULL;
    int32_t status;
    tess_gpu2_start(run, program, spec, frame, call);
    pthread_mutex_lock(&here.lock);
    status = open_device(number);
    if (status == TESS_OK && cuCtxPushCurrent(here.contexts[number]) != CUDA_SUCCESS) status = fault(TESS_GPU_NONE);
    if (status == TESS_OK) {
        loaded = tess_gpu2_loaded(program, here.contexts[number], NULL);
        if (loaded == NULL) status = fault(TESS_GPU_MEMORY);
        else if (loaded->program == NULL) status = load(program, loaded, here.contexts[number]);
        if (status != TESS_OK) cuCtxPopCurrent(NULL);
    }
    pthread_mutex_unlock(&here.lock);
    if (status == TESS_OK) run->loaded = loaded;
    return status;
}

int32_t tess_cuda2_launch(TessGpuRun *run, const char *name, int64_t blocks, int64_t threads, const int64_t *own, int32_t own_count) {
    return tess_cuda2_launch_shared(run, name, blocks, threads, 0, own, own_count);
}

int32_t tess_cuda2_launch_shared(TessGpuRun *run, const char *name, int64_t blocks, int64_t threads, int64_t shared_bytes,
                                 const int64_t *own, int32_t own_count) {
    int64_t numbers[TESS_GPU_MAX_LAUNCH];
    void *arguments[TESS_GPU_MAX_LAUNCH];
    const int32_t count = tess_gpu2_numbers(run, own, own_count, numbers);
    int64_t *frame = (int64_t *)(uintptr_t)run->frame; /* only read: CUDA wants pointers that may be written */
    void *constants = run->loaded->constants;
    CUfunction function;
    int64_t t, at = 0;
    int32_t i;
    if (blocks <= 0) return TESS_OK;
    if (count < 0) return fault(TESS_KERNEL);
    if (cuModuleGetFunction(&function, (CUmodule)run->loaded->program, name) != CUDA_SUCCESS) return fault(TESS_GPU_LAUNCH);
    /* More than 48 KiB of a block are asked for function by function. */
    if (shared_bytes > 0 &&
        cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes) != CUDA_SUCCESS)
        return fault(TESS_GPU_LAUNCH);
    for (t = 0; t < run->spec[TESS_SPEC_N_TENSORS]; ++t) arguments[at++] = &frame[tess_frame_data(run->spec, t)];
    arguments[at++] = &frame[tess_frame_workspace(run->spec)];
    if (run->program->constants != NULL) arguments[at++] = &constants;
    for (i = 0; i < count; ++i) arguments[at++] = &numbers[i];
    return cuLaunchKernel(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, (unsigned)shared_bytes, run->stream, arguments,
                          NULL) == CUDA_SUCCESS
               ? TESS_OK
               : fault(TESS_GPU_LAUNCH);
}

static void CUDA_CB tell(CUstream stream, CUresult result, void *of) {
    const TessContext *context = of;
    (void)stream;
    context->done(context->done_state, result == CUDA_SUCCESS ? TESS_OK : fault(TESS_GPU_LAUNCH));
}

int32_t tess_cuda2_end(TessGpuRun *run, int32_t status) {
    if (run->loaded == NULL) return status; /* it never began */
    if (status == TESS_OK && run->context != NULL && run->context->done != NULL &&
        cuStreamAddCallback(run->stream, tell, (void *)(uintptr_t)run->context, 0) != CUDA_SUCCESS)
        status = fault(TESS_GPU_LAUNCH);
    cuCtxPopCurrent(NULL);
    return status;
}
