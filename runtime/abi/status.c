#include "runtime/abi/decimal.h"
#include "runtime/abi/extent_words.h"
#include "runtime/abi/kernel.h"

#define TEXT(number) TEXT_AS_IT_IS(number)
#define TEXT_AS_IT_IS(number) #number

typedef struct Kind {
    int32_t kind;
    const char *word;
    /* What is said without a fault; with one, what is said before the number expected, if there is one. */
    const char *plain, *before;
} Kind;

static const Kind kinds[] = {
    {TESS_OK, "ok", "ok", NULL},
    {TESS_NULL_ARGUMENT, "null-argument", "a pointer to what is given or for a result is null", NULL},
    {TESS_NULL_DATA, "null-data", "data is null, but the tensor has elements", NULL},
    {TESS_NULL_EXTENTS, "null-extents", "extents are null, but the tensor has a rank", NULL},
    {TESS_NULL_PARAMETERS, "null-parameters", "the kernel has parameters, and none are given", NULL},
    {TESS_RANK, "rank", "rank is not the declared one", "rank must be "},
    {TESS_DTYPE, "dtype", "dtype is not the declared one", NULL},
    {TESS_LANES, "lanes", "the type's lanes must be 1", "the type's lanes must be "},
    {TESS_DEVICE, "device", "the tensor is not on the device that the kernel runs on", NULL},
    {TESS_DEVICE_ID, "device-id", "the tensor is on another device of its kind", "the tensor must be on the device with number "},
    {TESS_MISALIGNED, "misaligned", "data must be aligned to its element size", "data must be aligned to its element size in bytes, "},
    {TESS_OVERLAP, "overlap", NULL, NULL},
    {TESS_SELF_OVERLAP, "self-overlap", "strides are too small: elements of an output would share memory", NULL},
    {TESS_TOO_LARGE, "too-large", "more than " TEXT(TESS_MAX_ELEMENTS) " elements, or as many from the lowest to the highest address",
     NULL},
    {TESS_EXTENT_NEGATIVE, "extent-negative", "extent must not be negative", TESS_WORDS_EXTENT_MIN},
    {TESS_EXTENT_FIXED, "extent-fixed", "an extent must be the one that the kernel fixes", TESS_WORDS_EXTENT_FIXED},
    {TESS_EXTENT_MISMATCH, "extent-mismatch", NULL, NULL},
    {TESS_EXTENT_MULTIPLE, "extent-multiple", "an extent must be a multiple of the declared factor", TESS_WORDS_EXTENT_MULTIPLE},
    {TESS_EXTENT_MIN, "extent-min", "an extent is below the declared minimum", TESS_WORDS_EXTENT_MIN},
    {TESS_EXTENT_MAX, "extent-max", "an extent is above the declared maximum", TESS_WORDS_EXTENT_MAX},
    {TESS_STRIDE_LAST, "stride-last", "the last stride must be 1", "stride must be "},
    {TESS_STRIDE_NEGATIVE, "stride-negative", "stride must not be negative in the last dimension", NULL},
    {TESS_STRIDE_ODD, "stride-odd", "stride must be even, as a row of elements of 4 bits begins at a byte", NULL},
    {TESS_WORKSPACE_MISSING, "workspace-missing", "the kernel needs a workspace, and the context has none", NULL},
    {TESS_WORKSPACE_SMALL, "workspace-small", "the workspace is too small", NULL},
    {TESS_WORKSPACE_MISALIGNED, "workspace-misaligned", "the workspace must be aligned to 64 bytes", NULL},
    {TESS_WORKSPACE_OVERLAP, "workspace-overlap", "memory is shared with the workspace", NULL},
    {TESS_WORKSPACE_LARGE, "workspace-large",
     "a buffer of the workspace would have more than " TEXT(TESS_MAX_ELEMENTS) " elements; compute a part at a time", NULL},
    {TESS_CONTEXT_SIZE, "context-size", "the context has too small a 'size'; set it to sizeof(TessContext)", NULL},
    {TESS_CONTEXT_NEWER, "context-newer",
     "the context has flags or fields that this library does not know; they must be 0, so make it with tess_context", NULL},
    {TESS_CONTEXT_THREADS, "context-threads", "the context has negative 'threads'; 0 or 1 means the caller only", NULL},
    {TESS_POOL_SIZE, "pool-size", "the context's pool has too small a 'size'; set it to sizeof(TessPool)", NULL},
    {TESS_POOL_NEWER, "pool-newer", "the context's pool has flags or fields that this library does not know; they must be 0", NULL},
    {TESS_POOL_FUNCTION, "pool-function", "the context has a pool without 'parallel_for'", NULL},
    {TESS_POOL_WORKER, "pool-worker", "the context has a pool that gave a worker outside [0, workers)", NULL},
    {TESS_FAULT_SIZE, "fault-size", "the context's fault has too small a 'size'; make it with tess_fault", NULL},
    {TESS_STRUCT_SIZE, "struct-size", "a struct to read or to fill in has too small a 'size'; set it to its sizeof", NULL},
    {TESS_TASK, "task", "the kernel's code or the pool failed", NULL},
    {TESS_NO_SUCH, "no-such", "the kernel has nothing with this index", NULL},
    {TESS_CALL_LARGE, "call-large", "the kernel has too many arguments for a call; make a plan and run it", NULL},
    {TESS_PLAN_SMALL, "plan-small", "too few bytes for the plan; ask tess_plan_bytes", NULL},
    {TESS_PLAN_MISALIGNED, "plan-misaligned", "the plan's memory must be aligned to 8 bytes", NULL},
    {TESS_PLAN_INVALID, "plan-invalid", "there is no plan, or it was moved, or it could not be made; make it where it is run", NULL},
    {TESS_PLAN_BUSY, "plan-busy", "the plan runs already, and its frame is too large for two runs at once; make one for each thread", NULL},
    {TESS_CPU, "cpu", NULL, NULL},
    {TESS_KERNEL, "kernel", "the kernel does not fit this runtime library; link the one that came with it", NULL},
    {TESS_GPU_NONE, "gpu-none", "there is no such device; install a driver for one (clinfo or nvidia-smi lists what there is)", NULL},
    {TESS_GPU_PRECISION, "gpu-precision", "the device does not round as IEEE 754 says, flushes denormals or has no f64; use another", NULL},
    {TESS_GPU_BUILD, "gpu-build", "the device's compiler refuses the kernel; update its driver", NULL},
    {TESS_GPU_MEMORY, "gpu-memory", "the device has no room for the kernel's tables", NULL},
    {TESS_GPU_LAUNCH, "gpu-launch", "the device cannot run the kernel", NULL},
    {TESS_GPU_STREAM, "gpu-stream", "OpenCL needs a command queue; give the context one as 'stream'", NULL},
    {TESS_PACKED_MISALIGNED, "packed-misaligned", "a packed operand must be aligned to 64 bytes", NULL},
    {TESS_PACKED_SHORT, "packed-short", "fewer bytes than the header of a packed operand has", NULL},
    {TESS_PACKED_MAGIC, "packed-magic", "the bytes are no packed operand", NULL},
    {TESS_PACKED_FORMAT, "packed-format", "the operand was packed in a version of the format that this library does not know", NULL},
    {TESS_PACKED_LAYOUT, "packed-layout", "the operand was packed in another layout, for another schedule or processor", NULL},
    {TESS_PACKED_DTYPE, "packed-dtype", "the packed operand has elements of another type or another rank", NULL},
    {TESS_PACKED_EXTENT, "packed-extent", "the packed operand has extents that no tensor has, or other ones than in the plan", NULL},
    {TESS_PACKED_BYTES, "packed-bytes",
     "not as many bytes as an operand of these extents has when it is packed; ask the packing function's size query", NULL},
    {TESS_PARAMETER_MIN, "parameter-min", "a parameter is below its declared minimum", "parameter must be at least "},
    {TESS_PARAMETER_MAX, "parameter-max", "a parameter is above its declared maximum", "parameter must be at most "},
    {TESS_PARAMETER_ABOVE, "parameter-above", "a parameter is not above its declared bound", "parameter must be above "},
    {TESS_PARAMETER_BELOW, "parameter-below", "a parameter is not below its declared bound", "parameter must be below "},
    {TESS_PARAMETER_FINITE, "parameter-finite", "a parameter must be finite", "parameter must be finite"},
    {TESS_BUNDLE_FILE, "bundle-file", "the bundle cannot be read", NULL},
    {TESS_BUNDLE_FORMAT, "bundle-format", "the file is no whole bundle; make it again", NULL},
    {TESS_BUNDLE_MANIFEST, "bundle-manifest", "the bundle's manifest is not as it must be; make the bundle again", NULL},
    {TESS_BUNDLE_VERSION, "bundle-version", "the bundle is of a version that this library does not know; link a newer one", NULL},
    {TESS_BUNDLE_HASH, "bundle-hash", "a part of the bundle was changed after it was made; get it again", NULL},
    {TESS_BUNDLE_SIGNATURE, "bundle-signature", "the bundle is not signed by the key that is demanded", NULL},
    {TESS_BUNDLE_OPTIONS, "bundle-options",
     "the options for a bundle are unknown or do not go together; make them with tess_bundle_options", NULL},
    {TESS_BUNDLE_MEMORY, "bundle-memory", "too few bytes for the bundle, or not aligned to 8; ask tess_bundle_bytes", NULL},
    {TESS_BUNDLE_KERNEL, "bundle-kernel", "the bundle has no kernel of this name", NULL},
    {TESS_BUNDLE_TENSOR, "bundle-tensor", "the bundle has no such tensor", NULL},
    {TESS_BUNDLE_TARGET, "bundle-target", "the bundle has no code for this processor; make it for a lesser target too", NULL},
    {TESS_BUNDLE_CODE, "bundle-code", "the bundle's code cannot be loaded", NULL},
    {TESS_BUNDLE_PACKED, "bundle-packed", "the kernel takes this tensor packed, and the bundle has it not so; pack it by its function",
     NULL},
    {TESS_BUNDLE_REPLAY, "bundle-replay", "what the bundle recorded cannot be run again", NULL},
    {TESS_MESH_ORDER, "mesh-order", "a rank runs another program, or another operation", NULL},
    {TESS_MESH_LATE, "mesh-late", "a rank was silent until the deadline", NULL},
    {TESS_MESH_LOST, "mesh-lost", "a rank or the engine has failed", NULL},
    {TESS_MESH_BROKEN, "mesh-broken", "the mesh failed before; make another one", NULL},
    {TESS_MESH_ENGINE, "mesh-engine", "the engine is not whole or not here; make it with its own function", NULL},
    {TESS_MESH_MEMORY, "mesh-memory", "the system has no memory for the mesh", NULL},
    {TESS_MESH_RANK, "mesh-rank", "there is no such rank, or it is named twice, or this one is missing",
     "the rank, or the number of ranks, must fit a mesh or group of "},
    {TESS_MESH_GROUP, "mesh-group", "there is no such group, or this rank is not in it", NULL},
    {TESS_MESH_COLLECTIVE, "mesh-collective",
     "a collective has a kind, monoid or flag that this library does not know, or fields that do not go together", NULL},
    {TESS_MESH_COUNT, "mesh-count", "the number of elements is negative or too large", "the number of elements must be 0 to "},
    {TESS_MESH_CHUNKS, "mesh-chunks", "the number of ranks must divide the number of chunks", NULL},
    {TESS_MESH_OPERATION, "mesh-operation", "no operation of this number was started", "the number of the operation must be below "},
    {TESS_PROGRAM_FORMAT, "program-format", "the bytes are no table of a program, or a part of it lies outside; make it again", NULL},
    {TESS_PROGRAM_VERSION, "program-version", "the table is of a version that this library does not know", "the table's version must be "},
    {TESS_PROGRAM_FIELD, "program-field", "an entry of the table has a number outside of its range", NULL},
    {TESS_PROGRAM_TENSOR, "program-tensor", "a tensor lies outside of its buffer, or is not what a collective reads or writes", NULL},
    {TESS_PROGRAM_UNDEFINED, "program-undefined", "an operation reads what none has written", NULL},
    {TESS_PROGRAM_READ_ONLY, "program-read-only", "an operation writes an input", NULL},
    {TESS_PROGRAM_BUSY, "program-busy", "an operation touches what a collective in flight reads or writes; wait for it first", NULL},
    {TESS_PROGRAM_WAIT_OTHER, "program-wait", "each collective must be waited for once, after it was started", NULL},
    {TESS_PROGRAM_FREED, "program-freed", "a buffer is used after it was freed, or is freed where it is not in use", NULL},
    {TESS_PROGRAM_OVERLAP, "program-overlap", "a local buffer lies outside of the arena, or on another one that is in use", NULL},
    {TESS_PROGRAM_RESULT, "program-result", "an output is not written whole", NULL},
    {TESS_PROGRAM_MESH, "program-mesh", "the table is another rank's, or of another program, or of a mesh with other extents", NULL},
    {TESS_PROGRAM_ORDER, "program-order", "two ranks do not do the same collectives in the same order", NULL},
    {TESS_PROGRAM_DEADLOCK, "program-deadlock", "ranks wait for each other, or for a message that nobody sends", NULL},
    {TESS_PROGRAM_KERNEL, "program-kernel", "the kernels are not those that the table asks for", NULL},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const Kind *find(int32_t status) {
    int i;
    if (status < 0) return NULL;
    for (i = 0; i < KINDS; ++i)
        if (kinds[i].kind == (status & 0xfff) && (status == 0 || kinds[i].kind != TESS_OK)) return &kinds[i];
    return NULL;
}

int32_t tess_status_code(int32_t status) {
    const Kind *kind = find(status);
    return kind != NULL ? kind->kind : TESS_UNKNOWN;
}

const char *tess_status_kind(int32_t status) {
    const Kind *kind = find(status);
    return kind != NULL ? kind->word : "unknown";
}

int32_t tess_status_argument(int32_t status) { return find(status) != NULL ? (status >> 12) - 1 : -1; }

typedef struct Text {
    char *buffer;
    size_t capacity, length;
} Text;

static void put(Text *text, const char *words) {
    for (; *words != '\0'; ++words, ++text->length) {
        if (text->length + 1 < text->capacity) text->buffer[text->length] = *words;
    }
}

static void put_int(Text *text, int64_t value) {
    char digits[24];
    char *first = digits + sizeof digits - 1;
    uint64_t rest = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
    *first = '\0';
    do {
        *--first = (char)('0' + rest % 10u);
        rest /= 10u;
    } while (rest != 0u);
    if (value < 0) *--first = '-';
    put(text, first);
}

/* A value of a parameter's type, by its bits. */
static void put_value(Text *text, int32_t dtype, int64_t bits) {
    char decimal[TESS_DECIMAL_BYTES];
    if (dtype != TESS_F32 && dtype != TESS_F64) {
        put_int(text, bits);
        return;
    }
    tess_abi2_decimal((uint64_t)bits, dtype == TESS_F64, decimal);
    put(text, decimal);
}

static int is_of_parameter(int32_t kind) { return kind >= TESS_PARAMETER_MIN && kind <= TESS_PARAMETER_FINITE; }

static void put_place(Text *text, const char *const *names, int32_t argument, int32_t dimension) {
    put(text, "argument ");
    put_int(text, argument);
    if (names != NULL && names[argument] != NULL) {
        put(text, " ('");
        put(text, names[argument]);
        put(text, "')");
    }
    if (dimension >= 0) {
        put(text, ", dimension ");
        put_int(text, dimension);
    }
}

static void put_other(Text *text, const char *const *names, const TessFault *fault, const char *otherwise) {
    if (fault != NULL && fault->other_argument >= 0) put_place(text, names, fault->other_argument, fault->other_dimension);
    else put(text, otherwise);
}

static const char *dtype_name(int64_t dtype) {
    switch (dtype) {
    case TESS_F32: return "f32";
    case TESS_F64: return "f64";
    case TESS_BF16: return "bf16";
    case TESS_F16: return "f16";
    case TESS_I8: return "i8";
    case TESS_U8: return "u8";
    case TESS_I32: return "i32";
    case TESS_I64: return "i64";
    case TESS_BOOL: return "bool";
    case TESS_F8E4M3: return "f8e4m3";
    case TESS_F8E4M3FN: return "f8e4m3fn";
    case TESS_F8E4M3FNUZ: return "f8e4m3fnuz";
    case TESS_F8E5M2: return "f8e5m2";
    case TESS_F8E5M2FNUZ: return "f8e5m2fnuz";
    case TESS_F8E8M0FNU: return "f8e8m0fnu";
    case TESS_F6E2M3FN: return "f6e2m3fn";
    case TESS_F6E3M2FN: return "f6e3m2fn";
    case TESS_F4E2M1FN: return "f4e2m1fn";
    case TESS_I4: return "i4";
    case TESS_U4: return "u4";
    default: return NULL;
    }
}

static const char *device_name(int64_t type) {
    switch (type) {
    case TESS_HOST: return "on the host";
    case TESS_CUDA: return "on a CUDA device";
    case TESS_CUDA_HOST: return "in memory that CUDA has pinned";
    case TESS_OPENCL: return "on an OpenCL device";
    default: return NULL;
    }
}

/* ", not <got>" */
static void put_got(Text *text, const TessFault *fault) {
    if (fault->got == TESS_NO_NUMBER) return;
    put(text, ", not ");
    put_int(text, fault->got);
}

static void put_dtype(Text *text, const TessFault *fault) {
    const char *got = dtype_name(fault->got);
    put(text, "dtype must be ");
    put(text, dtype_name(fault->expected) != NULL ? dtype_name(fault->expected) : "the declared one");
    if (fault->got == TESS_NO_NUMBER) return;
    put(text, ", not ");
    if (got != NULL) {
        put(text, got);
        return;
    }
    put(text, "code ");
    put_int(text, fault->got & 255);
    put(text, " with ");
    put_int(text, fault->got >> 8);
    put(text, " bits");
}

static void put_device(Text *text, const TessFault *fault) {
    const char *expected = device_name(fault->expected), *got = device_name(fault->got);
    put(text, fault->argument < 0 ? "the context's device must be one of the kernel's kind, " : "the tensor must be ");
    put(text, expected != NULL ? expected : "where the kernel runs");
    put(text, ", not ");
    if (got != NULL) {
        put(text, got);
    } else {
        put(text, "on device type ");
        put_int(text, fault->got);
    }
}

static void put_workspace(Text *text, const TessFault *fault) {
    if (fault != NULL) {
        put(text, "; ");
        put_int(text, fault->expected);
        put(text, " bytes are enough");
        if (fault->kind == TESS_WORKSPACE_SMALL) put_got(text, fault);
    }
    put(text, "; ask the kernel's workspace query, with the same arguments and context");
}

/* "rank 1 <words> 7" */
static int put_mesh(Text *text, const TessFault *fault, const char *words) {
    if (fault == NULL || fault->got == TESS_NO_NUMBER || fault->expected == TESS_NO_NUMBER) return 0;
    put(text, "rank ");
    put_int(text, fault->got);
    put(text, " ");
    put(text, words);
    put_int(text, fault->expected);
    return 1;
}

/* "<reason>: operation 3, buffer 1" */
static int put_program(Text *text, const char *reason, const TessFault *fault, const char *where, const char *what) {
    if (fault == NULL) return 0;
    put(text, reason);
    if (fault->expected != TESS_NO_NUMBER) {
        put(text, ": ");
        put(text, where);
        put_int(text, fault->expected);
    }
    if (fault->got != TESS_NO_NUMBER) {
        put(text, fault->expected != TESS_NO_NUMBER ? ", " : ": ");
        put(text, what);
        put_int(text, fault->got);
    }
    return 1;
}

/* Kinds whose words are more than one text and a number. */
static int put_special(Text *text, int32_t kind, int32_t argument, const TessFault *fault, const char *const *names) {
    const char *name;
    switch (kind) {
    case TESS_NULL_ARGUMENT:
        if (argument < 0) return 0;
        put(text, "the tensor is null");
        return 1;
    case TESS_DTYPE:
        if (fault == NULL) return 0;
        put_dtype(text, fault);
        return 1;
    case TESS_TOO_LARGE:
        if (fault == NULL || fault->expected == TESS_NO_NUMBER) return 0;
        put(text, "more than ");
        put_int(text, fault->expected);
        put(text, " elements, or as many from the lowest to the highest address");
        if (fault->got != TESS_NO_NUMBER) {
            put(text, ": ");
            put_int(text, fault->got);
        }
        if (fault->expected == TESS_MAX_ELEMENTS && fault->argument >= 0 && fault->dimension < 0)
            put(text, "; a kernel takes more of a tensor that is declared large");
        return 1;
    case TESS_DEVICE:
        if (fault == NULL) return 0;
        put_device(text, fault);
        return 1;
    case TESS_EXTENT_MISMATCH:
        put(text, fault != NULL ? TESS_WORDS_EXTENT_EQUAL : "an extent must equal that of ");
        put_other(text, names, fault, "the same dim elsewhere");
        if (fault != NULL && fault->expected != TESS_NO_NUMBER) {
            put(text, ", ");
            put_int(text, fault->expected);
            put_got(text, fault);
        }
        return 1;
    case TESS_OVERLAP:
        put(text, "memory is shared with ");
        put_other(text, names, fault, "another argument");
        put(text, "; an output needs an address range of its own");
        return 1;
    case TESS_CPU:
        name = fault != NULL ? tess_cpu_feature_name((int)fault->expected) : NULL;
        put(text, "the processor, the operating system or the context lacks ");
        put(text, name != NULL ? name : "an instruction set");
        put(text, ", which the kernel was compiled for; compile it for a lesser target too");
        return 1;
    case TESS_STRIDE_ODD:
        if (fault == NULL) return 0;
        put(text, "stride must be even");
        put_got(text, fault);
        put(text, ", as a row of elements of 4 bits begins at a byte");
        return 1;
    case TESS_MESH_ORDER: return put_mesh(text, fault, "runs another program, or another operation, in place of operation ");
    case TESS_MESH_LATE: return put_mesh(text, fault, "was silent until the deadline of operation ");
    case TESS_MESH_LOST: return put_mesh(text, fault, "is lost, which ended operation ");
    case TESS_MESH_BROKEN:
        if (!put_mesh(text, fault, "broke the mesh in operation ")) return 0;
        put(text, "; make another one");
        return 1;
    case TESS_PROGRAM_UNDEFINED:
    case TESS_PROGRAM_READ_ONLY:
    case TESS_PROGRAM_BUSY:
    case TESS_PROGRAM_WAIT_OTHER:
    case TESS_PROGRAM_FREED:
    case TESS_PROGRAM_OVERLAP: return put_program(text, find(kind)->plain, fault, "operation ", "buffer ");
    case TESS_PROGRAM_RESULT: return put_program(text, find(kind)->plain, fault, "", "buffer ");
    case TESS_PROGRAM_FIELD:
    case TESS_PROGRAM_TENSOR: return put_program(text, find(kind)->plain, fault, "entry ", "number ");
    case TESS_PROGRAM_ORDER:
    case TESS_PROGRAM_DEADLOCK: return put_program(text, find(kind)->plain, fault, "operation ", "rank ");
    case TESS_MESH_CHUNKS:
        if (fault == NULL || fault->expected == TESS_NO_NUMBER) return 0;
        put(text, "the number of ranks must divide the number of chunks, ");
        put_int(text, fault->expected);
        put_got(text, fault);
        put(text, "; take chunks = ranks times a power of two");
        return 1;
    case TESS_TASK:
        if (fault == NULL || fault->got == TESS_NO_NUMBER) return 0;
        put(text, "the kernel's code or the pool failed with code ");
        put_int(text, fault->got);
        return 1;
    default: return 0;
    }
}

static void put_parameter(Text *text, const Kind *kind, const TessFault *fault) {
    put(text, kind->before);
    if (kind->kind != TESS_PARAMETER_FINITE) put_value(text, fault->dimension, fault->expected);
    put(text, ", not ");
    put_value(text, fault->dimension, fault->got);
}

static void put_reason(Text *text, const Kind *kind, int32_t argument, const TessFault *fault, const char *const *names) {
    if (put_special(text, kind->kind, argument, fault, names)) return;
    if (is_of_parameter(kind->kind) && fault != NULL) {
        put_parameter(text, kind, fault);
        return;
    }
    if (fault != NULL && kind->before != NULL && fault->expected != TESS_NO_NUMBER) {
        put(text, kind->before);
        put_int(text, fault->expected);
        put_got(text, fault);
    } else {
        put(text, kind->plain);
    }
    switch (kind->kind) {
    case TESS_STRIDE_LAST: put(text, "; copy the tensor to rows without gaps"); break;
    case TESS_WORKSPACE_MISSING:
    case TESS_WORKSPACE_SMALL: put_workspace(text, fault); break;
    case TESS_PLAN_SMALL:
        if (fault == NULL) break;
        put(text, "; ");
        put_int(text, fault->expected);
        put(text, " are enough");
        put_got(text, fault);
        break;
    case TESS_PACKED_SHORT:
    case TESS_PACKED_MAGIC:
    case TESS_PACKED_FORMAT:
    case TESS_PACKED_LAYOUT:
    case TESS_PACKED_DTYPE:
    case TESS_PACKED_EXTENT: put(text, "; pack it with this kernel's packing function"); break;
    default: break;
    }
}

size_t tess_status_message(int32_t status, const TessFault *fault, const char *const *argument_names, char *buffer, size_t n) {
    const Kind *kind = find(status);
    const int32_t argument = tess_status_argument(status);
    Text text;
    text.buffer = buffer;
    text.capacity = buffer != NULL ? n : 0;
    text.length = 0;
    /* One that tells of another failure says nothing. */
    if (fault != NULL && (kind == NULL || fault->size < sizeof *fault || fault->kind != kind->kind || fault->argument != argument))
        fault = NULL;
    if (argument >= 0) {
        put_place(&text, argument_names, argument, fault != NULL && !is_of_parameter(kind->kind) ? fault->dimension : -1);
        put(&text, ": ");
    }
    if (kind != NULL) {
        put_reason(&text, kind, argument, fault, argument_names);
    } else {
        put(&text, "no status of a kernel: ");
        put_int(&text, status);
    }
    if (buffer != NULL && n > 0) buffer[text.length < n ? text.length : n - 1] = '\0';
    return text.length;
}
