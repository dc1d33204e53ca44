/** What the host files of GPU kernels call: their arguments go to the device, their kernel functions are launched one after
 *  the other, and what they wrote comes back. C99 and C++20. There is one library for OpenCL and one for CUDA; both hold the
 *  functions of this contract under their own names.
 *
 *  Devices need state that CPUs do not: the library opens the device at the first call and keeps it, with the programs that it
 *  has loaded, as long as the process lives. A call allocates what the device's driver wants. Apart from that the rules of
 *  tessera.h hold: calls may come from any number of threads, and everything that goes wrong is a status. */
#ifndef TESSERA_GPU_H
#define TESSERA_GPU_H

#include "runtime/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kernels of one generated file. */
typedef struct TessGpuProgram {
    const char *image;     /**< OpenCL C, or PTX */
    int32_t uses_double;   /**< the device must have f64 */
    const void *constants; /**< what the kernels' tables hold, or null; uploaded once */
    uint64_t constant_bytes;
    void *loaded;           /**< null at first; the library's */
    void *loaded_constants; /**< the same for the tables */
} TessGpuProgram;

/** One call of a kernel, from begin to end. */
typedef struct TessGpuRun {
    const TessGpuProgram *program;
    const int64_t *spec;
    const int64_t *frame;
    void *buffers[TESS_MAX_TENSORS + 1]; /**< null for memory without elements; the last one used is the workspace */
} TessGpuRun;

/** Details of TESS_GPU. */
enum {
    TESS_GPU_NONE = 0,      /**< there is no device */
    TESS_GPU_PRECISION = 1, /**< the device does not round, or flushes denormals, or has no f64 */
    TESS_GPU_BUILD = 2,     /**< the device's compiler refuses the program */
    TESS_GPU_MEMORY = 3,    /**< the device has no room for the arguments */
    TESS_GPU_LAUNCH = 4     /**< a kernel function could not be run */
};

/** Opens the device, loads the program and hands over the arguments that the frame of tess_abi1_run holds. */
int tess_opencl1_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame);
int tess_cuda1_begin(TessGpuRun *run, TessGpuProgram *program, const int64_t *spec, const int64_t *frame);

/** Launches `blocks` blocks of `threads` threads of the function `kernel`; nothing where there are no blocks. Its arguments are
 *  the tensors' memory, the workspace, the constants where the program has any, the extents, the strides but the last of each
 *  tensor, how many elements after the begin of its memory the first one of each tensor is, the parameters' bits and `numbers`. */
int tess_opencl1_launch(TessGpuRun *run, const char *kernel, int64_t blocks, int64_t threads, const int64_t *numbers, int32_t count);
int tess_cuda1_launch(TessGpuRun *run, const char *kernel, int64_t blocks, int64_t threads, const int64_t *numbers, int32_t count);

/** Waits, brings back what was written unless `status` tells of a failure, and gives the status of it all. */
int tess_opencl1_end(TessGpuRun *run, int status);
int tess_cuda1_end(TessGpuRun *run, int status);

/** Most numbers that a launch may have, all together. */
enum { TESS_GPU_MAX_NUMBERS = 256 };

/** What every run begins with: no buffers yet. */
void tess_gpu1_start(TessGpuRun *run, const TessGpuProgram *program, const int64_t *spec, const int64_t *frame);

/** Writes the numbers of a launch, of which `own` are the caller's; their count, or -1 when there are too many. */
int32_t tess_gpu1_numbers(const TessGpuRun *run, const int64_t *own, int32_t count, int64_t *numbers);

/** The memory that a tensor touches, and the workspace for tensor == n_tensors: its lowest address, which is not the first element's
 *  where a stride is negative, and bytes. */
void tess_gpu1_memory(const int64_t *spec, const int64_t *frame, int64_t tensor, void **address, uint64_t *bytes);

/** Whether the kernel writes to the tensor; for the workspace: whether its content matters afterwards, which is not so. */
static inline int tess_gpu1_is_written(const int64_t *spec, int64_t tensor) {
    return tensor < spec[TESS_SPEC_N_TENSORS] && tess_spec_tensor(spec, tensor)[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT;
}

#ifdef __cplusplus
}
#endif

#endif
