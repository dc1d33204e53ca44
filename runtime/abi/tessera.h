/** The public C ABI of Tessera's kernels, ABI 2: C99 and C++20, no other header of Tessera needed.
 *
 *  A kernel is a C function that takes tensors, a struct of its parameters where it has any, and a
 *  nullable context, and returns a status: 0 or an int that tells what is wrong, in which argument.
 *  Or it is planned once (tess_plan_make) and run many times (tess_plan_run). A call never
 *  allocates, never aborts, never throws and keeps nothing for the next, so any number of them may
 *  run at once.
 *
 *  Structs that have a `size` grow at their end. Write sizeof of the struct there: what a library
 *  does not know of must be 0, and what an application does not have counts as 0. Flags without a
 *  meaning and reserved fields must be 0, which is checked. Numbers are never used again.
 *  runtime/README.md says what else ABI 2 promises for good. What generated code calls is in
 *  runtime/abi/kernel.h. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this ABI. */
#define TESS_ABI 2

/** Most dimensions of a tensor. */
#define TESS_MAX_RANK 8

/** Most elements of an axis, and from the lowest to the highest address of a tensor that is not large: 2^31 - 1 less 2^16. Kernels
 *  count in 32 bits, and a tile may end beyond the last element. */
#define TESS_MAX_ELEMENTS 2147418111

/** The same of a tensor that the kernel declares large (TESS_FLAG_LARGE), but for its axes. */
#define TESS_MAX_LARGE_ELEMENTS 17592186044416

/** Bytes to which a workspace must be aligned. */
#define TESS_WORKSPACE_ALIGNMENT 64

/** Type of an element, as DLPack's DLDataType: a code (0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool, 8 and 10 to 14 floats of one
 *  byte, 15 to 17 of 6 and 4 bits) and bits. Codes from 0x80 on are Tessera's own. */
typedef struct TessType {
    uint8_t code, bits;
    uint16_t lanes; /**< must be 1 */
} TessType;

/** The types of elements that kernels have, in one number: the code, and the bits times 256. */
typedef enum TessDType {
    TESS_F32 = 0x2002,
    TESS_F64 = 0x4002,
    TESS_BF16 = 0x1004,
    TESS_F16 = 0x1002,
    TESS_I8 = 0x0800,
    TESS_U8 = 0x0801,
    TESS_I32 = 0x2000,
    TESS_I64 = 0x4000,
    TESS_BOOL = 0x0806, /**< one byte, 0 or 1 */
    /* Floats of one byte, as DLPack 1.1 numbers them; each element is a uint8_t. */
    TESS_F8E4M3 = 0x0808,
    TESS_F8E4M3FN = 0x080a,
    TESS_F8E4M3FNUZ = 0x080b,
    TESS_F8E5M2 = 0x080c,
    TESS_F8E5M2FNUZ = 0x080d,
    TESS_F8E8M0FNU = 0x080e,
    /* Floats of 6 bits, each in the low bits of a uint8_t. */
    TESS_F6E2M3FN = 0x060f,
    TESS_F6E3M2FN = 0x0610,
    /* Elements of 4 bits, two to a byte, the first one in the low half. Each row along the last axis begins at a byte; where it ends
     * within one, its high half is written 0 and not looked at. */
    TESS_F4E2M1FN = 0x0411,
    TESS_I4 = 0x0400,
    TESS_U4 = 0x0401
} TessDType;

/** Kinds of devices, with DLPack's numbers; those from 0x80 on are Tessera's own. */
typedef enum TessDeviceType {
    TESS_HOST = 1,
    TESS_CUDA = 2,
    TESS_CUDA_HOST = 3, /**< host memory that CUDA has pinned; for kernels the same as TESS_HOST */
    TESS_OPENCL = 4
} TessDeviceType;

/** Where a tensor's data lives, as DLPack's DLDevice. */
typedef struct TessDevice {
    int32_t type; /**< a TessDeviceType */
    int32_t id;   /**< which of its kind; not looked at on the host */
} TessDevice;

/** Bytes of one element; 0 for those of 4 bits, and for a value that is no TessDType. */
static inline size_t tess_dtype_size(int32_t dtype) {
    switch (dtype) {
    case TESS_I8:
    case TESS_U8:
    case TESS_BOOL:
    case TESS_F8E4M3:
    case TESS_F8E4M3FN:
    case TESS_F8E4M3FNUZ:
    case TESS_F8E5M2:
    case TESS_F8E5M2FNUZ:
    case TESS_F8E8M0FNU:
    case TESS_F6E2M3FN:
    case TESS_F6E3M2FN: return 1;
    case TESS_BF16:
    case TESS_F16: return 2;
    case TESS_F32:
    case TESS_I32: return 4;
    case TESS_F64:
    case TESS_I64: return 8;
    default: return 0;
    }
}

