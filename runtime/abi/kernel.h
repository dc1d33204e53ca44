/** The contract between generated kernels and this library: the table that describes a kernel,
 *  the frame in which its code finds its arguments, and the functions that it calls. C99 and
 *  C++20; the emitters include it too.
 *
 *  A kernel library holds, per kernel, a constant table and two functions:
 *
 *      static const int64_t spec[] = {…};                  what the arguments must be, and what the kernel is
 *      static int32_t plan(int64_t *frame);                writes the bytes of workspace needed, and may choose the body
 *      static int32_t body(void *call, int64_t *frame);    computes
 *
 *  and its public functions hand these to the functions below. */
#ifndef TESSERA_KERNEL_H
#define TESSERA_KERNEL_H

#include "runtime/abi/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** First word of every spec: "TESS" and the version of this contract, of spec and frame together. */
#define TESS_SPEC_ABI2 INT64_C(0x5445535300000003)
/** The same of a kernel some of whose parameters have a declared range: its parameter records have TESS_SPEC_RANGED_WORDS. */
#define TESS_SPEC_ABI2_RANGES INT64_C(0x5445535300000004)

/** Words of the spec. It is position-free: a header of TESS_SPEC_HEADER words, then n_dims dim records, n_tensors tensor records,
 *  n_parameters parameter records, n_code code records, n_layouts layout records for each tensor that is packed, in the order of the
 *  tensors, and last the texts: zero-terminated bytes, eight to a word, the first in the lowest bits. A text is named by the number of its
 *  first byte among these. A dim that no tensor carries must be fixed or equal to an earlier one. Of the layouts of a packed tensor the
 *  first whose features the call may use is the one that its code reads; the tensor's record describes the operand. */
enum {
    TESS_SPEC_VERSION = 0,      /**< TESS_SPEC_ABI2 or TESS_SPEC_ABI2_RANGES */
    TESS_SPEC_CPU_FEATURES = 1, /**< mask of 1 << TessCpuFeature that all its code needs */
    TESS_SPEC_N_DIMS = 2,
    TESS_SPEC_N_TENSORS = 3,
    TESS_SPEC_N_PARAMETERS = 4,
    TESS_SPEC_N_CODE = 5,
    TESS_SPEC_N_LAYOUTS = 6,       /**< for each packed tensor */
    TESS_SPEC_N_PACKED = 7,        /**< tensors that are packed */
    TESS_SPEC_PARAMETER_BYTES = 8, /**< sizeof(<kernel>_parameters) */
    TESS_SPEC_FRAME_WORDS = 9,     /**< slots of the frame */
    TESS_SPEC_DEVICE = 10,         /**< a TessDeviceType */
    TESS_SPEC_NAME = 11,           /**< text */
    TESS_SPEC_HEADER = 12,

    /* within a dim record */
    TESS_SPEC_DIM_FIXED = 0,       /**< the extent, or -1 */
    TESS_SPEC_DIM_MIN = 1,         /**< 0 where there is none */
    TESS_SPEC_DIM_MAX = 2,         /**< -1 where there is none */
    TESS_SPEC_DIM_MULTIPLE_OF = 3, /**< 1 where there is none */
    TESS_SPEC_DIM_EQUAL_TO = 4,    /**< index of a dim of the same extent, or -1 */
    TESS_SPEC_DIM_NAME = 5,        /**< text */
    TESS_SPEC_DIM_WORDS = 6,

    /* within a tensor record */
    TESS_SPEC_TENSOR_ROLE = 0,  /**< TESS_ROLE_… */
    TESS_SPEC_TENSOR_DTYPE = 1, /**< a TessDType */
    TESS_SPEC_TENSOR_RANK = 2,
    TESS_SPEC_TENSOR_FLAGS = 3, /**< TESS_FLAG_… */
    TESS_SPEC_TENSOR_NAME = 4,  /**< text */
    TESS_SPEC_TENSOR_SLOT = 5,  /**< of its data in the frame */
    TESS_SPEC_TENSOR_AXES = 6,  /**< 8 words: the dim of each axis; -1 beyond the rank */
    TESS_SPEC_TENSOR_WORDS = 14,

