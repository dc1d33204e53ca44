/** The public C ABI of Tessera's kernels: C99 and C++20, no other header of Tessera needed.
 *
 *  A kernel is one C function that takes tensor descriptors, then scalar parameters, then a
 *  nullable context, and returns a status: 0 or an int that tells what is wrong, in which
 *  argument and dimension. A kernel call never allocates, never aborts, never throws and keeps
 *  nothing for the next, so any number of them may run at once.
 *
 *  Symbols here keep their meaning for good; what generated code calls is versioned and is in
 *  runtime/kernel.h. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most dimensions of a tensor. */
#define TESS_MAX_RANK 8

/** Most elements of an axis, and from the lowest to the highest address of a tensor: 2^31 - 1 less 2^16. Kernels count in
 *  32 bits, and a tile may end beyond the last element. */
#define TESS_MAX_ELEMENTS 2147418111

/** Bytes to which a workspace must be aligned. */
#define TESS_WORKSPACE_ALIGNMENT 64

/** Type of an element. */
typedef enum TessDType {
    TESS_F32 = 1,
    TESS_F64 = 2,
    TESS_BF16 = 3,
    TESS_F16 = 4,
    TESS_I8 = 5,
    TESS_U8 = 6,
    TESS_I32 = 7,
    TESS_I64 = 8,
    TESS_BOOL = 9 /**< one byte, 0 or 1 */
} TessDType;

/** Where a tensor's data lives. */
typedef enum TessDevice { TESS_HOST = 0 } TessDevice;

/** Bytes of one element; 0 for a value that is no TessDType. */
static inline size_t tess_dtype_size(int32_t dtype) {
    switch (dtype) {
    case TESS_I8:
    case TESS_U8:
    case TESS_BOOL: return 1;
    case TESS_BF16:
    case TESS_F16: return 2;
    case TESS_F32:
    case TESS_I32: return 4;
    case TESS_F64:
    case TESS_I64: return 8;
    default: return 0;
    }
}

/** A view of a tensor. The kernel reads it during the call only and never owns the data.
 *
 *  Element [i0, i1, …] is at data + sum(i * strides[i]) elements. What a kernel accepts:
 *  - any extent >= 0; a tensor without elements may have null data;
 *  - data aligned to its element size; at most 2^31-2^16-1 elements, and as many from the lowest to
 *    the highest address;
 *  - a stride is ignored where its extent is 0 or 1; the last stride must not be negative, and
 *    most kernels want 1;
 *  - stride 0 (broadcast) for inputs only; an output shares no byte of its address range with
 *    another argument.
 *
 *  Elements may have any value. An element may be an index into another tensor (a row's number, an
 *  offset). If it lies outside of that tensor, it is clamped, or what it leads to counts as absent,
 *  as the algorithm says. Such data gives no status and never leads outside of an argument. Offsets
 *  of rows are clamped to 0 and the number of rows; if they decrease, there are no rows between. */
typedef struct TessTensorDesc {
    void *data;
    int64_t extents[TESS_MAX_RANK];
    int64_t strides[TESS_MAX_RANK]; /**< in elements */
    int32_t dtype;                  /**< a TessDType */
    int32_t rank;
    int32_t device;   /**< a TessDevice */
    int32_t reserved; /**< write 0 */
} TessTensorDesc;

/** A row-major tensor without gaps. `extents` holds `rank` values and may be null when rank is
 *  0. A bad rank or extent is kept as it is, for the kernel to refuse. */