/** Whether two elements share a byte: the types of 4 bits. */
static inline int tess_is_half_byte(int32_t dtype) { return dtype == TESS_F4E2M1FN || dtype == TESS_I4 || dtype == TESS_U4; }

/** Bytes of a row-major tensor without gaps; 0 for a value that is no TessDType. Extents are at least 0. */
static inline size_t tess_bytes(int32_t dtype, int32_t rank, const int64_t *extents) {
    const int half = tess_is_half_byte(dtype);
    uint64_t bytes = half ? 1 : tess_dtype_size(dtype);
    int32_t axis;
    for (axis = 0; axis < rank; ++axis) {
        const int64_t units = half && axis == rank - 1 ? extents[axis] / 2 + extents[axis] % 2 : extents[axis];
#ifdef __cplusplus
        bytes *= uint64_t(units);
#else
        bytes *= (uint64_t)units;
#endif
    }
    return bytes;
}

/** A view of a tensor, laid out as DLPack's DLTensor, which may be passed as it is. The kernel reads it during the call only and
 *  never owns the data or the two arrays.
 *
 *  Element [i0, i1, …] is at data + byte_offset bytes + sum(i * strides[i]) elements. What a kernel accepts:
 *  - any extent >= 0; a tensor without elements may have null data;
 *  - extents null for rank 0 only; strides null for a row-major tensor without gaps, but for the half bytes at the ends of rows;
 *  - the first element aligned to its size; at most 2^31-2^16-1 elements, and as many from the
 *    lowest to the highest address, where two of 4 bits count as one;
 *  - a stride is ignored where its extent is 0 or 1; the last stride must not be negative, and
 *    most kernels want 1;
 *  - of elements of 4 bits the last stride is 1 and the others are even;
 *  - stride 0 (broadcast) for inputs only; an output shares no byte of its address range with
 *    another argument.
 *
 *  Elements may have any value. An element may be an index into another tensor (a row's number, an
 *  offset). If it lies outside of that tensor, it is clamped, or what it leads to counts as absent,
 *  as the algorithm says. Such data gives no status and never leads outside of an argument. Offsets
 *  of rows are clamped to 0 and the number of rows; if they decrease, there are no rows between. */
typedef struct TessTensor {
    void *data; /**< host memory, CUDA's device memory, or a cl_mem */
    TessDevice device;
    int32_t rank;
    TessType type;
    const int64_t *extents;
    const int64_t *strides; /**< in elements, or null */
    uint64_t byte_offset;
} TessTensor;

/* No address, without a warning of any compiler. */
#ifdef __cplusplus
#define TESS_NULL nullptr
#else
#define TESS_NULL NULL
#endif

/** The type of a TessDType. */
static inline TessType tess_type(int32_t dtype) {
    TessType type;
#ifdef __cplusplus
    type.code = uint8_t(dtype & 255);
    type.bits = uint8_t(dtype >> 8 & 255);
#else
    type.code = (uint8_t)(dtype & 255);
    type.bits = (uint8_t)(dtype >> 8 & 255);
#endif
    type.lanes = 1;
    return type;
}

/** A row-major tensor without gaps on the host. `extents` holds `rank` values; the tensor points to them, so they have to live as long. */
static inline TessTensor tess_dense(void *data, TessDType dtype, int32_t rank, const int64_t *extents) {
    TessTensor tensor;
    tensor.data = data;
    tensor.device.type = TESS_HOST;
    tensor.device.id = 0;
    tensor.rank = rank;
#ifdef __cplusplus
    tensor.type = tess_type(int32_t(dtype));
#else
    tensor.type = tess_type((int32_t)dtype);
#endif
    tensor.extents = extents;
    tensor.strides = TESS_NULL;
    tensor.byte_offset = 0;
    return tensor;
}

/** Bytes of the header of a packed operand, and to how many bytes what it heads must be aligned. */
enum { TESS_PACKED_HEADER_BYTES = 128, TESS_PACKED_ALIGNMENT = 64, TESS_PACKED_VERSION = 2 };

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
 *  The kernel checks all of it, against its own layout and its other arguments. It gives a status of
 *  TESS_PACKED_… or, for an extent, the one that the operand itself would give. The elements may have
 *  any value. The tensor points to `bytes`, which is what the size query gave and has to live as long. */