    /* within a parameter record */
    TESS_SPEC_PARAMETER_DTYPE = 0,  /**< a TessDType */
    TESS_SPEC_PARAMETER_OFFSET = 1, /**< in the struct of parameters, in bytes */
    TESS_SPEC_PARAMETER_NAME = 2,   /**< text */
    TESS_SPEC_PARAMETER_WORDS = 3,
    TESS_SPEC_PARAMETER_RANGE = 3, /**< TESS_RANGE_… */
    TESS_SPEC_PARAMETER_LEAST = 4, /**< as in the frame */
    TESS_SPEC_PARAMETER_MOST = 5,
    TESS_SPEC_RANGED_WORDS = 6,

    /* within a code record */
    TESS_SPEC_CODE_CPU_FEATURES = 0, /**< mask of 1 << TessCpuFeature */
    TESS_SPEC_CODE_TARGET = 1,       /**< text */
    TESS_SPEC_CODE_WHEN = 2,         /**< text */
    TESS_SPEC_CODE_HASH = 3,         /**< text */
    TESS_SPEC_CODE_WORDS = 4,

    /* within a layout record */
    TESS_SPEC_LAYOUT_CPU_FEATURES = 0, /**< mask of 1 << TessCpuFeature */
    TESS_SPEC_LAYOUT_HASH = 1,
    TESS_SPEC_LAYOUT_N_AXES = 2,
    /** 8 pairs of words: the operand's axis, then 0 for all of it, f > 0 for its quotient by f,
     *  rounded up, -f for the remainder. */
    TESS_SPEC_LAYOUT_AXES = 3,
    TESS_SPEC_LAYOUT_WORDS = 19
};

/** Bytes of what strides in a frame count: an element, or two where they are of 4 bits. */
static inline int64_t tess_unit_bytes(int64_t dtype) {
    return tess_is_half_byte((int32_t)dtype) ? 1 : (int64_t)tess_dtype_size((int32_t)dtype);
}

/** The record of a dim. */
static inline const int64_t *tess_spec_dim(const int64_t *spec, int64_t dim) { return spec + TESS_SPEC_HEADER + dim * TESS_SPEC_DIM_WORDS; }

/** The record of a tensor. Of a packed one the frame holds where the elements begin, behind the header, and no strides that mean
 *  anything. */
static inline const int64_t *tess_spec_tensor(const int64_t *spec, int64_t tensor) {
    return tess_spec_dim(spec, spec[TESS_SPEC_N_DIMS]) + tensor * TESS_SPEC_TENSOR_WORDS;
}

/** Words of a record of a parameter. */
static inline int64_t tess_spec_parameter_words(const int64_t *spec) {
    return spec[TESS_SPEC_VERSION] == TESS_SPEC_ABI2 ? TESS_SPEC_PARAMETER_WORDS : TESS_SPEC_RANGED_WORDS;
}

/** The record of a parameter. */
static inline const int64_t *tess_spec_parameter(const int64_t *spec, int64_t parameter) {
    return tess_spec_tensor(spec, spec[TESS_SPEC_N_TENSORS]) + parameter * tess_spec_parameter_words(spec);
}

/** A code record. */
static inline const int64_t *tess_spec_code(const int64_t *spec, int64_t code) {
    return tess_spec_parameter(spec, spec[TESS_SPEC_N_PARAMETERS]) + code * TESS_SPEC_CODE_WORDS;
}

/** The first layout record of the n-th packed tensor. */
static inline const int64_t *tess_spec_layouts(const int64_t *spec, int64_t packed) {
    return tess_spec_code(spec, spec[TESS_SPEC_N_CODE]) + packed * spec[TESS_SPEC_N_LAYOUTS] * TESS_SPEC_LAYOUT_WORDS;
}