static inline TessTensorDesc tess_dense(void *data, TessDType dtype, int32_t rank, const int64_t *extents) {
    const int64_t limit = INT64_C(1) << 31;
    TessTensorDesc desc;
    int64_t stride = 1;
    int32_t axis;
    desc.data = data;
    for (axis = 0; axis < TESS_MAX_RANK; ++axis) {
        desc.extents[axis] = axis < rank ? extents[axis] : 0;
        desc.strides[axis] = 0;
    }
    for (axis = (rank < TESS_MAX_RANK ? rank : TESS_MAX_RANK) - 1; axis >= 0; --axis) {
        const int64_t extent = extents[axis] > 1 ? extents[axis] : 1;
        desc.strides[axis] = stride;
        stride = stride < limit && extent < limit ? stride * extent : INT64_MAX;
    }
#ifdef __cplusplus
    desc.dtype = int32_t(dtype);
#else
    desc.dtype = (int32_t)dtype;
#endif
    desc.rank = rank;
    desc.device = TESS_HOST;
    desc.reserved = 0;
    return desc;
}

/** Bytes of the header of a packed operand, and to how many bytes what it heads must be aligned. */
enum { TESS_PACKED_HEADER_BYTES = 128, TESS_PACKED_ALIGNMENT = 64, TESS_PACKED_VERSION = 1 };

/** A packed operand is what `<kernel>_pack_<operand>` writes and `<kernel>` takes in the place of that
 *  operand: a row of bytes, a header and then the elements in the kernel's layout, with zeros past
 *  the ends of the operand. It is the same in memory and in a file: nothing in it depends on where
 *  it lies. All numbers, elements too, are little-endian. From the first byte on:
 *
 *      0   8 bytes  "TESSPACK"
 *      8   u32      version of this format, TESS_PACKED_VERSION
 *      12  u32      bytes of the header, TESS_PACKED_HEADER_BYTES
 *      16  u64      hash of the layout; the manifest and the comments of the kernel's header have it
 *      24  u32      type of the elements, a TessDType
 *      28  u32      rank of the operand, at most 8
 *      32  u64      bytes of the elements, which begin behind the header
 *      40  8 bytes  0
 *      48  8 i64    extents of the operand, 0 beyond its rank
 *      112 16 bytes 0
 *
 *  The kernel checks all of it, against its own layout and its other arguments. It gives TESS_PACKED or,
 *  for an extent, the status that the operand itself would give. The elements may have any value. */
static inline TessTensorDesc tess_packed(void *data, uint64_t bytes) {
    int64_t extent = -1;
#ifdef __cplusplus
    if (bytes <= INT64_MAX) extent = int64_t(bytes);
#else
    if (bytes <= INT64_MAX) extent = (int64_t)bytes;
#endif
    return tess_dense(data, TESS_U8, 1, &extent);
}

/** Runs independent tasks on threads. An application may supply its own.
 *
 *  `parallel_for` calls task(closure, index, worker) once for each index in [0, count) and
 *  returns when all that started have ended. `worker` is in [0, workers), and no two tasks that
 *  run at the same time have the same one. A task that returns non-zero stops the rest as soon
 *  as possible, and its value is returned; otherwise 0. It may be called from several threads at
 *  once and must not throw. A kernel never calls it from inside one of its tasks. */
typedef struct TessPool {
    void *state;
    int (*parallel_for)(void *state, int (*task)(void *closure, int32_t index, int32_t worker), void *closure, int32_t count,
                        int32_t workers);
} TessPool;

/** What a kernel call may use. A null context means: one thread, no workspace. */
typedef struct TessContext {
    uint32_t size; /**< sizeof(TessContext) of the application */
    /** Most workers to use; 0 or 1: the caller only. Give the number of the pool's threads: the
     *  workspace has memory for each worker, and a kernel cannot ask how many threads a pool has. */
    int32_t threads;
    void *workspace;          /**< scratch memory, aligned to 64 bytes, one for each call in flight */
    uint64_t workspace_bytes; /**< at least what the workspace query gives */
    const TessPool *pool;     /**< null: the caller only, whatever `threads` says */
    /** Bits of tess_cpu_features that a call must do without. A kernel for several targets runs the
     *  best one that is left, and its workspace query is for that one. If none is left, the call
     *  gives TESS_CPU. */
    uint64_t features_off;
} TessContext;

