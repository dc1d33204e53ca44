#include "runtime/abi/packed.h"

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
static const int64_t *layout_of(const TessPlan *plan, int64_t tensor) {
    return tess_spec_layout(plan->spec, tess_plan_tensors(plan)[tensor].packed, plan->features);
}

static int32_t field_fault(TessFault *fault, int32_t kind, int64_t tensor, int64_t expected, const uint8_t *at, int bytes) {
    return tess_abi2_fault(fault, kind, tensor, -1, expected, (int64_t)read_word(at, bytes));
}

static int32_t check_fields(const TessPlan *plan, int64_t tensor, const uint8_t *header, TessFault *fault) {
    const int64_t *record = tess_spec_tensor(plan->spec, tensor), *layout = layout_of(plan, tensor);
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK];
    int64_t axis;
    if (memcmp(header + MAGIC, magic, sizeof magic) != 0) return tess_abi2_plain_fault(fault, TESS_PACKED_MAGIC, tensor);
    if (read_word(header + VERSION, 4) != TESS_PACKED_VERSION)
        return field_fault(fault, TESS_PACKED_FORMAT, tensor, TESS_PACKED_VERSION, header + VERSION, 4);
    if (read_word(header + HEADER_BYTES, 4) != TESS_PACKED_HEADER_BYTES)
        return field_fault(fault, TESS_PACKED_FORMAT, tensor, TESS_PACKED_HEADER_BYTES, header + HEADER_BYTES, 4);
    if (read_word(header + DTYPE, 4) != (uint64_t)record[TESS_SPEC_TENSOR_DTYPE])
        return field_fault(fault, TESS_PACKED_DTYPE, tensor, record[TESS_SPEC_TENSOR_DTYPE], header + DTYPE, 4);
    if (read_word(header + RANK, 4) != (uint64_t)rank) return field_fault(fault, TESS_PACKED_DTYPE, tensor, rank, header + RANK, 4);
    if (read_word(header + HASH, 8) != (uint64_t)layout[TESS_SPEC_LAYOUT_HASH])
        return field_fault(fault, TESS_PACKED_LAYOUT, tensor, layout[TESS_SPEC_LAYOUT_HASH], header + HASH, 8);
    for (axis = 0; axis < TESS_MAX_RANK; ++axis) {
        const uint8_t *at = header + EXTENTS + 8 * axis;
        const int64_t most = axis < rank ? TESS_MAX_ELEMENTS : 0;
        if (read_word(at, 8) > (uint64_t)most) return field_fault(fault, TESS_PACKED_EXTENT, tensor, most, at, 8);
    }
    /* What another version may use. */
    if (!is_zero(header + UNUSED, header + EXTENTS) || !is_zero(header + UNUSED_END, header + TESS_PACKED_HEADER_BYTES))
        return tess_abi2_plain_fault(fault, TESS_PACKED_FORMAT, tensor);
    return TESS_OK;
}

