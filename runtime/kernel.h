/** The contract between generated kernels and this library: the table that describes a kernel,
 *  the frame in which its code finds its arguments, and the functions that it calls. C99 and
 *  C++20; the emitters include it too.
 *
 *  A kernel library holds, per kernel, a constant table and two functions:
 *
 *      static const int64_t spec[] = {…};              what the arguments must be
 *      static int plan(int64_t *frame);                writes the bytes of workspace needed
 *      static int body(void *call, int64_t *frame);    computes
 *
 *  and its public symbol packs its arguments and calls tess_abi1_run. */
#ifndef TESSERA_KERNEL_H
#define TESSERA_KERNEL_H

#include "runtime/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** First word of every spec: "TESS" and the version of this contract. */
#define TESS_SPEC_ABI1 INT64_C(0x5445535300000001)
/** The same for a kernel that packs an operand ahead of time or takes one, so that an older library
 *  refuses it. */
#define TESS_SPEC_PACKED INT64_C(0x5445535300000002)

enum { TESS_MAX_DIMS = 64, TESS_MAX_TENSORS = 32, TESS_MAX_PARAMETERS = 16 };

/** Words of the spec: a header of TESS_SPEC_HEADER words, then n_dims dim records, then n_tensors
 *  tensor records. A dim that no tensor carries must be fixed or equal to an earlier one. With
 *  TESS_SPEC_PACKED there follow the number of layouts, and for each tensor that is packed so many
 *  layout records: the first whose features the call may use is the one that its code reads. The
 *  tensor's record describes the operand. */
enum {
    TESS_SPEC_VERSION = 0,      /**< TESS_SPEC_ABI1 or TESS_SPEC_PACKED */
    TESS_SPEC_CPU_FEATURES = 1, /**< mask of 1 << TessCpuFeature that all its code needs */
    TESS_SPEC_N_DIMS = 2,
    TESS_SPEC_N_TENSORS = 3,
    TESS_SPEC_N_PARAMETERS = 4,
    TESS_SPEC_HEADER = 5,

    /* within a dim record */
    TESS_SPEC_DIM_FIXED = 0,       /**< the extent, or -1 */
    TESS_SPEC_DIM_MIN = 1,         /**< 0 where there is none */
    TESS_SPEC_DIM_MAX = 2,         /**< -1 where there is none */
    TESS_SPEC_DIM_MULTIPLE_OF = 3, /**< 1 where there is none */
    TESS_SPEC_DIM_EQUAL_TO = 4,    /**< index of a dim of the same extent, or -1 */
    TESS_SPEC_DIM_WORDS = 5,

    /* within a tensor record */
    TESS_SPEC_TENSOR_ROLE = 0,  /**< TESS_ROLE_… */
    TESS_SPEC_TENSOR_DTYPE = 1, /**< a TessDType */
    TESS_SPEC_TENSOR_RANK = 2,
    TESS_SPEC_TENSOR_FLAGS = 3, /**< TESS_FLAG_… */
    TESS_SPEC_TENSOR_AXES = 4,  /**< 8 words: the dim of each axis; -1 beyond the rank */
    TESS_SPEC_TENSOR_WORDS = 12,

    /* within a layout record */
    TESS_SPEC_LAYOUT_CPU_FEATURES = 0, /**< mask of 1 << TessCpuFeature */
    TESS_SPEC_LAYOUT_HASH = 1,
    TESS_SPEC_LAYOUT_N_AXES = 2,
    /** 8 pairs of words: the operand's axis, then 0 for all of it, f > 0 for its quotient by f,
     *  rounded up, -f for the remainder. */
    TESS_SPEC_LAYOUT_AXES = 3,
    TESS_SPEC_LAYOUT_WORDS = 19
};

enum { TESS_ROLE_INPUT = 0, TESS_ROLE_OUTPUT = 1, TESS_ROLE_INOUT = 2 };

/** The last stride must be 1 where the last extent is above 1; what is passed is the packed form of
 *  the operand, or will be. Of a packed tensor the frame holds where the elements begin, behind the
 *  header, and no strides that mean anything. */
enum { TESS_FLAG_LAST_STRIDE_1 = 1, TESS_FLAG_PACKED = 2 };

/** The record of a dim. */
static inline const int64_t *tess_spec_dim(const int64_t *spec, int64_t dim) { return spec + TESS_SPEC_HEADER + dim * TESS_SPEC_DIM_WORDS; }

/** The record of a tensor. */
static inline const int64_t *tess_spec_tensor(const int64_t *spec, int64_t tensor) {
    return tess_spec_dim(spec, spec[TESS_SPEC_N_DIMS]) + tensor * TESS_SPEC_TENSOR_WORDS;
}