static inline TessTensor tess_packed(void *data, const uint64_t *bytes) {
#ifdef __cplusplus
    return tess_dense(data, TESS_U8, 1, reinterpret_cast<const int64_t *>(bytes));
#else
    return tess_dense(data, TESS_U8, 1, (const int64_t *)bytes);
#endif
}

/** Runs independent tasks on threads. An application may supply its own.
 *
 *  `parallel_for` calls task(closure, index, worker) once for each index in [0, count) and
 *  returns when all that started have ended. `worker` is in [0, workers), and no two tasks that
 *  run at the same time have the same one. A task that returns non-zero stops the rest as soon
 *  as possible, and its value is returned; otherwise 0. Codes of its own are negative or below 256. It may be called from several
 *  threads at once and must not throw. A kernel never calls it from inside one of its tasks. */
typedef struct TessPool {
    uint32_t size;  /**< sizeof(TessPool) */
    uint32_t flags; /**< 0 */
    void *state;
    int32_t (*parallel_for)(void *state, int32_t (*task)(void *closure, int32_t index, int32_t worker), void *closure, int32_t count,
                            int32_t workers);
} TessPool;

/** No number: what the fault has nothing to say of. */
#define TESS_NO_NUMBER INT64_MIN

/** What a status has no room for. Written whole when a call fails; -1 or TESS_NO_NUMBER where there is nothing to say. */
typedef struct TessFault {
    uint32_t size; /**< sizeof(TessFault) */
    int32_t kind;  /**< a TessStatusKind */
    int32_t argument, dimension;
    int32_t other_argument, other_dimension; /**< what it does not agree with */
    int64_t expected, got;                   /**< extents, ranks, bytes, bits, …: what the kind speaks of; a TessDType for a type */
} TessFault;

/** What a kernel call may use. A null context means: the host, one thread, no workspace. */
typedef struct TessContext {
    uint32_t size;  /**< sizeof(TessContext) */
    uint32_t flags; /**< 0 */
    /** Most workers to use; 0 or 1: the caller only. Give the number of the pool's threads: the
     *  workspace has memory for each worker, and a kernel cannot ask how many threads a pool has. */
    int32_t threads;
    int32_t reserved; /**< 0 */
    /** Scratch memory of the device that the kernel runs on, aligned to 64 bytes, one for each call in flight. A cl_mem for OpenCL. */
    void *workspace;
    uint64_t workspace_bytes; /**< at least what the workspace query gives */
    const TessPool *pool;     /**< null: the caller only, whatever `threads` says */
    /** Bits of tess_cpu_features that a call must do without. A kernel for several targets runs the
     *  best one that is left, and its workspace query is for that one. If none is left, the call
     *  gives TESS_CPU. */
    uint64_t features_off;
    /** Where a kernel for a GPU runs, and its tensors are. Type 0: number 0 of the kernel's kind. */
    TessDevice device;
    /** The CUstream or cl_command_queue that a kernel for a GPU runs in; null: CUDA's default stream. OpenCL has none. */
    void *stream;
    /** Called once, with done_state and 0 or the status of what failed, for each call that returns TESS_OK: when its results are
     *  there. On the host that is before the call returns. On a device the call returns as soon as its work is in the stream, the
     *  context has to live until then, and a thread of the driver's calls it, which must call neither CUDA nor OpenCL. Or null. */
    void (*done)(void *state, int32_t status);
    void *done_state;
    TessFault *fault; /**< where the details of a failure go, or null */
} TessContext;

/** A context of one thread and no workspace, to be filled in. */
static inline TessContext tess_context(void) {
    TessContext context;
    context.size = sizeof(TessContext);
    context.flags = 0;
    context.threads = 0;
    context.reserved = 0;
    context.workspace = TESS_NULL;
    context.workspace_bytes = 0;
    context.pool = TESS_NULL;
    context.features_off = 0;
    context.device.type = 0;
    context.device.id = 0;
    context.stream = TESS_NULL;
    context.done = TESS_NULL;
    context.done_state = TESS_NULL;
    context.fault = TESS_NULL;
    return context;
}

/** A fault of which nothing is said yet. */
static inline TessFault tess_fault(void) {
    TessFault fault;
    fault.size = sizeof(TessFault);
    fault.kind = 0;
    fault.argument = fault.dimension = fault.other_argument = fault.other_dimension = -1;
    fault.expected = fault.got = TESS_NO_NUMBER;
    return fault;
}

