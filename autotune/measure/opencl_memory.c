#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "autotune/measure/device_memory.h"

enum { MAX_PLATFORMS = 16 };

static cl_context here;
static cl_command_queue queue;

/* The first GPU there is, or else the first device of any kind. */
static cl_device_id find_device(void) {
    const cl_device_type kinds[2] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id device;
    cl_uint n = 0, p;
    int kind;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS) n = 0;
    if (n > MAX_PLATFORMS) n = MAX_PLATFORMS;
    for (kind = 0; kind < 2; ++kind)
        for (p = 0; p < n; ++p)
            if (clGetDeviceIDs(platforms[p], kinds[kind], 1, &device, NULL) == CL_SUCCESS) return device;
    return NULL;
}

int device_open(TessContext *context) {
    cl_device_id device = find_device();
    cl_int error = CL_SUCCESS;
    if (device == NULL) return -1;
    here = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (error != CL_SUCCESS) return -1;
    queue = clCreateCommandQueue(here, device, 0, &error);
    if (error != CL_SUCCESS) return -1;
    context->device.type = TESS_OPENCL;
    context->stream = queue;
    return 0;
}

void *device_memory(void *host, size_t bytes) {
    cl_int error;
    cl_mem memory = clCreateBuffer(here, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, host, &error);
    return error == CL_SUCCESS ? memory : NULL;
}

void device_release(void *memory) {
    if (memory != NULL) clReleaseMemObject(memory);
}

void device_write(void *memory, const void *host, size_t bytes) {
    clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, bytes, host, 0, NULL, NULL);
}

void device_read(void *memory, void *host, size_t bytes) { clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, bytes, host, 0, NULL, NULL); }

void device_wait(void) { clFinish(queue); }
