#include "runtime/gpu.h"

#define TEXT(number) TEXT_AS_IT_IS(number)
#define TEXT_AS_IT_IS(number) #number

typedef struct Status {
    int kind, argument, dimension;
    int detail; /* -1 where there is none */
} Status;

static const char *const kind_names[TESS_STATUS_KIND_COUNT] = {
    "ok",
    "null-argument",
    "null-data",
    "rank",
    "dtype",
    "device",
    "extent-negative",
    "extent-fixed",
    "extent-mismatch",
    "extent-multiple",
    "extent-min",
    "extent-max",
    "stride-last",
    "stride-negative",
    "misaligned",
    "overlap",
    "self-overlap",
    "too-large",
    "workspace-missing",
    "workspace-small",
    "workspace-misaligned",
    "workspace-overlap",
    "cpu",
    "context",
    "task",
    "index",
    "kernel",
    "gpu",
    "packed",
    "reserved",
};

static const char *const dtype_names[] = {"", "f32", "f64", "bf16", "f16", "i8", "u8", "i32", "i64", "bool"};

static Status decode(int status) {
    Status s = {TESS_STATUS_KIND_COUNT, -1, -1, -1};
    const int kind = status >> 26;
    if (status == 0) s.kind = TESS_OK;
    if (status <= 0 || kind == 0 || kind >= TESS_STATUS_KIND_COUNT) return s;
    s.kind = kind;
    s.argument = ((status >> 20) & 63) - 1;
    s.dimension = ((status >> 16) & 15) - 1;
    s.detail = (status & 65535) - 1;
    return s;
}

int tess_status_code(int status) { return decode(status).kind; }

const char *tess_status_kind(int status) {
    const int kind = decode(status).kind;
    return kind == TESS_STATUS_KIND_COUNT ? "unknown" : kind_names[kind];
}

int tess_status_argument(int status) { return decode(status).argument; }

int tess_status_dimension(int status) { return decode(status).dimension; }

typedef struct Text {
    char *buffer;
    size_t capacity, length;
} Text;

static void put(Text *text, const char *words) {
    for (; *words != '\0'; ++words, ++text->length) {
        if (text->length + 1 < text->capacity) text->buffer[text->length] = *words;
    }
}

static void put_int(Text *text, int value) {
    char digits[12];
    char *first = digits + sizeof digits - 1;
    unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
    *first = '\0';
    do {
        *--first = (char)('0' + rest % 10u);
        rest /= 10u;
    } while (rest != 0u);
    if (value < 0) *--first = '-';
    put(text, first);
}