/** A kernel as a value: what `<kernel>_describe` fills in. It may be copied, and lives as long as the library that has the kernel. */
typedef struct TessKernel {
    uint32_t size;       /**< sizeof(TessKernel) */
    uint32_t abi;        /**< TESS_ABI */
    const int64_t *spec; /**< what the functions below read; runtime/abi/kernel.h says how */
    int32_t (*plan)(int64_t *frame);
    int32_t (*body)(void *call, int64_t *frame);
} TessKernel;

/** One to be filled in. */
static inline TessKernel tess_kernel(void) {
    TessKernel kernel;
    kernel.size = sizeof(TessKernel);
    kernel.abi = 0;
    kernel.spec = TESS_NULL;
    kernel.plan = TESS_NULL;
    kernel.body = TESS_NULL;
    return kernel;
}

/** What a kernel is. Of this struct and the four below: write its `size` first; as much of it is filled in. Texts live as long as the
 *  kernel's library. */
typedef struct TessKernelInfo {
    uint32_t size, flags;
    const char *name;
    TessDevice device;        /**< the kind that it runs on; id is 0 */
    int32_t tensors, dims;    /**< how many there are */
    int32_t parameters, code; /**< the same */
    uint64_t parameter_bytes; /**< sizeof(<kernel>_parameters); 0 where there are none */
    uint64_t cpu_features;    /**< that all of its code needs */
} TessKernelInfo;

/** What a kernel does with a tensor; flags of a TessTensorInfo. */
enum { TESS_ROLE_INPUT = 0, TESS_ROLE_OUTPUT = 1, TESS_ROLE_INOUT = 2 };
enum {
    TESS_FLAG_LAST_STRIDE_1 = 1, /**< the last stride must be 1 where the last extent is above 1 */
    TESS_FLAG_PACKED = 2,        /**< what is passed is the operand's packed form (tess_packed); the rest is said of the operand */
    TESS_FLAG_LARGE = 4          /**< up to TESS_MAX_LARGE_ELEMENTS elements, where others have up to TESS_MAX_ELEMENTS */
};

typedef struct TessTensorInfo {
    uint32_t size, flags;
    const char *name;
    TessType type;
    int32_t rank, role;
    int32_t dims[TESS_MAX_RANK]; /**< the dim of each axis; -1 beyond the rank */
} TessTensorInfo;

typedef struct TessDimInfo {
    uint32_t size, flags;
    const char *name;
    int64_t fixed;       /**< the extent, or -1 */
    int64_t min, max;    /**< max is -1 where there is none */
    int64_t multiple_of; /**< 1 where there is none */
    int32_t equal_to;    /**< a dim of the same extent, or -1 */
    int32_t reserved;
} TessDimInfo;

typedef struct TessParameterInfo {
    uint32_t size, flags;
    const char *name;
    TessType type;
    uint32_t offset;     /**< in <kernel>_parameters, in bytes */
    int64_t range;       /**< bits of TessRange; 0: any value */
    int64_t least, most; /**< the bits of values of the type */
} TessParameterInfo;

/** What is said of the range of a parameter. A declared one holds no NaN and no infinity. */
typedef enum TessRange {
    TESS_RANGE_DECLARED = 1,
    TESS_RANGE_LEAST = 2, /**< `least` says more than the type */
    TESS_RANGE_MOST = 4,
    TESS_RANGE_ABOVE = 8, /**< `least` is outside */
    TESS_RANGE_BELOW = 16 /**< `most` is outside */
} TessRange;

/** Code that a call may run: the first whose features and conditions hold. */
typedef struct TessCodeInfo {
    uint32_t size, flags;
    const char *target;    /**< such as "avx512" */
    const char *when;      /**< conditions on extents, such as "M <= 16"; "" for all */
    const char *hash;      /**< of the tile program that it was made from: the manifest's "resolved" */
    uint64_t cpu_features; /**< that it needs */
} TessCodeInfo;

/** Fill in `info`. TESS_NO_SUCH where `index` is not below the count. */
int32_t tess_kernel_info(const TessKernel *kernel, TessKernelInfo *info);
int32_t tess_kernel_tensor(const TessKernel *kernel, int32_t index, TessTensorInfo *info);
int32_t tess_kernel_dim(const TessKernel *kernel, int32_t index, TessDimInfo *info);
int32_t tess_kernel_parameter(const TessKernel *kernel, int32_t index, TessParameterInfo *info);
int32_t tess_kernel_code(const TessKernel *kernel, int32_t index, TessCodeInfo *info);