/** A context of one thread and no workspace, to be filled in. */
static inline TessContext tess_context(void) {
    TessContext context;
    context.size = sizeof(TessContext);
    context.threads = 0;
    context.workspace = NULL;
    context.workspace_bytes = 0;
    context.pool = NULL;
    context.features_off = 0;
    return context;
}

/** A pool of `threads` threads, the caller of parallel_for being one of them; null when 1 <=
 *  threads <= 4096 does not hold or the system has no more threads. Threads that find no work
 *  spin for some microseconds, then sleep. A nested call, a call while another thread uses the
 *  pool, and any call in the child of a fork run on their caller alone. */
TessPool *tess_pool_create(int32_t threads);

/** Ends and joins the threads. No call may be in flight. Null is legal. */
void tess_pool_destroy(TessPool *pool);

/** Processors that this thread may run on; at least 1. */
int32_t tess_cpu_count(void);

/** Bits of tess_cpu_features(). */
typedef enum TessCpuFeature {
    TESS_CPU_SSE4_1 = 0,
    TESS_CPU_SSE4_2,
    TESS_CPU_POPCNT,
    TESS_CPU_LZCNT,
    TESS_CPU_BMI1,
    TESS_CPU_BMI2,
    TESS_CPU_AVX,
    TESS_CPU_AVX2,
    TESS_CPU_FMA,
    TESS_CPU_F16C,
    TESS_CPU_GFNI,
    TESS_CPU_AVX_VNNI,
    TESS_CPU_AVX512F,
    TESS_CPU_AVX512CD,
    TESS_CPU_AVX512BW,
    TESS_CPU_AVX512DQ,
    TESS_CPU_AVX512VL,
    TESS_CPU_AVX512_IFMA,
    TESS_CPU_AVX512_VBMI,
    TESS_CPU_AVX512_VBMI2,
    TESS_CPU_AVX512_BITALG,
    TESS_CPU_AVX512_VPOPCNTDQ,
    TESS_CPU_AVX512_VNNI,
    TESS_CPU_AVX512_BF16,
    TESS_CPU_AVX512_FP16,
    TESS_CPU_AMX_TILE,
    TESS_CPU_AMX_INT8,
    TESS_CPU_AMX_BF16,
    TESS_CPU_ASIMDHP, /**< from here on of 64-bit ARM */
    TESS_CPU_ASIMDDP,
    TESS_CPU_I8MM,
    TESS_CPU_BF16,
    TESS_CPU_FEATURE_COUNT
} TessCpuFeature;

/** The features that both the processor and the operating system support, bit by bit; 0 where
 *  neither x86 nor 64-bit ARM under Linux. Computed once, any thread may ask. On Linux the first
 *  call asks the system for leave to use AMX where the processor has it. */
uint64_t tess_cpu_features(void);

/** The name of a feature as Linux prints it in /proc/cpuinfo ("avx512_bf16"); null for a bit
 *  without meaning. */
const char *tess_cpu_feature_name(int bit);