/** The layout record of the n-th packed tensor for the features of a call; null when there is none. */
static inline const int64_t *tess_spec_layout(const int64_t *spec, int64_t packed, uint64_t features) {
    const int64_t *record = tess_spec_layouts(spec, packed);
    int64_t i;
    for (i = 0; i < spec[TESS_SPEC_N_LAYOUTS]; ++i, record += TESS_SPEC_LAYOUT_WORDS) {
        const uint64_t needed = (uint64_t)record[TESS_SPEC_LAYOUT_CPU_FEATURES];
        if ((needed & features) == needed) return record;
    }
    return NULL;
}

/** The words of the texts. */
static inline const int64_t *tess_spec_texts(const int64_t *spec) { return tess_spec_layouts(spec, spec[TESS_SPEC_N_PACKED]); }

/* The frame is an array of int64_t, which plan and body read by slot:
 *
 *     [each dim's extent] [each tensor: data pointer, then `rank` strides] [each parameter's bits]
 *     [workspace pointer] [shared bytes] [bytes per worker] [workers] [features] [body] [dimension] [expected]
 *     for OpenCL: [each tensor's byte offset]
 *
 * Data pointers are those of the first elements; for OpenCL, memory objects. Strides are in elements, or in bytes where
 * elements have 4 bits; where an extent is 0 or 1, or the
 * tensor has no elements, the last stride is 1 and the others 0, whatever the caller wrote. Shared memory starts at the workspace pointer;
 * worker w has the bytes at workspace + shared bytes + w * bytes per worker. plan writes the two byte counts (they are 0 before); each is
 * rounded up to a multiple of 64 before body runs, so every part is aligned to 64 bytes. The features are those of tess_cpu_features
 * that the context leaves. plan may write the address of another body than the kernel's where that stands; that is what runs, each time
 * that the plan is run. Before it refuses an extent it writes the dimension and what the extent must be. */

/** More than any plan may ask for, in bytes. A plan whose buffers are too large asks for twice as
 *  much, so that the sum of all its buffers still fits its type. */
#define TESS_MAX_WORKSPACE_BYTES (INT64_C(1) << 47)

/** Slots from that of the workspace pointer on. */
enum {
    TESS_TAIL_WORKSPACE = 0,
    TESS_TAIL_SHARED_BYTES = 1,
    TESS_TAIL_WORKER_BYTES = 2,
    TESS_TAIL_WORKERS = 3,
    TESS_TAIL_FEATURES = 4,
    TESS_TAIL_BODY = 5,
    TESS_TAIL_DIMENSION = 6,
    TESS_TAIL_EXPECTED = 7,
    TESS_TAIL_WORDS = 8
};

/** Slot of a dim's extent. */
static inline int64_t tess_frame_dim(int64_t dim) { return dim; }

/** Slot of a tensor's data pointer. */
static inline int64_t tess_frame_data(const int64_t *spec, int64_t tensor) { return tess_spec_tensor(spec, tensor)[TESS_SPEC_TENSOR_SLOT]; }

/** Slot of a tensor's stride. */
static inline int64_t tess_frame_stride(const int64_t *spec, int64_t tensor, int64_t axis) {
    return tess_frame_data(spec, tensor) + 1 + axis;
}

/** Slots in all. */
static inline int64_t tess_frame_size(const int64_t *spec) { return spec[TESS_SPEC_FRAME_WORDS]; }

/** Slot of the workspace pointer; 0 in it when the kernel needs none, and while plan runs. */
static inline int64_t tess_frame_workspace(const int64_t *spec) {
    return tess_frame_size(spec) - TESS_TAIL_WORDS - (spec[TESS_SPEC_DEVICE] == TESS_OPENCL ? spec[TESS_SPEC_N_TENSORS] : 0);
}

/** Slot of a parameter's bits: integers as their value, floats as their bit pattern in the low
 *  bytes. */
static inline int64_t tess_frame_parameter(const int64_t *spec, int64_t parameter) {
    return tess_frame_workspace(spec) - spec[TESS_SPEC_N_PARAMETERS] + parameter;
}

/** Slot of the bytes that all workers share. */
static inline int64_t tess_frame_shared_bytes(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_SHARED_BYTES; }

/** Slot of the bytes that each worker has. */
static inline int64_t tess_frame_worker_bytes(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_WORKER_BYTES; }