/** Calls a kernel: `tensors` holds one for each of its tensors, `parameters` points to its struct of parameters and is null where there
 *  are none. The same as its function. A kernel whose arguments take more than 32 KiB to check (about 300 tensors) gives
 *  TESS_CALL_LARGE and wants a plan. */
int32_t tess_call(const TessKernel *kernel, const TessTensor *const *tensors, const void *parameters, const TessContext *context);

/** Bytes of workspace that a call with these arguments and this context needs. Data pointers may be null, but not that of a packed
 *  operand, whose header is read. `bytes` is 0 on failure. */
int32_t tess_call_workspace(const TessKernel *kernel, const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes);

/** A kernel with its arguments checked once, in memory of the caller. */
typedef struct TessPlan TessPlan;

/** Bytes to which the memory of a plan must be aligned. */
#define TESS_PLAN_ALIGNMENT 8

/** Bytes of memory that a plan of this kernel takes. */
int32_t tess_plan_bytes(const TessKernel *kernel, uint64_t *bytes);

/** Makes a plan in `memory`: fixes types, extents, strides and byte offsets of all tensors, the code that runs, the device and the most
 *  workers. Data pointers may be null, but not that of a packed operand; parameters may be null and be given later. The workspace is
 *  not looked at. Nothing of the arguments has to live on. The plan must not be moved; it holds nothing that has to be freed. */
int32_t tess_plan_make(const TessKernel *kernel, const TessTensor *const *tensors, const void *parameters, const TessContext *context,
                       void *memory, uint64_t bytes);

/** Bytes of workspace that each run of the plan needs. */
int32_t tess_plan_workspace(const TessPlan *plan, uint64_t *bytes);

/** Runs a plan: data[i] is in place of the data of tensor i (its byte offset stays). `parameters` may be null where the plan was made
 *  with some. Of the context counts all but the device, features_off and more threads than the plan was made for. What may be wrong
 *  with data, workspace and a packed operand is checked as by a call. A plan may run on several threads at once, each with a
 *  workspace of its own; one whose frame is above 2 KiB (about 40 tensors) gives TESS_PLAN_BUSY where it runs already. */
int32_t tess_plan_run(const TessPlan *plan, void *const *data, const void *parameters, const TessContext *context);

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
    TESS_CPU_ASIMDHP, /**< this and the next three are of 64-bit ARM */
    TESS_CPU_ASIMDDP,
    TESS_CPU_I8MM,
    TESS_CPU_BF16,
    TESS_CPU_SSE4A, /**< of x86 */
    TESS_CPU_FEATURE_COUNT
} TessCpuFeature;

/** The features that both the processor and the operating system support, bit by bit; 0 where
 *  neither x86 nor 64-bit ARM under Linux. Computed once, any thread may ask. On Linux the first
 *  call asks the system for leave to use AMX where the processor has it. */
uint64_t tess_cpu_features(void);

/** The name of a feature as Linux prints it in /proc/cpuinfo ("avx512_bf16"); null for a bit
 *  without meaning. */
const char *tess_cpu_feature_name(int bit);

/** What a status says. The words for each are those of tess_status_message. The lowest is 257, so that small codes of other code, such
 *  as errno's, are no statuses. */