/** What a status says. The words for each are those of tess_status_message. */
typedef enum TessStatusKind {
    TESS_OK = 0,
    TESS_NULL_ARGUMENT,        /**< a descriptor is null */
    TESS_NULL_DATA,            /**< a tensor has elements but no data */
    TESS_RANK,                 /**< not the declared rank */
    TESS_DTYPE,                /**< not the declared type */
    TESS_DEVICE,               /**< not on the device that the kernel runs on */
    TESS_EXTENT_NEGATIVE,      /**< an extent is below 0 */
    TESS_EXTENT_FIXED,         /**< not the extent that the kernel fixes */
    TESS_EXTENT_MISMATCH,      /**< not the extent of the same dim in another argument */
    TESS_EXTENT_MULTIPLE,      /**< not a multiple of what the kernel wants */
    TESS_EXTENT_MIN,           /**< below the declared minimum */
    TESS_EXTENT_MAX,           /**< above the declared maximum */
    TESS_STRIDE_LAST,          /**< the last stride is not 1 */
    TESS_STRIDE_NEGATIVE,      /**< the last stride is negative */
    TESS_MISALIGNED,           /**< data is not aligned to its element size */
    TESS_OVERLAP,              /**< an output shares memory with another argument */
    TESS_SELF_OVERLAP,         /**< elements of an output share memory */
    TESS_TOO_LARGE,            /**< above 2^31-2^16-1 elements, or so far between two; also of a
                                    buffer in the workspace */
    TESS_WORKSPACE_MISSING,    /**< the kernel needs a workspace */
    TESS_WORKSPACE_SMALL,      /**< the workspace has too few bytes */
    TESS_WORKSPACE_MISALIGNED, /**< the workspace is not aligned to 64 bytes */
    TESS_WORKSPACE_OVERLAP,    /**< the workspace shares memory with an argument */
    TESS_CPU,                  /**< the processor lacks an instruction set */
    TESS_CONTEXT,              /**< the context or its pool is malformed */
    TESS_TASK,                 /**< the kernel's code or the pool gave a code that is no status */
    TESS_INDEX,                /**< not given: an index that is read as data is no reason to fail */
    TESS_KERNEL,               /**< the kernel and this library do not belong together */
    TESS_GPU,                  /**< there is no device for the kernel, or it cannot run it */
    TESS_PACKED,               /**< not an operand packed for this kernel and processor */
    TESS_RESERVED,             /**< a reserved field of a descriptor is not 0 */
    TESS_STATUS_KIND_COUNT
} TessStatusKind;

/** The TessStatusKind of a status; TESS_STATUS_KIND_COUNT for an int that is no status. */
int tess_status_code(int status);

/** A stable word for the kind, such as "extent-multiple"; "ok" for 0; "unknown" for an int that
 *  is no status. */
const char *tess_status_kind(int status);

/** The position of the argument at fault, from 0, among the tensors of the kernel; -1 when it is
 *  none of them. */
int tess_status_argument(int status);

/** The dimension at fault, from 0; -1 when it is none in particular. */
int tess_status_dimension(int status);

/** Writes a sentence such as "argument 2 ('w'), dimension 1: extent must be a multiple of 16".
 *  `argument_names` holds a name (or null) for each tensor of the kernel, or is null. At most
 *  `n` bytes are written, the last a zero; the length of the whole sentence is returned, as
 *  snprintf does. No locale, no allocation. */
size_t tess_status_message(int status, const char *const *argument_names, char *buffer, size_t n);

/* The layout is part of the ABI: kernels and applications are compiled apart. */
typedef char tess_layout_desc_extents[offsetof(TessTensorDesc, extents) == 8 ? 1 : -1];
typedef char tess_layout_desc_strides[offsetof(TessTensorDesc, strides) == 72 ? 1 : -1];
typedef char tess_layout_desc_dtype[offsetof(TessTensorDesc, dtype) == 136 ? 1 : -1];
typedef char tess_layout_desc_rank[offsetof(TessTensorDesc, rank) == 140 ? 1 : -1];
typedef char tess_layout_desc_device[offsetof(TessTensorDesc, device) == 144 ? 1 : -1];
typedef char tess_layout_desc_size[sizeof(TessTensorDesc) == 152 ? 1 : -1];
typedef char tess_layout_context_threads[offsetof(TessContext, threads) == 4 ? 1 : -1];
typedef char tess_layout_context_workspace[offsetof(TessContext, workspace) == 8 ? 1 : -1];
typedef char tess_layout_context_bytes[offsetof(TessContext, workspace_bytes) == 16 ? 1 : -1];
typedef char tess_layout_context_pool[offsetof(TessContext, pool) == 24 ? 1 : -1];
typedef char tess_layout_context_off[offsetof(TessContext, features_off) == 32 ? 1 : -1];
typedef char tess_layout_context_size[sizeof(TessContext) == 40 ? 1 : -1];

#ifdef __cplusplus
}
#endif

#endif