int32_t tess_abi2_check_packed(const TessBinding *b, int64_t tensor) {
    const TessTensor *arg = b->args == NULL ? NULL : b->args[tensor];
    const int64_t *record = tess_spec_tensor(b->spec, tensor), *layout = layout_of(b->plan, tensor);
    const int written = record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT;
    int64_t i;
    if (layout == NULL || b->plan->device.type != TESS_HOST) return tess_abi2_plain_fault(b->fault, TESS_KERNEL, -1);
    for (i = 0; i < layout[TESS_SPEC_LAYOUT_N_AXES]; ++i) {
        const int64_t axis = layout[TESS_SPEC_LAYOUT_AXES + 2 * i];
        if (axis < 0 || axis >= record[TESS_SPEC_TENSOR_RANK]) return tess_abi2_plain_fault(b->fault, TESS_KERNEL, -1);
    }
    if (b->sizing && written) return TESS_OK;
    if (arg == NULL) return tess_abi2_plain_fault(b->fault, TESS_NULL_ARGUMENT, tensor);
    if (arg->rank != 1) return tess_abi2_fault(b->fault, TESS_RANK, tensor, -1, 1, arg->rank);
    if ((arg->type.code | arg->type.bits << 8) != TESS_U8)
        return tess_abi2_fault(b->fault, TESS_DTYPE, tensor, -1, TESS_U8, arg->type.code | arg->type.bits << 8);
    if (arg->type.lanes != 1) return tess_abi2_fault(b->fault, TESS_LANES, tensor, -1, 1, arg->type.lanes);
    if (arg->device.type != TESS_HOST && arg->device.type != TESS_CUDA_HOST)
        return tess_abi2_fault(b->fault, TESS_DEVICE, tensor, -1, TESS_HOST, arg->device.type);
    if (arg->extents == NULL) return tess_abi2_plain_fault(b->fault, TESS_NULL_EXTENTS, tensor);
    if (arg->extents[0] < 0) return tess_abi2_fault(b->fault, TESS_EXTENT_NEGATIVE, tensor, 0, 0, arg->extents[0]);
    if (arg->extents[0] < TESS_PACKED_HEADER_BYTES)
        return tess_abi2_fault(b->fault, TESS_PACKED_SHORT, tensor, -1, TESS_PACKED_HEADER_BYTES, arg->extents[0]);
    if (arg->strides != NULL && arg->strides[0] != 1) return tess_abi2_fault(b->fault, TESS_STRIDE_LAST, tensor, 0, 1, arg->strides[0]);
    if (arg->byte_offset != 0 || ((uintptr_t)arg->data % TESS_PACKED_ALIGNMENT) != 0)
        return tess_abi2_misaligned(b->fault, TESS_PACKED_MISALIGNED, tensor, (uintptr_t)arg->data + arg->byte_offset,
                                    TESS_PACKED_ALIGNMENT);
    if (written) return TESS_OK;
    /* The header states extents, so it is read before any of them is known. */
    if (arg->data == NULL) return tess_abi2_plain_fault(b->fault, TESS_NULL_DATA, tensor);
    return check_fields(b->plan, tensor, header_of(b, tensor), b->fault);
}

int64_t tess_abi2_packed_extent(const TessBinding *b, int64_t tensor, int64_t axis) {
    return (int64_t)read_word(header_of(b, tensor) + EXTENTS + 8 * axis, 8);
}

static int64_t extent_of(const TessBinding *b, int64_t tensor, int64_t axis) {
    return b->frame[tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_AXES + axis]];
}

static void write_header(const TessBinding *b, int64_t tensor, uint64_t bytes) {
    const int64_t *record = tess_spec_tensor(b->spec, tensor);
    uint8_t *header = tess_plan_header(b->plan, b->tensors[tensor].packed);
    int64_t axis;
    memset(header, 0, TESS_PACKED_HEADER_BYTES);
    memcpy(header + MAGIC, magic, sizeof magic);
    write_word(header + VERSION, 4, TESS_PACKED_VERSION);
    write_word(header + HEADER_BYTES, 4, TESS_PACKED_HEADER_BYTES);
    write_word(header + HASH, 8, (uint64_t)layout_of(b->plan, tensor)[TESS_SPEC_LAYOUT_HASH]);
    write_word(header + DTYPE, 4, (uint64_t)record[TESS_SPEC_TENSOR_DTYPE]);
    write_word(header + RANK, 4, (uint64_t)record[TESS_SPEC_TENSOR_RANK]);
    write_word(header + BYTES, 8, bytes);
    for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis)
        write_word(header + EXTENTS + 8 * axis, 8, (uint64_t)extent_of(b, tensor, axis));
}