typedef enum TessStatusKind {
    TESS_UNKNOWN = -1, /**< no status */
    TESS_OK = 0,

    TESS_NULL_ARGUMENT = 0x101,   /**< a tensor, or a pointer for a result, is null */
    TESS_NULL_DATA = 0x102,       /**< a tensor has elements but no data */
    TESS_NULL_EXTENTS = 0x103,    /**< a tensor has a rank but no extents */
    TESS_NULL_PARAMETERS = 0x104, /**< the kernel has parameters, and none are given */
    TESS_RANK = 0x105,            /**< not the declared rank */
    TESS_DTYPE = 0x106,           /**< not the declared type */
    TESS_LANES = 0x107,           /**< a type with lanes other than 1 */
    TESS_DEVICE = 0x108,          /**< not on the device that the kernel runs on */
    TESS_MISALIGNED = 0x109,      /**< data is not aligned to its element size */
    TESS_OVERLAP = 0x10a,         /**< an output shares memory with another argument */
    TESS_SELF_OVERLAP = 0x10b,    /**< elements of an output share memory */
    TESS_TOO_LARGE = 0x10c,       /**< above 2^31-2^16-1 elements, or so far between two */
    TESS_DEVICE_ID = 0x10d,       /**< on another device of the kind */

    TESS_EXTENT_NEGATIVE = 0x201, /**< an extent is below 0 */
    TESS_EXTENT_FIXED = 0x202,    /**< not the extent that the kernel fixes */
    TESS_EXTENT_MISMATCH = 0x203, /**< not the extent of the same dim in another argument */
    TESS_EXTENT_MULTIPLE = 0x204, /**< not a multiple of what the kernel wants */
    TESS_EXTENT_MIN = 0x205,      /**< below the declared minimum */
    TESS_EXTENT_MAX = 0x206,      /**< above the declared maximum */
    TESS_STRIDE_LAST = 0x207,     /**< the last stride is not 1 */
    TESS_STRIDE_NEGATIVE = 0x208, /**< the last stride is negative */
    TESS_STRIDE_ODD = 0x209,      /**< rows of elements of 4 bits would begin within a byte */

    TESS_WORKSPACE_MISSING = 0x301,    /**< the kernel needs a workspace */
    TESS_WORKSPACE_SMALL = 0x302,      /**< the workspace has too few bytes */
    TESS_WORKSPACE_MISALIGNED = 0x303, /**< the workspace is not aligned to 64 bytes */
    TESS_WORKSPACE_OVERLAP = 0x304,    /**< the workspace shares memory with an argument */
    TESS_WORKSPACE_LARGE = 0x305,      /**< a buffer in the workspace would have too many elements */

    TESS_CONTEXT_SIZE = 0x401,    /**< the context's `size` is below that of its first version */
    TESS_CONTEXT_NEWER = 0x402,   /**< the context has flags or fields, reserved or of a later version, that are not 0 */
    TESS_CONTEXT_THREADS = 0x403, /**< `threads` is negative */
    TESS_POOL_SIZE = 0x404,       /**< as TESS_CONTEXT_SIZE, of the pool */
    TESS_POOL_NEWER = 0x405,      /**< as TESS_CONTEXT_NEWER, of the pool */
    TESS_POOL_FUNCTION = 0x406,   /**< the pool has no parallel_for */
    TESS_POOL_WORKER = 0x407,     /**< the pool gave a worker outside [0, workers) */
    TESS_FAULT_SIZE = 0x408,      /**< as TESS_CONTEXT_SIZE, of the context's fault */
    TESS_STRUCT_SIZE = 0x409,     /**< as TESS_CONTEXT_SIZE, of a TessKernel or of a struct to be filled in */
    TESS_TASK = 0x40a,            /**< the kernel's code or the pool gave a code that is no status */
    TESS_NO_SUCH = 0x40b,         /**< the kernel has nothing of this index */
    TESS_CALL_LARGE = 0x40c,      /**< the kernel has so many arguments that it needs a plan */
    TESS_PLAN_SMALL = 0x40d,      /**< too few bytes for the plan */
    TESS_PLAN_MISALIGNED = 0x40e, /**< the plan's memory is not aligned to 8 bytes */
    TESS_PLAN_INVALID = 0x40f,    /**< the memory holds no plan, or one that was moved or could not be made */
    TESS_PLAN_BUSY = 0x410,       /**< a plan with a large frame runs already */

    TESS_CPU = 0x501,    /**< the processor lacks an instruction set */
    TESS_KERNEL = 0x502, /**< the kernel and this library do not belong together */

    TESS_GPU_NONE = 0x601,      /**< there is no such device */
    TESS_GPU_PRECISION = 0x602, /**< the device does not round, or flushes denormals, or has no f64 */
    TESS_GPU_BUILD = 0x603,     /**< the device's compiler refuses the program */
    TESS_GPU_MEMORY = 0x604,    /**< the device has no room for the kernel's tables */
    TESS_GPU_LAUNCH = 0x605,    /**< the device cannot run the kernel */
    TESS_GPU_STREAM = 0x606,    /**< OpenCL needs a command queue */

    TESS_PACKED_MISALIGNED = 0x701, /**< a packed operand is not aligned to TESS_PACKED_ALIGNMENT bytes */
    TESS_PACKED_SHORT = 0x702,      /**< fewer bytes than a header has */
    TESS_PACKED_MAGIC = 0x703,      /**< the bytes are no packed operand */
    TESS_PACKED_FORMAT = 0x704,     /**< of a version of the format that this library does not know */
    TESS_PACKED_LAYOUT = 0x705,     /**< packed in another layout, for another kernel or processor */
    TESS_PACKED_DTYPE = 0x706,      /**< elements of another type, or another rank */
    TESS_PACKED_EXTENT = 0x707,     /**< extents that no tensor has, or other ones than in the plan */
    TESS_PACKED_BYTES = 0x708,      /**< not as many bytes as the extents ask for */

    /* A parameter is outside of its range. The fault has the bits of values of its type, and its `dimension` is that TessDType. */
    TESS_PARAMETER_MIN = 0x801,    /**< below the least value that is declared */
    TESS_PARAMETER_MAX = 0x802,    /**< above the greatest one */
    TESS_PARAMETER_ABOVE = 0x803,  /**< not above the number that is declared */
    TESS_PARAMETER_BELOW = 0x804,  /**< not below it */
    TESS_PARAMETER_FINITE = 0x805, /**< NaN or an infinity */

    /* Bundles (runtime/bundle/bundle.h), whose functions say more in a TessBundleError. */
    TESS_BUNDLE_FILE = 0x901,      /**< the file cannot be read */
    TESS_BUNDLE_FORMAT = 0x902,    /**< the file breaks a rule of bundles */
    TESS_BUNDLE_MANIFEST = 0x903,  /**< the manifest breaks one */
    TESS_BUNDLE_VERSION = 0x904,   /**< of a version that this library does not know */
    TESS_BUNDLE_HASH = 0x905,      /**< a member has other bytes than the manifest says */
    TESS_BUNDLE_SIGNATURE = 0x906, /**< a key is demanded, and the bundle is not signed by it */
    TESS_BUNDLE_OPTIONS = 0x907,   /**< options that this library does not know, or that do not go together */
    TESS_BUNDLE_MEMORY = 0x908,    /**< too few bytes for what is known of a bundle, or misaligned ones */
    TESS_BUNDLE_KERNEL = 0x909,    /**< no kernel of this name */
    TESS_BUNDLE_TENSOR = 0x90a,    /**< no tensor of this name, or one that no kernel takes */
    TESS_BUNDLE_TARGET = 0x90b,    /**< no code that this processor runs */
    TESS_BUNDLE_CODE = 0x90c,      /**< the code cannot be loaded */
    TESS_BUNDLE_PACKED = 0x90d,    /**< the code takes a tensor packed, and the bundle has it not so */
    TESS_BUNDLE_REPLAY = 0x90e,    /**< what is recorded cannot be run again */

    /* Meshes (runtime/mesh/mesh.h). Of the first four the fault's `expected` is the number of the operation, `got` the rank at fault. */
    TESS_MESH_ORDER = 0xa01,      /**< a rank runs another program, or another operation */
    TESS_MESH_LATE = 0xa02,       /**< a rank was silent until the deadline */
    TESS_MESH_LOST = 0xa03,       /**< a rank, or the engine, has failed */
    TESS_MESH_BROKEN = 0xa04,     /**< the mesh failed before */
    TESS_MESH_ENGINE = 0xa05,     /**< the engine is not whole, or is not here */
    TESS_MESH_MEMORY = 0xa06,     /**< the system has no memory */
    TESS_MESH_RANK = 0xa07,       /**< no such rank, or one that is named twice */
    TESS_MESH_GROUP = 0xa08,      /**< no such group, or this rank is not in it */
    TESS_MESH_COLLECTIVE = 0xa09, /**< a kind, monoid or flag that this library does not know, or fields that do not go together */
    TESS_MESH_COUNT = 0xa0a,      /**< a number of elements below 0 or too large */
    TESS_MESH_CHUNKS = 0xa0b,     /**< the number of ranks does not divide the number of chunks */
    TESS_MESH_OPERATION = 0xa0c,  /**< no operation of this number was started */

    /* Tables of programs (runtime/mesh/program.h). The fault's `expected` is the operation or the entry at fault, `got` the buffer, field
     * or rank. */
    TESS_PROGRAM_FORMAT = 0xb01,     /**< the bytes are no table, or a part of it lies outside */
    TESS_PROGRAM_VERSION = 0xb02,    /**< of a version that this library does not know */
    TESS_PROGRAM_FIELD = 0xb03,      /**< an entry has a number outside of its range */
    TESS_PROGRAM_TENSOR = 0xb04,     /**< a tensor lies outside of its buffer, or is not what a collective reads or writes */
    TESS_PROGRAM_UNDEFINED = 0xb05,  /**< an operation reads what none has written */
    TESS_PROGRAM_READ_ONLY = 0xb06,  /**< an operation writes an input */
    TESS_PROGRAM_BUSY = 0xb07,       /**< an operation touches what a collective in flight reads or writes */
    TESS_PROGRAM_WAIT_OTHER = 0xb08, /**< a wait for no collective, a second one, or a collective that nobody waits for */
    TESS_PROGRAM_FREED = 0xb09,      /**< a buffer was freed, or cannot be */
    TESS_PROGRAM_OVERLAP = 0xb0a,    /**< a local buffer lies outside of the arena, or on another one that is in use */
    TESS_PROGRAM_RESULT = 0xb0b,     /**< an output is not written whole */
    TESS_PROGRAM_MESH = 0xb0c,       /**< of another mesh, rank or program */
    TESS_PROGRAM_ORDER = 0xb0d,      /**< two ranks do not do the same in the same order */
    TESS_PROGRAM_DEADLOCK = 0xb0e,   /**< no rank can go on */
    TESS_PROGRAM_KERNEL = 0xb0f      /**< the kernels are not those that the table asks for */
} TessStatusKind;