/** Slot of the number of workers, at least 1; set before plan runs. */
static inline int64_t tess_frame_workers(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_WORKERS; }

/** Slot of the mask of features that the call may use; set before plan runs. */
static inline int64_t tess_frame_features(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_FEATURES; }

/** Slot of the body's address; set before plan runs. */
static inline int64_t tess_frame_body(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_BODY; }

/** Slots of what plan says of an extent that it refuses. */
static inline int64_t tess_frame_dimension(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_DIMENSION; }
static inline int64_t tess_frame_expected(const int64_t *spec) { return tess_frame_workspace(spec) + TESS_TAIL_EXPECTED; }

/** Slot of a tensor's byte offset; of a kernel for OpenCL. */
static inline int64_t tess_frame_offset(const int64_t *spec, int64_t tensor) {
    return tess_frame_workspace(spec) + TESS_TAIL_WORDS + tensor;
}

/** What is running: the body and its parallel tasks get a pointer to one. Each task has its own
 *  copy. */
typedef struct TessCall {
    const TessContext *context; /**< null when the caller gave none */
    int32_t worker;             /**< in [0, workers) */
    int32_t workers;
    int32_t nested; /**< 1 inside a parallel task */
    int32_t device; /**< number of the device that a kernel for a GPU runs on */
} TessCall;

/** Writes the shared bytes and the bytes per worker into the frame; data pointers may be null
 *  while it runs. It returns 0 or a status. A null plan means that the kernel needs no
 *  workspace. */
typedef int32_t (*TessPlanFunction)(int64_t *frame);

/** Computes; `call` is a TessCall. It returns 0 or a status. */
typedef int32_t (*TessBody)(void *call, int64_t *frame);

/** Checks the arguments, runs plan, checks the workspace, and runs body with round-to-nearest,
 *  denormals kept and exceptions masked; the caller's floating-point state is restored. `tensors`
 *  holds n_tensors tensors, `parameters` points to the struct of parameters (null when there are none),
 *  `context` may be null. The body runs also when tensors have no elements: an empty reduction
 *  has a value. A status is returned. */
int32_t tess_abi2_call(const int64_t *spec, TessPlanFunction plan, TessBody body, const TessTensor *const *tensors, const void *parameters,
                       const TessContext *context);

/** Bytes of workspace that tess_abi2_call wants for the same arguments and context. Checks all
 *  but the data pointers and the workspace itself. `bytes` is 0 on failure. */
int32_t tess_abi2_workspace(const int64_t *spec, TessPlanFunction plan, TessBody body, const TessTensor *const *tensors,
                            const TessContext *context, uint64_t *bytes);

/** Bytes of what a packing kernel writes, header included: its last argument, which may be null here.
 *  Data pointers may be null. `bytes` is 0 on failure. */
int32_t tess_abi2_packed_bytes(const int64_t *spec, const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes);

/** Fills in a kernel. */
int32_t tess_abi2_describe(const int64_t *spec, TessPlanFunction plan, TessBody body, TessKernel *kernel);

/** Calls f(call', i, closure) for i in [min, min + size), on the pool of the call's context;
 *  inside a task, or without a pool, one after the other. call' says which worker runs it. The
 *  first non-zero value stops it and is returned. */
int32_t tess_abi2_do_par_for(void *call, int32_t (*f)(void *call, int32_t index, uint8_t *closure), int32_t min, int32_t size,
                             uint8_t *closure);

/** The worker that runs this code. */
int32_t tess_abi2_worker(void *call);

/** Copies bytes, which must not overlap, by stores past the caches where the processor has such: in vectors of so many bytes, for which
 *  it must have the features. Other threads see them after tess_abi2_end_stream, called by the thread that wrote. TESS_OK. */
int32_t tess_abi2_stream(void *to, const void *from, int64_t bytes, int32_t vector_bytes);
int32_t tess_abi2_end_stream(void);

/** A status; the argument is -1 where there is none. */
static inline int32_t tess_abi2_status(int32_t kind, int32_t argument) { return kind | (argument + 1) * (1 << 12); }

#ifdef __cplusplus
}
#endif

#endif
