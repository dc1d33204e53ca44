#include "runtime/arguments.h"

#include "runtime/packed.h"

static int dim_fault(const TessBinding *b, int64_t dim, int kind, int64_t detail) {
    const int place = b->carrier[dim];
    return place < 0 ? tess_abi1_fault(kind, -1, -1, detail) : tess_abi1_fault(kind, place / 16, place % 16 - 1, detail);
}

static int is_kernel(const int64_t *spec) {
    return spec != NULL && (spec[TESS_SPEC_VERSION] == TESS_SPEC_ABI1 || spec[TESS_SPEC_VERSION] == TESS_SPEC_PACKED) &&
           spec[TESS_SPEC_N_DIMS] >= 0 && spec[TESS_SPEC_N_DIMS] <= TESS_MAX_DIMS && spec[TESS_SPEC_N_TENSORS] >= 0 &&
           spec[TESS_SPEC_N_TENSORS] <= TESS_MAX_TENSORS && spec[TESS_SPEC_N_PARAMETERS] >= 0 &&
           spec[TESS_SPEC_N_PARAMETERS] <= TESS_MAX_PARAMETERS;
}

static int check_descriptors(const TessBinding *b) {
    const int64_t tensors = b->spec[TESS_SPEC_N_TENSORS];
    int64_t t;
    for (t = 0; t < tensors; ++t) {
        const int64_t *record = tess_spec_tensor(b->spec, t);
        const TessTensorDesc *arg = b->args == NULL ? NULL : b->args[t];
        const int64_t rank = record[TESS_SPEC_TENSOR_RANK], dtype = record[TESS_SPEC_TENSOR_DTYPE];
        int64_t axis;
        if (rank < 0 || rank > TESS_MAX_RANK) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
        if (tess_abi1_is_packed(b, t)) {
            const int status = tess_abi1_check_packed(b, t);
            if (status != TESS_OK) return status;
            continue;
        }
        if (arg == NULL) return tess_abi1_fault(TESS_NULL_ARGUMENT, t, -1, -1);
        if (arg->rank != rank) return tess_abi1_fault(TESS_RANK, t, -1, rank);
        if (arg->dtype != dtype) return tess_abi1_fault(TESS_DTYPE, t, -1, dtype);
        if (arg->device != TESS_HOST) return tess_abi1_fault(TESS_DEVICE, t, -1, -1);
        if (arg->reserved != 0) return tess_abi1_fault(TESS_RESERVED, t, -1, -1);
        for (axis = 0; axis < rank; ++axis) {
            if (arg->extents[axis] < 0) return tess_abi1_fault(TESS_EXTENT_NEGATIVE, t, axis, -1);
            if (arg->extents[axis] > TESS_MAX_ELEMENTS) return tess_abi1_fault(TESS_TOO_LARGE, t, axis, -1);
        }
    }
    return TESS_OK;
}

/* Every dim gets the extent of the first axis that carries it; a fixed one has its extent from
 * the start. */
static int bind_dims(TessBinding *b) {
    const int64_t dims = b->spec[TESS_SPEC_N_DIMS];
    const int64_t tensors = b->spec[TESS_SPEC_N_TENSORS];
    int64_t d, t, axis;
    for (d = 0; d < dims; ++d) {
        b->frame[d] = tess_spec_dim(b->spec, d)[TESS_SPEC_DIM_FIXED];
        b->carrier[d] = -1;
    }
    for (t = 0; t < tensors; ++t) {
        const int64_t *record = tess_spec_tensor(b->spec, t);
        const int packed = tess_abi1_is_packed(b, t);
        if (packed && record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT) continue;
        for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis) {
            const int64_t extent = packed ? tess_abi1_packed_extent(b, t, axis) : b->args[t]->extents[axis];
            d = record[TESS_SPEC_TENSOR_AXES + axis];
            if (d < 0 || d >= dims) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
            if (b->frame[d] < 0) b->frame[d] = extent;
            if (extent != b->frame[d]) {
                if (tess_spec_dim(b->spec, d)[TESS_SPEC_DIM_FIXED] >= 0) return tess_abi1_fault(TESS_EXTENT_FIXED, t, axis, b->frame[d]);
                return tess_abi1_fault(TESS_EXTENT_MISMATCH, t, axis, b->carrier[d]);
            }
            if (b->carrier[d] < 0) b->carrier[d] = (int16_t)tess_abi1_place((int)t, (int)axis);
        }
    }
    return TESS_OK;
}

