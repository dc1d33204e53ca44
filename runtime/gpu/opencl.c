#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>

#include "runtime/gpu/gpu.h"

/* Held while a program is loaded. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int32_t fault(int32_t kind) { return tess_abi2_status(kind, -1); }

/* Results are the same bits on every device, so it must round as IEEE 754 says and keep denormals. */
static int has_precision(cl_device_id device, int uses_double) {
    const cl_device_fp_config single = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    cl_device_fp_config have = 0;
    if (clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof have, &have, NULL) != CL_SUCCESS || (have & single) != single) return 0;
    if (!uses_double) return 1;
    return clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof have, &have, NULL) == CL_SUCCESS && have != 0;
}

static int32_t load(TessGpuProgram *program, TessGpuLoaded *loaded, cl_context context, cl_device_id device) {
    cl_program built;
    cl_int error;
    if (!has_precision(device, program->uses_double)) return fault(TESS_GPU_PRECISION);
    built = clCreateProgramWithSource(context, 1, (const char **)&program->image, NULL, &error);
    if (error != CL_SUCCESS) return fault(TESS_GPU_BUILD);
    if (clBuildProgram(built, 1, &device, "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", NULL, NULL) != CL_SUCCESS) {
        clReleaseProgram(built);
        return fault(TESS_GPU_BUILD);
    }
    if (program->constants != NULL) {
        /* The host's memory is only read. */
        loaded->constants = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, program->constant_bytes,
                                           (void *)(uintptr_t)program->constants, &error);
        if (error != CL_SUCCESS) {
            clReleaseProgram(built);
            return fault(TESS_GPU_MEMORY);
        }
    }
    clRetainContext(context); /* no other one may get its address */
    loaded->context = context;
    loaded->device = device;
    loaded->program = built;
    return TESS_OK;
}

int32_t tess_opencl2_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame, void *call) {
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
    TessGpuLoaded *loaded;
    int32_t status = TESS_OK;
    tess_gpu2_start(run, program, spec, frame, call);
    if (run->stream == NULL) return fault(TESS_GPU_STREAM);
    if (clGetCommandQueueInfo(run->stream, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) != CL_SUCCESS ||
        clGetCommandQueueInfo(run->stream, CL_QUEUE_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS ||
        clGetCommandQueueInfo(run->stream, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL) != CL_SUCCESS)
        return fault(TESS_GPU_STREAM);
    run->in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    pthread_mutex_lock(&lock);
    loaded = tess_gpu2_loaded(program, context, device);
    if (loaded == NULL) status = fault(TESS_GPU_MEMORY);
    else if (loaded->program == NULL) status = load(program, loaded, context, device);
    pthread_mutex_unlock(&lock);
    if (status == TESS_OK) run->loaded = loaded;
    return status;
}

/* After all that is in the queue. */
static int wait_in_queue(const TessGpuRun *run) {
    return run->in_order || clEnqueueBarrierWithWaitList(run->stream, 0, NULL, NULL) == CL_SUCCESS;
}

int32_t tess_opencl2_launch(TessGpuRun *run, const char *name, int64_t blocks, int64_t threads, const int64_t *own, int32_t own_count) {
    int64_t numbers[TESS_GPU_MAX_LAUNCH];
    const size_t local = (size_t)threads, global = (size_t)(blocks * threads);
    const int32_t count = tess_gpu2_numbers(run, own, own_count, numbers);
    cl_uint at = 0;
    cl_kernel kernel;
    cl_mem memory;
    cl_int error;
    int64_t t;
    int32_t i;
    if (blocks <= 0) return TESS_OK;
    if (count < 0) return fault(TESS_KERNEL);
    kernel = clCreateKernel((cl_program)run->loaded->program, name, &error); /* one for each launch: its arguments are its own */
    if (error != CL_SUCCESS) return fault(TESS_GPU_LAUNCH);
    for (t = 0; t < run->spec[TESS_SPEC_N_TENSORS] && error == CL_SUCCESS; ++t) {
        memory = (cl_mem)(uintptr_t)run->frame[tess_frame_data(run->spec, t)];
        error = clSetKernelArg(kernel, at++, sizeof memory, &memory);
    }
    memory = (cl_mem)(uintptr_t)run->frame[tess_frame_workspace(run->spec)];
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, at++, sizeof memory, &memory);
    if (run->program->constants != NULL && error == CL_SUCCESS)
        error = clSetKernelArg(kernel, at++, sizeof(cl_mem), &run->loaded->constants);
    for (i = 0; i < count && error == CL_SUCCESS; ++i) error = clSetKernelArg(kernel, at++, sizeof(cl_long), &numbers[i]);
    if (error == CL_SUCCESS && !wait_in_queue(run)) error = CL_INVALID_COMMAND_QUEUE;
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(run->stream, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    clReleaseKernel(kernel);
    return error == CL_SUCCESS ? TESS_OK : fault(TESS_GPU_LAUNCH);
}

static void CL_CALLBACK tell(cl_event event, cl_int state, void *of) {
    const TessContext *context = of;
    (void)event;
    context->done(context->done_state, state < 0 ? fault(TESS_GPU_LAUNCH) : TESS_OK);
}

int32_t tess_opencl2_end(TessGpuRun *run, int32_t status) {
    cl_event event;
    if (run->loaded == NULL || status != TESS_OK) return status;
    if (!wait_in_queue(run)) return fault(TESS_GPU_LAUNCH);
    if (run->context != NULL && run->context->done != NULL) {
        if (clEnqueueMarkerWithWaitList(run->stream, 0, NULL, &event) != CL_SUCCESS) return fault(TESS_GPU_LAUNCH);
        /* Last of what may fail: a call that returns a failure does not tell of its end. */
        if (clFlush(run->stream) != CL_SUCCESS ||
            clSetEventCallback(event, CL_COMPLETE, tell, (void *)(uintptr_t)run->context) != CL_SUCCESS)
            status = fault(TESS_GPU_LAUNCH);
        clReleaseEvent(event);
        return status;
    }
    return clFlush(run->stream) == CL_SUCCESS ? TESS_OK : fault(TESS_GPU_LAUNCH);
}