/* A status is kind | (argument + 1) << 12, in 31 bits. */

/** The TessStatusKind of a status; TESS_UNKNOWN for an int that is no status. */
int32_t tess_status_code(int32_t status);

/** A stable word for the kind, such as "extent-multiple"; "ok" for 0; "unknown" for an int that
 *  is no status. */
const char *tess_status_kind(int32_t status);

/** The position of the argument at fault, from 0, among the tensors of the kernel and, behind them,
 *  its parameters; -1 when it is none of them. */
int32_t tess_status_argument(int32_t status);

/** Writes a sentence such as "argument 2 ('w'), dimension 1: extent must be a multiple of 16, not 40". `fault` is that of the call's
 *  context; without one (null) the sentence has no dimension and no numbers.
 *  `argument_names` holds a name (or null) for each tensor and then each parameter of the kernel, or is null. At most
 *  `n` bytes are written, the last a zero; the length of the whole sentence is returned, as
 *  snprintf does. No locale, no allocation. */
size_t tess_status_message(int32_t status, const TessFault *fault, const char *const *argument_names, char *buffer, size_t n);

/* The layout is part of the ABI: kernels and applications are compiled apart. These are sizes of ABI 2's first version; structs grow
 * at their end. */
typedef char tess_layout_type[sizeof(TessType) == 4 ? 1 : -1];
typedef char tess_layout_device[sizeof(TessDevice) == 8 ? 1 : -1];
typedef char tess_layout_fault_expected[offsetof(TessFault, expected) == 24 ? 1 : -1];
typedef char tess_layout_fault[sizeof(TessFault) == 40 ? 1 : -1];
#if UINTPTR_MAX == UINT64_MAX
typedef char tess_layout_tensor_device[offsetof(TessTensor, device) == 8 ? 1 : -1];
typedef char tess_layout_tensor_rank[offsetof(TessTensor, rank) == 16 ? 1 : -1];
typedef char tess_layout_tensor_type[offsetof(TessTensor, type) == 20 ? 1 : -1];
typedef char tess_layout_tensor_extents[offsetof(TessTensor, extents) == 24 ? 1 : -1];
typedef char tess_layout_tensor_strides[offsetof(TessTensor, strides) == 32 ? 1 : -1];
typedef char tess_layout_tensor_offset[offsetof(TessTensor, byte_offset) == 40 ? 1 : -1];
typedef char tess_layout_tensor[sizeof(TessTensor) == 48 ? 1 : -1];
typedef char tess_layout_pool[sizeof(TessPool) == 24 ? 1 : -1];
typedef char tess_layout_context_workspace[offsetof(TessContext, workspace) == 16 ? 1 : -1];
typedef char tess_layout_context_pool[offsetof(TessContext, pool) == 32 ? 1 : -1];
typedef char tess_layout_context_device[offsetof(TessContext, device) == 48 ? 1 : -1];
typedef char tess_layout_context_fault[offsetof(TessContext, fault) == 80 ? 1 : -1];
typedef char tess_layout_context[sizeof(TessContext) == 88 ? 1 : -1];
typedef char tess_layout_kernel[sizeof(TessKernel) == 32 ? 1 : -1];
#endif

#ifdef __cplusplus
}
#endif

#endif