static int check_constraints(TessBinding *b) {
    const int64_t dims = b->spec[TESS_SPEC_N_DIMS];
    int64_t d;
    for (d = 0; d < dims; ++d) {
        const int64_t *record = tess_spec_dim(b->spec, d);
        const int64_t min = record[TESS_SPEC_DIM_MIN], max = record[TESS_SPEC_DIM_MAX];
        const int64_t factor = record[TESS_SPEC_DIM_MULTIPLE_OF], other = record[TESS_SPEC_DIM_EQUAL_TO];
        if (other >= dims) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
        if (b->frame[d] < 0 && other >= 0) b->frame[d] = b->frame[other];
        if (b->frame[d] < 0) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
        if (b->frame[d] < min) return dim_fault(b, d, TESS_EXTENT_MIN, min);
        if (max >= 0 && b->frame[d] > max) return dim_fault(b, d, TESS_EXTENT_MAX, max);
        if (factor > 1 && b->frame[d] % factor != 0) return dim_fault(b, d, TESS_EXTENT_MULTIPLE, factor);
        if (other >= 0 && b->frame[other] >= 0 && b->frame[d] != b->frame[other]) {
            return b->carrier[other] >= 0 ? dim_fault(b, d, TESS_EXTENT_MISMATCH, b->carrier[other])
                                          : dim_fault(b, d, TESS_EXTENT_FIXED, b->frame[other]);
        }
    }
    return TESS_OK;
}

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Whether any two elements could share an address: ordered by stride, every axis must step over
 * all that the axes below it reach. Strides are in elements; axes of extent 1 do not count. */
static int overlaps_itself(int64_t rank, const int64_t *extents, const int64_t *strides) {
    int64_t below = 0, floor = 0; /* reach of the axes taken, and the largest stride among them */
    int64_t left = 0, axis;
    for (axis = 0; axis < rank; ++axis) left += extents[axis] > 1;
    for (; left > 0; --left) {
        int64_t next = -1;
        for (axis = 0; axis < rank; ++axis) {
            if (extents[axis] > 1 && magnitude(strides[axis]) > floor &&
                (next < 0 || magnitude(strides[axis]) < magnitude(strides[next]))) {
                next = axis;
            }
        }
        if (next < 0 || magnitude(strides[next]) <= below) return 1;
        floor = magnitude(strides[next]);
        below += floor * (extents[next] - 1);
    }
    return 0;
}

/* Checks the strides of tensor t, writes them to its slots, and finds its span (without the
 * data pointer). */
static int bind_strides(TessBinding *b, int64_t t, int64_t slot) {
    const int64_t *record = tess_spec_tensor(b->spec, t);
    const TessTensorDesc *arg = b->args[t];
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK], last = rank - 1;
    const uint64_t size = tess_dtype_size(arg->dtype);
    int64_t elements = 1, below = 0, above = 0, axis;
    for (axis = 0; axis < rank; ++axis) {
        if (arg->extents[axis] == 0) elements = 0;
        b->frame[slot + axis] = axis == last;
    }
    b->spans[t].begin = 0;
    b->spans[t].bytes = 0;
    if (elements == 0) return TESS_OK;
    for (axis = 0; axis < rank; ++axis) {
        const int64_t extent = arg->extents[axis], stride = arg->strides[axis];
        if (extent == 1) continue;
        if (axis == last && stride != 1 && (record[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_LAST_STRIDE_1) != 0) {
            return tess_abi1_fault(TESS_STRIDE_LAST, t, axis, -1);
        }
        if (axis == last && stride < 0) return tess_abi1_fault(TESS_STRIDE_NEGATIVE, t, axis, -1);
        if (stride < -TESS_MAX_ELEMENTS || stride > TESS_MAX_ELEMENTS) return tess_abi1_fault(TESS_TOO_LARGE, t, axis, -1);
        elements *= extent;
        if (stride < 0) below -= stride * (extent - 1);
        if (stride > 0) above += stride * (extent - 1);
        if (elements > TESS_MAX_ELEMENTS || below + above >= TESS_MAX_ELEMENTS) return tess_abi1_fault(TESS_TOO_LARGE, t, axis, -1);
        b->frame[slot + axis] = stride;
    }
    if (record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT && overlaps_itself(rank, arg->extents, arg->strides)) {
        return tess_abi1_fault(TESS_SELF_OVERLAP, t, -1, -1);
    }
    b->spans[t].begin = 0u - (uint64_t)below * size;
    b->spans[t].bytes = (uint64_t)(below + above + 1) * size;
    return TESS_OK;
}