/** The layout record of the n-th packed tensor for the features of a call; null when there is none. */
static inline const int64_t *tess_spec_layout(const int64_t *spec, int64_t packed, uint64_t features) {
    const int64_t *count = tess_spec_tensor(spec, spec[TESS_SPEC_N_TENSORS]);
    const int64_t *record = count + 1 + packed * *count * TESS_SPEC_LAYOUT_WORDS;
    int64_t i;
    for (i = 0; i < *count; ++i, record += TESS_SPEC_LAYOUT_WORDS) {
        const uint64_t needed = (uint64_t)record[TESS_SPEC_LAYOUT_CPU_FEATURES];
        if ((needed & features) == needed) return record;
    }
    return NULL;
}

/** Words of a spec with so many dims and tensors, without layouts. */
static inline int64_t tess_spec_words(int64_t dims, int64_t tensors) {
    return TESS_SPEC_HEADER + dims * TESS_SPEC_DIM_WORDS + tensors * TESS_SPEC_TENSOR_WORDS;
}

/* The frame is an array of int64_t on the stack of tess_abi1_run, which plan and body read by
 * slot:
 *
 *     [each dim's extent] [each tensor: data pointer, then `rank` strides] [each parameter's bits]
 *     [workspace pointer] [shared bytes] [bytes per worker] [workers] [features]
 *
 * Strides are in elements; where an extent is 0 or 1, or the tensor has no elements, the last
 * stride is 1 and the others 0, whatever the caller wrote. Shared memory starts at the
 * workspace pointer; worker w has the bytes at workspace + shared bytes + w * bytes per worker.
 * plan writes the two byte counts (they are 0 before); the run rounds each up to a multiple of
 * 64 before it calls body, so every part is aligned to 64 bytes. The features are those of
 * tess_cpu_features that the context leaves; plan and body choose by them what they run, and so
 * agree. */

/** More than any plan may ask for, in bytes. A plan whose buffers are too large asks for twice as
 *  much, so that the sum of all its buffers still fits its type. */
#define TESS_MAX_WORKSPACE_BYTES (INT64_C(1) << 47)

/** Slot of a dim's extent. */
static inline int64_t tess_frame_dim(int64_t dim) { return dim; }

/** Slot of a tensor's data pointer; for tensor == n_tensors, the slot after the last tensor. */
static inline int64_t tess_frame_data(const int64_t *spec, int64_t tensor) {
    int64_t slot = spec[TESS_SPEC_N_DIMS];
    int64_t before;
    for (before = 0; before < tensor; ++before) slot += 1 + tess_spec_tensor(spec, before)[TESS_SPEC_TENSOR_RANK];
    return slot;
}

/** Slot of a tensor's stride. */
static inline int64_t tess_frame_stride(const int64_t *spec, int64_t tensor, int64_t axis) {
    return tess_frame_data(spec, tensor) + 1 + axis;
}

/** Slot of a parameter's bits: integers as their value, floats as their bit pattern in the low
 *  bytes. */
static inline int64_t tess_frame_parameter(const int64_t *spec, int64_t parameter) {
    return tess_frame_data(spec, spec[TESS_SPEC_N_TENSORS]) + parameter;
}

/** Slot of the workspace pointer; 0 in it when the kernel needs none, and while plan runs. */
static inline int64_t tess_frame_workspace(const int64_t *spec) { return tess_frame_parameter(spec, spec[TESS_SPEC_N_PARAMETERS]); }

/** Slot of the bytes that all workers share. */
static inline int64_t tess_frame_shared_bytes(const int64_t *spec) { return tess_frame_workspace(spec) + 1; }

/** Slot of the bytes that each worker has. */
static inline int64_t tess_frame_worker_bytes(const int64_t *spec) { return tess_frame_workspace(spec) + 2; }

/** Slot of the number of workers, at least 1; set before plan runs. */
static inline int64_t tess_frame_workers(const int64_t *spec) { return tess_frame_workspace(spec) + 3; }

/** Slot of the mask of features that the call may use; set before plan runs. */
static inline int64_t tess_frame_features(const int64_t *spec) { return tess_frame_workspace(spec) + 4; }

/** Slots in all. */
static inline int64_t tess_frame_size(const int64_t *spec) { return tess_frame_workspace(spec) + 5; }

/** Most slots of any frame. */
enum { TESS_MAX_FRAME = TESS_MAX_DIMS + TESS_MAX_TENSORS * (1 + TESS_MAX_RANK) + TESS_MAX_PARAMETERS + 5 };

