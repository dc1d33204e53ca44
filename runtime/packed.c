#include "runtime/packed.h"

#include <string.h>

enum {
    MAGIC = 0,
    VERSION = 8,
    HEADER_BYTES = 12,
    HASH = 16,
    DTYPE = 24,
    RANK = 28,
    BYTES = 32,
    UNUSED = 40,
    EXTENTS = 48,
    UNUSED_END = 112
};

static const uint8_t magic[8] = {'T', 'E', 'S', 'S', 'P', 'A', 'C', 'K'};

static uint64_t read_word(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | at[bytes];
    return value;
}

static void write_word(uint8_t *at, int bytes, uint64_t value) {
    int i;
    for (i = 0; i < bytes; ++i, value >>= 8) at[i] = (uint8_t)(value & 255);
}

static int is_zero(const uint8_t *from, const uint8_t *to) {
    while (from < to && *from == 0) ++from;
    return from == to;
}

static const uint8_t *header_of(const TessBinding *b, int64_t tensor) { return b->args[tensor]->data; }

/* The layout that the call's code reads. */
static const int64_t *layout_of(const TessBinding *b, int64_t tensor) {
    int64_t t, packed = 0;
    for (t = 0; t < tensor; ++t) packed += tess_abi1_is_packed(b, t);
    return tess_spec_layout(b->spec, packed, b->features);
}

static int packed_fault(int64_t tensor, int detail) { return tess_abi1_fault(TESS_PACKED, tensor, -1, detail); }

static int check_header(const TessBinding *b, int64_t tensor) {
    const int64_t *record = tess_spec_tensor(b->spec, tensor), *layout = layout_of(b, tensor);
    const uint8_t *header = header_of(b, tensor);
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK];
    int64_t axis;
    if (memcmp(header + MAGIC, magic, sizeof magic) != 0) return packed_fault(tensor, TESS_PACKED_MAGIC);
    if (read_word(header + VERSION, 4) != TESS_PACKED_VERSION || read_word(header + HEADER_BYTES, 4) != TESS_PACKED_HEADER_BYTES)
        return packed_fault(tensor, TESS_PACKED_FORMAT);
    if (read_word(header + DTYPE, 4) != (uint64_t)record[TESS_SPEC_TENSOR_DTYPE] || read_word(header + RANK, 4) != (uint64_t)rank)
        return packed_fault(tensor, TESS_PACKED_DTYPE);
    if (read_word(header + HASH, 8) != (uint64_t)layout[TESS_SPEC_LAYOUT_HASH]) return packed_fault(tensor, TESS_PACKED_LAYOUT);
    for (axis = 0; axis < TESS_MAX_RANK; ++axis) {
        const uint64_t extent = read_word(header + EXTENTS + 8 * axis, 8);
        if (extent > (axis < rank ? (uint64_t)TESS_MAX_ELEMENTS : 0)) return packed_fault(tensor, TESS_PACKED_EXTENT);
    }
    /* What another version may use. */
    if (!is_zero(header + UNUSED, header + EXTENTS) || !is_zero(header + UNUSED_END, header + TESS_PACKED_HEADER_BYTES))
        return packed_fault(tensor, TESS_PACKED_FORMAT);
    return TESS_OK;
}

int tess_abi1_check_packed(const TessBinding *b, int64_t tensor) {
    const TessTensorDesc *arg = b->args == NULL ? NULL : b->args[tensor];
    const int written = tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT;
    const int64_t *layout;
    int64_t i;
    if (b->spec[TESS_SPEC_VERSION] != TESS_SPEC_PACKED || (layout = layout_of(b, tensor)) == NULL)
        return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
    for (i = 0; i < layout[TESS_SPEC_LAYOUT_N_AXES]; ++i) {
        const int64_t axis = layout[TESS_SPEC_LAYOUT_AXES + 2 * i];
        if (axis < 0 || axis >= tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_RANK]) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
    }
    if (b->sizing && written) return TESS_OK;
    if (arg == NULL) return tess_abi1_fault(TESS_NULL_ARGUMENT, tensor, -1, -1);
    if (arg->rank != 1) return tess_abi1_fault(TESS_RANK, tensor, -1, 1);
    if (arg->dtype != TESS_U8) return tess_abi1_fault(TESS_DTYPE, tensor, -1, TESS_U8);
    if (arg->device != TESS_HOST) return tess_abi1_fault(TESS_DEVICE, tensor, -1, -1);
    if (arg->reserved != 0) return tess_abi1_fault(TESS_RESERVED, tensor, -1, -1);
    if (arg->extents[0] < 0) return tess_abi1_fault(TESS_EXTENT_NEGATIVE, tensor, 0, -1);
    if (arg->extents[0] < TESS_PACKED_HEADER_BYTES) return packed_fault(tensor, TESS_PACKED_SHORT);
    if (arg->strides[0] != 1) return tess_abi1_fault(TESS_STRIDE_LAST, tensor, 0, -1);
    if ((uintptr_t)arg->data % TESS_PACKED_ALIGNMENT != 0) return packed_fault(tensor, TESS_PACKED_ALIGNED);
    if (written) return TESS_OK;
    /* The header states extents, so it is read before any of them is known. */
    if (arg->data == NULL) return tess_abi1_fault(TESS_NULL_DATA, tensor, -1, -1);
    return check_header(b, tensor);
}