int32_t tess_abi2_bind_packed(TessBinding *b, int64_t tensor) {
    const int64_t *record = tess_spec_tensor(b->spec, tensor), *layout = layout_of(b->plan, tensor);
    TessPlanTensor *of = &b->tensors[tensor];
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK];
    const int written = of->written;
    int64_t elements = 1, i, bytes;
    for (i = 0; i < rank; ++i) b->frame[of->slot + 1 + i] = 0;
    for (i = 0; i < rank; ++i)
        if (extent_of(b, tensor, i) == 0) elements = 0;
    for (i = 0; i < layout[TESS_SPEC_LAYOUT_N_AXES] && elements != 0; ++i) {
        const int64_t factor = layout[TESS_SPEC_LAYOUT_AXES + 2 * i + 1];
        int64_t n = extent_of(b, tensor, layout[TESS_SPEC_LAYOUT_AXES + 2 * i]);
        if (factor > 0) n = (n + factor - 1) / factor;
        if (factor < 0) n = -factor;
        elements *= n;
        if (elements > TESS_MAX_ELEMENTS)
            return tess_abi2_fault(b->fault, TESS_TOO_LARGE, tensor, layout[TESS_SPEC_LAYOUT_AXES + 2 * i], TESS_MAX_ELEMENTS, elements);
    }
    bytes = elements * (int64_t)tess_dtype_size((int32_t)record[TESS_SPEC_TENSOR_DTYPE]);
    if (written) b->plan->packed_bytes = bytes;
    of->data = 0;
    of->first = TESS_PACKED_HEADER_BYTES;
    of->begin = 0;
    of->bytes = TESS_PACKED_HEADER_BYTES + (uint64_t)bytes;
    of->mask = TESS_PACKED_ALIGNMENT - 1;
    write_header(b, tensor, (uint64_t)bytes);
    if (b->sizing && written) return TESS_OK;
    if (b->args[tensor]->extents[0] != TESS_PACKED_HEADER_BYTES + bytes)
        return tess_abi2_fault(b->fault, TESS_PACKED_BYTES, tensor, -1, TESS_PACKED_HEADER_BYTES + bytes, b->args[tensor]->extents[0]);
    if (!written && read_word(header_of(b, tensor) + BYTES, 8) != (uint64_t)bytes)
        return tess_abi2_fault(b->fault, TESS_PACKED_BYTES, tensor, -1, TESS_PACKED_HEADER_BYTES + bytes,
                               TESS_PACKED_HEADER_BYTES + (int64_t)read_word(header_of(b, tensor) + BYTES, 8));
    of->data = (uintptr_t)b->args[tensor]->data;
    return TESS_OK;
}

int32_t tess_abi2_check_header(const TessPlan *plan, int64_t tensor, const void *data, TessFault *fault) {
    const uint8_t *got = data, *expected = tess_plan_header(plan, tess_plan_tensors(plan)[tensor].packed);
    int32_t status;
    int axis;
    if (memcmp(got, expected, TESS_PACKED_HEADER_BYTES) == 0) return TESS_OK;
    status = check_fields(plan, tensor, data, fault);
    for (axis = 0; axis < TESS_MAX_RANK && status == TESS_OK; ++axis) {
        const int at = EXTENTS + 8 * axis;
        if (memcmp(got + at, expected + at, 8) != 0)
            return field_fault(fault, TESS_PACKED_EXTENT, tensor, (int64_t)read_word(expected + at, 8), got + at, 8);
    }
    if (status != TESS_OK) return status;
    return field_fault(fault, TESS_PACKED_BYTES, tensor, (int64_t)read_word(expected + BYTES, 8), got + BYTES, 8);
}

void tess_abi2_clear_packed(void *data) { memset(data, 0, TESS_PACKED_HEADER_BYTES); }

void tess_abi2_head_packed(const TessPlan *plan, int64_t tensor, void *data) {
    const uint8_t *header = tess_plan_header(plan, tess_plan_tensors(plan)[tensor].packed);
    uint8_t *at = data;
    memcpy(at + sizeof magic, header + sizeof magic, TESS_PACKED_HEADER_BYTES - sizeof magic);
    memcpy(at, header, sizeof magic);
}
