/** What the host files of GPU kernels call: their kernel functions are put into a stream, one after the other, and work on tensors that
 *  are on the device. C99 and C++20. There is one library for OpenCL and one for CUDA; both hold the functions of this contract under
 *  their own names.
 *
 *  Devices need state that CPUs do not: the first call on a device loads the program and its tables there, which takes time and the
 *  driver's memory, and the library keeps both as long as the process lives. Apart from that the rules of tessera.h hold: calls may
 *  come from any number of threads, and everything that goes wrong is a status. */
#ifndef TESSERA_GPU_H
#define TESSERA_GPU_H

#include "runtime/abi/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most devices, or contexts of OpenCL, on which one program is loaded; most numbers and addresses of one launch. */
enum { TESS_GPU_MAX_CONTEXTS = 16, TESS_GPU_MAX_LAUNCH = 500 };

/** A program on one device. All null: not loaded. */
typedef struct TessGpuLoaded {
    void *context, *device, *program, *constants;
} TessGpuLoaded;

/** The kernels of one generated file. */
typedef struct TessGpuProgram {
    const char *image;     /**< OpenCL C, or PTX */
    int32_t uses_double;   /**< the device must have f64 */
    const void *constants; /**< what the kernels' tables hold, or null */
    uint64_t constant_bytes;
    TessGpuLoaded loaded[TESS_GPU_MAX_CONTEXTS]; /**< null at first; the library's */
} TessGpuProgram;

/** One call of a kernel, from begin to end. */
typedef struct TessGpuRun {
    const TessGpuProgram *program;
    const int64_t *spec;
    const int64_t *frame;
    const TessContext *context;  /**< the call's, or null */
    const TessGpuLoaded *loaded; /**< null where begin failed */
    void *stream;
    int32_t in_order; /**< 0: the stream may do later work first */
} TessGpuRun;

/** Finds the device and the stream of the call, and loads the program there. */
int32_t tess_opencl2_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame, void *call);
int32_t tess_cuda2_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame, void *call);

/** Puts `blocks` blocks of `threads` threads of the function `kernel` into the stream; nothing where there are no blocks. Its arguments
 *  are the tensors' memory, the workspace, the constants where the program has any, the extents, the strides but the last of each
 *  tensor, how many elements after the begin of its memory the first one of each tensor is, the parameters' bits and `numbers`. */
int32_t tess_opencl2_launch(TessGpuRun *run, const char *kernel, int64_t blocks, int64_t threads, const int64_t *numbers, int32_t count);
int32_t tess_cuda2_launch(TessGpuRun *run, const char *kernel, int64_t blocks, int64_t threads, const int64_t *numbers, int32_t count);
/** The same, with `shared_bytes` of shared memory for each block beside what the function has by itself. */
int32_t tess_cuda2_launch_shared(TessGpuRun *run, const char *kernel, int64_t blocks, int64_t threads, int64_t shared_bytes,
                                 const int64_t *numbers, int32_t count);

/** Has the context's `done` called when all is done, unless `status` tells of a failure, and gives the status of it all. */
int32_t tess_opencl2_end(TessGpuRun *run, int32_t status);
int32_t tess_cuda2_end(TessGpuRun *run, int32_t status);

/** What every run begins with. */
void tess_gpu2_start(TessGpuRun *run, const TessGpuProgram *program, const int64_t *spec, const int64_t *frame, const TessCall *call);

/** Writes the numbers of a launch, of which `own` are the caller's; their count, or -1 when there are too many. */
int32_t tess_gpu2_numbers(const TessGpuRun *run, const int64_t *own, int32_t count, int64_t *numbers);

/** What is loaded in a context and on a device, or else the first place that is free; null where there is none. */
TessGpuLoaded *tess_gpu2_loaded(TessGpuProgram *program, const void *context, const void *device);

#ifdef __cplusplus
}
#endif

#endif
