#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>

#include "runtime/gpu.h"

/* The device of this process: the first GPU there is, or else the first device of any kind. */
static struct {
    pthread_mutex_t lock;
    int opened; /* 1: `status` says with what result */
    int status;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
} here = {PTHREAD_MUTEX_INITIALIZER, 0, 0, NULL, NULL, NULL};

enum { MAX_PLATFORMS = 16 };

static int fault(int detail) { return tess_abi1_status(TESS_GPU, -1, -1, detail); }

static int open_device(void) {
    const cl_device_type kinds[2] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = 0, p;
    cl_int error;
    int kind;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS) n = 0;
    if (n > MAX_PLATFORMS) n = MAX_PLATFORMS;
    for (kind = 0; kind < 2 && here.device == NULL; ++kind) {
        for (p = 0; p < n && here.device == NULL; ++p) {
            if (clGetDeviceIDs(platforms[p], kinds[kind], 1, &here.device, NULL) != CL_SUCCESS) here.device = NULL;
        }
    }
    if (here.device == NULL) return fault(TESS_GPU_NONE);
    here.context = clCreateContext(NULL, 1, &here.device, NULL, NULL, &error);
    if (error != CL_SUCCESS) return fault(TESS_GPU_NONE);
    here.queue = clCreateCommandQueue(here.context, here.device, 0, &error);
    return error == CL_SUCCESS ? TESS_OK : fault(TESS_GPU_NONE);
}

/* Results are the same bits on every device, so it must round as IEEE 754 says and keep denormals. */
static int has_precision(int uses_double) {
    const cl_device_fp_config single = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    cl_device_fp_config have = 0;
    if (clGetDeviceInfo(here.device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof have, &have, NULL) != CL_SUCCESS || (have & single) != single)
        return 0;
    if (!uses_double) return 1;
    return clGetDeviceInfo(here.device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof have, &have, NULL) == CL_SUCCESS && have != 0;
}

static int load(TessGpuProgram *program) {
    cl_program built;
    cl_int error;
    if (program->loaded != NULL) return TESS_OK;
    if (!has_precision(program->uses_double)) return fault(TESS_GPU_PRECISION);
    built = clCreateProgramWithSource(here.context, 1, (const char **)&program->image, NULL, &error);
    if (error != CL_SUCCESS) return fault(TESS_GPU_BUILD);
    if (clBuildProgram(built, 1, &here.device, "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", NULL, NULL) != CL_SUCCESS) {
        clReleaseProgram(built);
        return fault(TESS_GPU_BUILD);
    }
    if (program->constants != NULL) {
        /* The host's memory is only read. */
        program->loaded_constants = clCreateBuffer(here.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, program->constant_bytes,
                                                   (void *)(uintptr_t)program->constants, &error);
        if (error != CL_SUCCESS) {
            clReleaseProgram(built);
            return fault(TESS_GPU_MEMORY);
        }
    }
    program->loaded = built;
    return TESS_OK;
}

/* Two buffers over the same memory are undefined in OpenCL, so an input that is given twice has one. */
static void *same_input(const TessGpuRun *run, int64_t tensor, const void *address, uint64_t bytes) {
    int64_t t;
    for (t = 0; t < tensor; ++t) {
        void *other;
        uint64_t other_bytes;
        tess_gpu1_memory(run->spec, run->frame, t, &other, &other_bytes);
        if (run->buffers[t] == NULL || other != address || other_bytes != bytes) continue;
        return clRetainMemObject(run->buffers[t]) == CL_SUCCESS ? run->buffers[t] : NULL;
    }
    return NULL;
}

int tess_opencl1_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame) {
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
    if (status == TESS_OK) status = load(program);
    pthread_mutex_unlock(&here.lock);
    for (t = 0; t <= tensors && status == TESS_OK; ++t) {
        const cl_mem_flags access = t == tensors || tess_gpu1_is_written(spec, t) ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
        void *address;
        uint64_t bytes;
        cl_int error;
        tess_gpu1_memory(spec, frame, t, &address, &bytes);
        if (bytes == 0) continue;
        run->buffers[t] = same_input(run, t, address, bytes);
        if (run->buffers[t] != NULL) continue;
        run->buffers[t] = clCreateBuffer(here.context, access | CL_MEM_USE_HOST_PTR, bytes, address, &error);
        if (error != CL_SUCCESS) {
            run->buffers[t] = NULL;
            status = fault(TESS_GPU_MEMORY);
        }
    }
    return status;
}

int tess_opencl1_launch(TessGpuRun *run, const char *name, int64_t blocks, int64_t threads, const int64_t *own, int32_t own_count) {
    int64_t numbers[TESS_GPU_MAX_NUMBERS];
    const size_t local = (size_t)threads, global = (size_t)(blocks * threads);
    const int32_t count = tess_gpu1_numbers(run, own, own_count, numbers);
    cl_uint at = 0;
    cl_kernel kernel;
    cl_int error;
    int64_t t;
    int32_t i;
    if (blocks <= 0) return TESS_OK;
    if (count < 0) return tess_abi1_status(TESS_KERNEL, -1, -1, -1);
    kernel = clCreateKernel((cl_program)run->program->loaded, name, &error); /* one for each launch: its arguments are its own */
    if (error != CL_SUCCESS) return fault(TESS_GPU_LAUNCH);
    for (t = 0; t <= run->spec[TESS_SPEC_N_TENSORS] && error == CL_SUCCESS; ++t)
        error = clSetKernelArg(kernel, at++, sizeof(cl_mem), &run->buffers[t]);
    if (run->program->constants != NULL && error == CL_SUCCESS)
        error = clSetKernelArg(kernel, at++, sizeof(cl_mem), &run->program->loaded_constants);
    for (i = 0; i < count && error == CL_SUCCESS; ++i) error = clSetKernelArg(kernel, at++, sizeof(cl_long), &numbers[i]);
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(here.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    clReleaseKernel(kernel);
    return error == CL_SUCCESS ? TESS_OK : fault(TESS_GPU_LAUNCH);
}

int tess_opencl1_end(TessGpuRun *run, int status) {
    const int64_t tensors = run->spec[TESS_SPEC_N_TENSORS];
    int64_t t;
    if (here.queue != NULL && clFinish(here.queue) != CL_SUCCESS && status == TESS_OK) status = fault(TESS_GPU_LAUNCH);
    for (t = 0; t < tensors && status == TESS_OK; ++t) {
        void *address, *mapped;
        uint64_t bytes;
        cl_int error;
        if (run->buffers[t] == NULL || !tess_gpu1_is_written(run->spec, t)) continue;
        tess_gpu1_memory(run->spec, run->frame, t, &address, &bytes);
        mapped = clEnqueueMapBuffer(here.queue, run->buffers[t], CL_TRUE, CL_MAP_READ, 0, bytes, 0, NULL, NULL, &error);
        if (error != CL_SUCCESS || clEnqueueUnmapMemObject(here.queue, run->buffers[t], mapped, 0, NULL, NULL) != CL_SUCCESS ||
            clFinish(here.queue) != CL_SUCCESS)
            status = fault(TESS_GPU_MEMORY);
    }
    for (t = 0; t <= tensors; ++t) {
        if (run->buffers[t] != NULL) clReleaseMemObject(run->buffers[t]);
    }
    return status;
}