/** What is running: the body and its parallel tasks get a pointer to one. Each task has its own
 *  copy. */
typedef struct TessCall {
    const TessContext *context; /**< null when the caller gave none */
    int32_t worker;             /**< in [0, workers) */
    int32_t workers;
    int32_t nested; /**< 1 inside a parallel task */
    int32_t reserved;
} TessCall;

/** Writes the shared bytes and the bytes per worker into the frame; data pointers may be null
 *  while it runs. It returns 0 or a status. A null plan means that the kernel needs no
 *  workspace. */
typedef int (*TessPlan)(int64_t *frame);

/** Computes; `call` is a TessCall. It returns 0 or a status. */
typedef int (*TessBody)(void *call, int64_t *frame);

/** Checks the arguments, runs plan, checks the workspace, and runs body with round-to-nearest,
 *  denormals kept and exceptions masked; the caller's floating-point state is restored. `args`
 *  holds n_tensors descriptors, `parameter_bits` n_parameters words (null when there are none),
 *  `context` may be null. The body runs also when tensors have no elements: an empty reduction
 *  has a value. A status is returned. */
int tess_abi1_run(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits, const TessContext *context,
                  TessPlan plan, TessBody body);

/** Bytes of workspace that tess_abi1_run wants for the same arguments and context. Checks all
 *  but the data pointers and the workspace itself. `bytes` is 0 on failure. */
int tess_abi1_workspace(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits, const TessContext *context,
                        TessPlan plan, uint64_t *bytes);

/** Bytes of what a packing kernel writes, header included: its last argument, which may be null here.
 *  Data pointers may be null. `bytes` is 0 on failure. */
int tess_abi1_packed_bytes(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits,
                           const TessContext *context, uint64_t *bytes);

/** Calls f(call', i, closure) for i in [min, min + size), on the pool of the call's context;
 *  inside a task, or without a pool, one after the other. call' says which worker runs it. The
 *  first non-zero value stops it and is returned. */
int tess_abi1_do_par_for(void *call, int (*f)(void *call, int index, uint8_t *closure), int min, int size, uint8_t *closure);

/** The worker that runs this code. */
int32_t tess_abi1_worker(void *call);

/** 0, or the status that names the first feature in `required` that `have` lacks. */
int tess_abi1_check_features(uint64_t required, uint64_t have);

/* A status is kind << 26 | (argument + 1) << 20 | (dimension + 1) << 16 | (detail + 1):
 * positive, and never as small as the codes that foreign code returns. The detail is what the
 * words need: an extent, a rank, a feature, … */

/** The largest detail that a status can hold. */
enum { TESS_MAX_DETAIL = 65534 };

/** A status; argument, dimension and detail are -1 where there is none, and so is a detail that
 *  does not fit. */
static inline int tess_abi1_status(int kind, int argument, int dimension, int64_t detail) {
    const int kept = detail < 0 || detail > TESS_MAX_DETAIL ? 0 : 1 + (int)detail;
    return kind * (1 << 26) + (argument + 1) * (1 << 20) + (dimension + 1) * (1 << 16) + kept;
}

/** The detail that points at another argument and dimension (or -1). */
static inline int tess_abi1_place(int argument, int dimension) { return argument * 16 + dimension + 1; }

/** Details of TESS_CONTEXT. */
enum {
    TESS_CONTEXT_SIZE = 0,         /**< `size` is below that of the first TessContext */
    TESS_CONTEXT_THREADS = 1,      /**< `threads` is negative */
    TESS_CONTEXT_PARALLEL_FOR = 2, /**< the pool has no parallel_for */
    TESS_CONTEXT_WORKER = 3        /**< the pool gave a worker outside [0, workers) */
};

/** Details of TESS_PACKED. */
enum {
    TESS_PACKED_ALIGNED = 0, /**< not aligned to TESS_PACKED_ALIGNMENT bytes */
    TESS_PACKED_SHORT = 1,   /**< fewer bytes than a header has */
    TESS_PACKED_MAGIC = 2,   /**< the bytes are no packed operand */
    TESS_PACKED_FORMAT = 3,  /**< of a version of the format that this library does not know */
    TESS_PACKED_LAYOUT = 4,  /**< packed in another layout */
    TESS_PACKED_DTYPE = 5,   /**< elements of another type, or another rank */
    TESS_PACKED_EXTENT = 6,  /**< extents that no tensor has */
    TESS_PACKED_BYTES = 7    /**< not as many bytes as the extents ask for */
};

#ifdef __cplusplus
}
#endif

#endif