static void put_place(Text *text, const char *const *names, int argument, int dimension) {
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

/* "<words> <detail>", or the other words when the number did not fit. */
static void put_number(Text *text, const char *words, int detail, const char *otherwise) {
    if (detail < 0) {
        put(text, otherwise);
        return;
    }
    put(text, words);
    put_int(text, detail);
}

static void put_needed_workspace(Text *text, int kib) {
    if (kib >= 0) {
        put(text, "; ");
        put_int(text, kib);
        put(text, " KiB are enough");
    }
    put(text, "; ask the kernel's workspace query, with the same arguments and context");
}

static void put_context(Text *text, int detail) {
    put(text, "the context ");
    switch (detail) {
    case TESS_CONTEXT_SIZE: put(text, "has too small a 'size'; set it to sizeof(TessContext)"); break;
    case TESS_CONTEXT_THREADS: put(text, "has negative 'threads'; 0 or 1 means the caller only"); break;
    case TESS_CONTEXT_PARALLEL_FOR: put(text, "has a pool without 'parallel_for'"); break;
    case TESS_CONTEXT_WORKER: put(text, "has a pool that gave a worker outside [0, workers)"); break;
    default: put(text, "is malformed");
    }
}

static void put_gpu(Text *text, int detail) {
    switch (detail) {
    case TESS_GPU_NONE: put(text, "there is no device; install a driver for one (clinfo or nvidia-smi lists what there is)"); break;
    case TESS_GPU_PRECISION: put(text, "the device does not round as IEEE 754 says, flushes denormals or has no f64; use another"); break;
    case TESS_GPU_BUILD: put(text, "the device's compiler refuses the kernel; update its driver"); break;
    case TESS_GPU_MEMORY: put(text, "the device has no room for the arguments"); break;
    default: put(text, "the device cannot run the kernel");
    }
}

static void put_packed(Text *text, int detail) {
    switch (detail) {
    case TESS_PACKED_ALIGNED: put(text, "a packed operand must be aligned to 64 bytes"); return;
    case TESS_PACKED_SHORT: put(text, "fewer bytes than the header of a packed operand has"); break;
    case TESS_PACKED_MAGIC: put(text, "the bytes are no packed operand"); break;
    case TESS_PACKED_FORMAT: put(text, "the operand was packed in a version of the format that this library does not know"); break;
    case TESS_PACKED_LAYOUT: put(text, "the operand was packed in another layout, for another schedule or processor"); break;
    case TESS_PACKED_DTYPE: put(text, "the packed operand has elements of another type or another rank"); break;
    case TESS_PACKED_EXTENT: put(text, "the packed operand has extents that no tensor has"); break;
    case TESS_PACKED_BYTES:
        put(text, "not as many bytes as an operand of these extents has when it is packed; ask the packing function's size query");
        return;
    default: put(text, "not an operand packed for this kernel");
    }
    put(text, "; pack it with this kernel's packing function");
}

static void put_reason(Text *text, Status s, const char *const *names) {
    switch (s.kind) {
    case TESS_OK: put(text, "ok"); break;
    case TESS_NULL_ARGUMENT: put(text, s.argument < 0 ? "a pointer for the result is null" : "the descriptor is null"); break;
    case TESS_NULL_DATA: put(text, "data is null, but the tensor has elements"); break;
    case TESS_RANK: put_number(text, "rank must be ", s.detail, "rank is not the declared one"); break;
    case TESS_DTYPE:
        put(text, "dtype must be ");
        put(text, s.detail >= TESS_F32 && s.detail <= TESS_BOOL ? dtype_names[s.detail] : "the declared one");
        break;
    case TESS_RESERVED: put(text, "'reserved' must be 0; make the descriptor with tess_dense"); break;
    case TESS_DEVICE: put(text, "device must be TESS_HOST"); break;
    case TESS_EXTENT_NEGATIVE: put(text, "extent must not be negative"); break;
    case TESS_EXTENT_FIXED: put_number(text, "extent must be ", s.detail, "extent must be the one that the kernel fixes"); break;
    case TESS_EXTENT_MISMATCH:
        put(text, "extent must equal that of ");
        if (s.detail < 0) {
            put(text, "the same dim elsewhere");
        } else {
            put_place(text, names, s.detail / 16, s.detail % 16 - 1);
        }
        break;
    case TESS_EXTENT_MULTIPLE:
        put_number(text, "extent must be a multiple of ", s.detail, "extent must be a multiple of the declared factor");
        break;
    case TESS_EXTENT_MIN: put_number(text, "extent must be at least ", s.detail, "extent is below the declared minimum"); break;
    case TESS_EXTENT_MAX: put_number(text, "extent must be at most ", s.detail, "extent is above the declared maximum"); break;
    case TESS_STRIDE_LAST: put(text, "stride must be 1; copy the tensor to rows without gaps"); break;
    case TESS_STRIDE_NEGATIVE: put(text, "stride must not be negative in the last dimension"); break;
    case TESS_MISALIGNED:
        put_number(text, "data must be aligned to its element size in bytes, ", s.detail, "data must be aligned to its element size");
        break;
    case TESS_OVERLAP:
        put(text, "memory is shared with ");
        if (s.detail < 0) {
            put(text, "another argument");
        } else {
            put_place(text, names, s.detail / 16, s.detail % 16 - 1);
        }
        put(text, "; an output needs an address range of its own");
        break;
    case TESS_SELF_OVERLAP: put(text, "strides are too small: elements of an output would share memory"); break;
    case TESS_TOO_LARGE:
        if (s.detail == 1) {
            put(text, "a buffer of the workspace would have more than " TEXT(TESS_MAX_ELEMENTS) " elements; compute a part at a time");
        } else {
            put(text, "more than " TEXT(TESS_MAX_ELEMENTS) " elements, or as many from the lowest to the highest address");
        }
        break;
    case TESS_WORKSPACE_MISSING:
        put(text, "the kernel needs a workspace, and the context has none");
        put_needed_workspace(text, s.detail);
        break;
    case TESS_WORKSPACE_SMALL:
        put(text, "the workspace is too small");
        put_needed_workspace(text, s.detail);
        break;
    case TESS_WORKSPACE_MISALIGNED: put(text, "the workspace must be aligned to 64 bytes"); break;
    case TESS_WORKSPACE_OVERLAP: put(text, "memory is shared with the workspace"); break;
    case TESS_CPU: {
        const char *name = tess_cpu_feature_name(s.detail);
        put(text, "the processor, the operating system or the context lacks ");
        put(text, name != NULL ? name : "an instruction set");
        put(text, ", which the kernel was compiled for; compile it for a lesser target too");
        break;
    }
    case TESS_CONTEXT: put_context(text, s.detail); break;
    case TESS_TASK:
        put_number(text, "the kernel's code or the pool failed with code ", s.detail, "the kernel's code or the pool failed");
        break;
    case TESS_INDEX: put(text, "an index in its data is out of bounds"); break;
    case TESS_KERNEL: put(text, "the kernel does not fit this runtime library; link the one that came with it"); break;
    case TESS_GPU: put_gpu(text, s.detail); break;
    case TESS_PACKED: put_packed(text, s.detail); break;
    default: put(text, "no status of a kernel");
    }
}

size_t tess_status_message(int status, const char *const *argument_names, char *buffer, size_t n) {
    const Status s = decode(status);
    Text text;
    text.buffer = buffer;
    text.capacity = buffer != NULL ? n : 0;
    text.length = 0;
    if (s.argument >= 0) {
        put_place(&text, argument_names, s.argument, s.dimension);
        put(&text, ": ");
    }
    put_reason(&text, s, argument_names);
    if (s.kind == TESS_STATUS_KIND_COUNT) {
        put(&text, ": ");
        put_int(&text, status);
    }
    if (buffer != NULL && n > 0) buffer[text.length < n ? text.length : n - 1] = '\0';
    return text.length;
}
