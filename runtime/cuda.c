#include <cuda.h>
#include <pthread.h>

#include "runtime/gpu.h"

/* The device of this process: the first one, in its primary context, which CUDA's own runtime uses as well. */
static struct {
    pthread_mutex_t lock;
    int opened; /* 1: `status` says with what result */
    int status;
    CUcontext context;
} here = {PTHREAD_MUTEX_INITIALIZER, 0, 0, NULL};

static int fault(int detail) { return tess_abi1_status(TESS_GPU, -1, -1, detail); }

static int open_device(void) {
    CUdevice device;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return fault(TESS_GPU_NONE);
    return cuDevicePrimaryCtxRetain(&here.context, device) == CUDA_SUCCESS ? TESS_OK : fault(TESS_GPU_NONE);
}

static int load(TessGpuProgram *program) {
    CUmodule module;
    CUdeviceptr constants = 0;
    if (program->loaded != NULL) return TESS_OK;
    if (cuModuleLoadData(&module, program->image) != CUDA_SUCCESS) return fault(TESS_GPU_BUILD);
    if (program->constants != NULL && (cuMemAlloc(&constants, program->constant_bytes) != CUDA_SUCCESS ||
                                       cuMemcpyHtoD(constants, program->constants, program->constant_bytes) != CUDA_SUCCESS)) {
        if (constants != 0) cuMemFree(constants);
        cuModuleUnload(module);
        return fault(TESS_GPU_MEMORY);
    }
    program->loaded_constants = (void *)(uintptr_t)constants;
    program->loaded = module;
    return TESS_OK;
}

static CUdeviceptr pointer(void *buffer) { return (CUdeviceptr)(uintptr_t)buffer; }

int tess_cuda1_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame) {
    const int64_t tensors = spec[TESS_SPEC_N_TENSORS];
    int64_t t;
    int status;
    tess_gpu1_start(run, program, spec, frame);
    pthread_mutex_lock(&here.lock);
    if (!here.opened) {
        here.status = open_device();
        here.opened = 1;
    }
    status = here.status;
    if (status == TESS_OK && cuCtxPushCurrent(here.context) != CUDA_SUCCESS) status = fault(TESS_GPU_NONE);
    if (status == TESS_OK) {
        status = load(program);
        if (status != TESS_OK) cuCtxPopCurrent(NULL);
    }
    pthread_mutex_unlock(&here.lock);
    if (status != TESS_OK) {
        run->spec = NULL;
        return status;
    }
    for (t = 0; t <= tensors && status == TESS_OK; ++t) {
        CUdeviceptr memory;
        void *address;
        uint64_t bytes;
        tess_gpu1_memory(spec, frame, t, &address, &bytes);
        if (bytes == 0) continue;
        if (cuMemAlloc(&memory, bytes) != CUDA_SUCCESS) {
            status = fault(TESS_GPU_MEMORY);
            continue;
        }
        run->buffers[t] = (void *)(uintptr_t)memory;
        if (t < tensors && cuMemcpyHtoD(memory, address, bytes) != CUDA_SUCCESS) status = fault(TESS_GPU_MEMORY);
    }
    return status;
}

int tess_cuda1_launch(TessGpuRun *run, const char *name, int64_t blocks, int64_t threads, const int64_t *own, int32_t own_count) {
    int64_t numbers[TESS_GPU_MAX_NUMBERS];
    void *arguments[TESS_GPU_MAX_NUMBERS + TESS_MAX_TENSORS + 2];
    int64_t memories = run->spec[TESS_SPEC_N_TENSORS] + 1;
    void *constants = run->program->loaded_constants;
    const int32_t count = tess_gpu1_numbers(run, own, own_count, numbers);
    CUfunction function;
    int64_t t;
    int32_t i;
    if (blocks <= 0) return TESS_OK;
    if (count < 0) return tess_abi1_status(TESS_KERNEL, -1, -1, -1);
    if (cuModuleGetFunction(&function, (CUmodule)run->program->loaded, name) != CUDA_SUCCESS) return fault(TESS_GPU_LAUNCH);
    for (t = 0; t < memories; ++t) arguments[t] = &run->buffers[t];
    if (run->program->constants != NULL) arguments[memories++] = &constants;
    for (i = 0; i < count; ++i) arguments[memories + i] = &numbers[i];
    return cuLaunchKernel(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS
               ? TESS_OK
               : fault(TESS_GPU_LAUNCH);
}

int tess_cuda1_end(TessGpuRun *run, int status) {
    int64_t t;
    if (run->spec == NULL) return status; /* it never began */
    if (cuCtxSynchronize() != CUDA_SUCCESS && status == TESS_OK) status = fault(TESS_GPU_LAUNCH);
    for (t = 0; t <= run->spec[TESS_SPEC_N_TENSORS]; ++t) {
        void *address;
        uint64_t bytes;
        if (run->buffers[t] == NULL) continue;
        tess_gpu1_memory(run->spec, run->frame, t, &address, &bytes);
        if (status == TESS_OK && tess_gpu1_is_written(run->spec, t) &&
            cuMemcpyDtoH(address, pointer(run->buffers[t]), bytes) != CUDA_SUCCESS)
            status = fault(TESS_GPU_MEMORY);
        cuMemFree(pointer(run->buffers[t]));
    }
    cuCtxPopCurrent(NULL);
    return status;
}