int64_t tess_abi1_packed_extent(const TessBinding *b, int64_t tensor, int64_t axis) {
    return (int64_t)read_word(header_of(b, tensor) + EXTENTS + 8 * axis, 8);
}

static int64_t extent_of(const TessBinding *b, int64_t tensor, int64_t axis) {
    return b->frame[tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_AXES + axis]];
}

int tess_abi1_bind_packed(TessBinding *b, int64_t tensor, int64_t slot) {
    const int64_t *record = tess_spec_tensor(b->spec, tensor), *layout = layout_of(b, tensor);
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK];
    const int written = record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT;
    int64_t elements = 1, i, bytes;
    for (i = 0; i < rank; ++i) b->frame[slot + 1 + i] = 0;
    for (i = 0; i < rank; ++i)
        if (extent_of(b, tensor, i) == 0) elements = 0;
    for (i = 0; i < layout[TESS_SPEC_LAYOUT_N_AXES] && elements != 0; ++i) {
        const int64_t factor = layout[TESS_SPEC_LAYOUT_AXES + 2 * i + 1];
        int64_t n = extent_of(b, tensor, layout[TESS_SPEC_LAYOUT_AXES + 2 * i]);
        if (factor > 0) n = (n + factor - 1) / factor;
        if (factor < 0) n = -factor;
        elements *= n;
        if (elements > TESS_MAX_ELEMENTS) return tess_abi1_fault(TESS_TOO_LARGE, tensor, -1, -1);
    }
    bytes = elements * (int64_t)tess_dtype_size((int32_t)record[TESS_SPEC_TENSOR_DTYPE]);
    if (written) b->packed_bytes = bytes;
    b->spans[tensor].begin = 0;
    b->spans[tensor].bytes = 0;
    b->frame[slot] = 0;
    if (b->sizing && written) return TESS_OK;
    if (b->args[tensor]->extents[0] != TESS_PACKED_HEADER_BYTES + bytes ||
        (!written && read_word(header_of(b, tensor) + BYTES, 8) != (uint64_t)bytes))
        return packed_fault(tensor, TESS_PACKED_BYTES);
    b->spans[tensor].bytes = TESS_PACKED_HEADER_BYTES + (uint64_t)bytes;
    b->frame[slot] = (int64_t)(uintptr_t)b->args[tensor]->data + TESS_PACKED_HEADER_BYTES;
    return TESS_OK;
}

static int64_t written_tensor(const TessBinding *b) {
    int64_t t = b->spec[TESS_SPEC_N_TENSORS];
    while (t-- > 0)
        if (tess_abi1_is_packed(b, t) && tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT) break;
    return t;
}

void tess_abi1_clear_packed(const TessBinding *b) { memset(b->args[written_tensor(b)]->data, 0, TESS_PACKED_HEADER_BYTES); }

void tess_abi1_head_packed(const TessBinding *b) {
    const int64_t tensor = written_tensor(b);
    const int64_t *record = tess_spec_tensor(b->spec, tensor);
    uint8_t *header = b->args[tensor]->data;
    int64_t axis;
    write_word(header + VERSION, 4, TESS_PACKED_VERSION);
    write_word(header + HEADER_BYTES, 4, TESS_PACKED_HEADER_BYTES);
    write_word(header + HASH, 8, (uint64_t)layout_of(b, tensor)[TESS_SPEC_LAYOUT_HASH]);
    write_word(header + DTYPE, 4, (uint64_t)record[TESS_SPEC_TENSOR_DTYPE]);
    write_word(header + RANK, 4, (uint64_t)record[TESS_SPEC_TENSOR_RANK]);
    write_word(header + BYTES, 8, (uint64_t)b->packed_bytes);
    for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis)
        write_word(header + EXTENTS + 8 * axis, 8, (uint64_t)extent_of(b, tensor, axis));
    memcpy(header + MAGIC, magic, sizeof magic);
}