/* The features that the call may use. An older application's context ends before the field. */
static uint64_t features_left(const TessContext *context) {
    const uint64_t have = tess_cpu_features();
    const size_t end = offsetof(TessContext, features_off) + sizeof context->features_off;
    return context != NULL && context->size >= end ? have & ~context->features_off : have;
}

static int check_context(const TessContext *context) {
    if (context == NULL) return TESS_OK;
    if (context->size < offsetof(TessContext, features_off)) return tess_abi1_fault(TESS_CONTEXT, -1, -1, TESS_CONTEXT_SIZE);
    if (context->threads < 0) return tess_abi1_fault(TESS_CONTEXT, -1, -1, TESS_CONTEXT_THREADS);
    if (context->pool != NULL && context->pool->parallel_for == NULL) {
        return tess_abi1_fault(TESS_CONTEXT, -1, -1, TESS_CONTEXT_PARALLEL_FOR);
    }
    return TESS_OK;
}

int tess_abi1_bind(TessBinding *b, const int64_t *parameter_bits, const TessContext *context) {
    int64_t t, slot, parameter;
    uint64_t features;
    int status;
    if (!is_kernel(b->spec)) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
    features = features_left(context);
    b->features = features;
    b->packed_bytes = -1;
    status = tess_abi1_check_features((uint64_t)b->spec[TESS_SPEC_CPU_FEATURES], features);
    if (status == TESS_OK) status = check_context(context);
    if (status == TESS_OK) status = check_descriptors(b);
    if (status == TESS_OK) status = bind_dims(b);
    if (status == TESS_OK) status = check_constraints(b);
    if (status != TESS_OK) return status;
    slot = b->spec[TESS_SPEC_N_DIMS];
    for (t = 0; t < b->spec[TESS_SPEC_N_TENSORS]; ++t) {
        if (tess_abi1_is_packed(b, t)) {
            status = tess_abi1_bind_packed(b, t, slot);
        } else {
            b->frame[slot] = (int64_t)(uintptr_t)b->args[t]->data;
            status = bind_strides(b, t, slot + 1);
        }
        if (status != TESS_OK) return status;
        slot += 1 + tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_RANK];
    }
    for (parameter = 0; parameter < b->spec[TESS_SPEC_N_PARAMETERS]; ++parameter) { b->frame[slot++] = parameter_bits[parameter]; }
    b->tail = slot;
    b->frame[slot] = 0;
    b->frame[slot + TESS_TAIL_SHARED_BYTES] = 0;
    b->frame[slot + TESS_TAIL_WORKER_BYTES] = 0;
    b->frame[slot + TESS_TAIL_FEATURES] = (int64_t)features;
    b->frame[slot + TESS_TAIL_WORKERS] = context != NULL && context->pool != NULL && context->threads > 1 ? context->threads : 1;
    return TESS_OK;
}

int tess_abi1_check_data(TessBinding *b) {
    const int64_t tensors = b->spec[TESS_SPEC_N_TENSORS];
    int64_t t, other;
    for (t = 0; t < tensors; ++t) {
        const uint64_t address = (uintptr_t)b->args[t]->data;
        const uint64_t size = tess_dtype_size(b->args[t]->dtype);
        if (b->spans[t].bytes == 0) continue;
        if (address == 0) return tess_abi1_fault(TESS_NULL_DATA, t, -1, -1);
        if ((address & (size - 1)) != 0) return tess_abi1_fault(TESS_MISALIGNED, t, -1, (int64_t)size);
        b->spans[t].begin += address;
    }
    for (t = 0; t < tensors; ++t) {
        if (tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_ROLE] == TESS_ROLE_INPUT) continue;
        for (other = 0; other < tensors; ++other) {
            if (other != t && tess_abi1_share_memory(b->spans[t], b->spans[other])) {
                return tess_abi1_fault(TESS_OVERLAP, t, -1, tess_abi1_place((int)other, -1));
            }
        }
    }
    return TESS_OK;
}
