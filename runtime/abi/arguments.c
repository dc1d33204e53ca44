#include "runtime/abi/arguments.h"

#include "runtime/abi/packed.h"

/* More of anything than a kernel has. */
enum { MANY = 1 << 16, MANY_WORDS = 1 << 24 };

static int32_t dim_fault(const TessBinding *b, int64_t dim, int32_t kind, int64_t expected) {
    const int64_t place = b->carrier[dim];
    return place < 0 ? tess_abi2_fault(b->fault, kind, -1, -1, expected, b->frame[dim])
                     : tess_abi2_fault(b->fault, kind, place / 16, place % 16, expected, b->frame[dim]);
}

static int32_t kernel_fault(const TessBinding *b) { return tess_abi2_plain_fault(b->fault, TESS_KERNEL, -1); }

int tess_abi2_is_kernel(const int64_t *spec) {
    int64_t counts;
    if (spec == NULL || (spec[TESS_SPEC_VERSION] != TESS_SPEC_ABI2 && spec[TESS_SPEC_VERSION] != TESS_SPEC_ABI2_RANGES)) return 0;
    counts = spec[TESS_SPEC_N_DIMS] | spec[TESS_SPEC_N_TENSORS] | spec[TESS_SPEC_N_PARAMETERS] | spec[TESS_SPEC_N_CODE] |
             spec[TESS_SPEC_N_LAYOUTS] | spec[TESS_SPEC_N_PACKED];
    return counts >= 0 && counts < 2 * MANY && spec[TESS_SPEC_FRAME_WORDS] >= TESS_TAIL_WORDS && spec[TESS_SPEC_FRAME_WORDS] <= MANY_WORDS;
}

/* A host kernel takes what CUDA has pinned as well. */
static int is_there(TessDevice tensor, TessDevice kernel) {
    if (kernel.type == TESS_HOST) return tensor.type == TESS_HOST || tensor.type == TESS_CUDA_HOST;
    return tensor.type == kernel.type && tensor.id == kernel.id;
}

static int32_t check_descriptors(const TessBinding *b) {
    const int64_t tensors = b->spec[TESS_SPEC_N_TENSORS];
    int64_t t, packed = 0;
    for (t = 0; t < tensors; ++t) {
        const int64_t *record = tess_spec_tensor(b->spec, t);
        const TessTensor *arg = b->args == NULL ? NULL : b->args[t];
        const int64_t rank = record[TESS_SPEC_TENSOR_RANK], dtype = record[TESS_SPEC_TENSOR_DTYPE];
        int64_t axis;
        if (rank < 0 || rank > TESS_MAX_RANK) return kernel_fault(b);
        b->tensors[t].packed = -1;
        if ((record[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_PACKED) != 0) {
            int32_t status;
            if (packed == b->spec[TESS_SPEC_N_PACKED]) return kernel_fault(b);
            b->tensors[t].packed = (int32_t)packed++;
            status = tess_abi2_check_packed(b, t);
            if (status != TESS_OK) return status;
            continue;
        }
        if (arg == NULL) return tess_abi2_plain_fault(b->fault, TESS_NULL_ARGUMENT, t);
        if (arg->rank != rank) return tess_abi2_fault(b->fault, TESS_RANK, t, -1, rank, arg->rank);
        if ((arg->type.code | arg->type.bits << 8) != dtype)
            return tess_abi2_fault(b->fault, TESS_DTYPE, t, -1, dtype, arg->type.code | arg->type.bits << 8);
        if (arg->type.lanes != 1) return tess_abi2_fault(b->fault, TESS_LANES, t, -1, 1, arg->type.lanes);
        if (!is_there(arg->device, b->plan->device))
            return arg->device.type == b->plan->device.type
                       ? tess_abi2_fault(b->fault, TESS_DEVICE_ID, t, -1, b->plan->device.id, arg->device.id)
                       : tess_abi2_fault(b->fault, TESS_DEVICE, t, -1, b->plan->device.type, arg->device.type);
        if (arg->extents == NULL && rank > 0) return tess_abi2_plain_fault(b->fault, TESS_NULL_EXTENTS, t);
        for (axis = 0; axis < rank; ++axis) {
            if (arg->extents[axis] < 0) return tess_abi2_fault(b->fault, TESS_EXTENT_NEGATIVE, t, axis, 0, arg->extents[axis]);
            if (arg->extents[axis] > TESS_MAX_ELEMENTS)
                return tess_abi2_fault(b->fault, TESS_TOO_LARGE, t, axis, TESS_MAX_ELEMENTS, arg->extents[axis]);
        }
    }
    return TESS_OK;
}

/* Every dim gets the extent of the first axis that carries it; a fixed one has its extent from
 * the start. */
static int32_t bind_dims(TessBinding *b) {
    const int64_t dims = b->spec[TESS_SPEC_N_DIMS];
    const int64_t tensors = b->spec[TESS_SPEC_N_TENSORS];
    int64_t d, t, axis;
    for (d = 0; d < dims; ++d) {
        b->frame[d] = tess_spec_dim(b->spec, d)[TESS_SPEC_DIM_FIXED];
        b->carrier[d] = -1;
    }
    for (t = 0; t < tensors; ++t) {
        const int64_t *record = tess_spec_tensor(b->spec, t);
        const int packed = b->tensors[t].packed >= 0;
        if (packed && record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT) continue;
        for (axis = 0; axis < record[TESS_SPEC_TENSOR_RANK]; ++axis) {
            const int64_t extent = packed ? tess_abi2_packed_extent(b, t, axis) : b->args[t]->extents[axis];
            d = record[TESS_SPEC_TENSOR_AXES + axis];
            if (d < 0 || d >= dims) return kernel_fault(b);
            if (b->frame[d] < 0) b->frame[d] = extent;
            if (extent != b->frame[d]) {
                if (tess_spec_dim(b->spec, d)[TESS_SPEC_DIM_FIXED] >= 0)
                    return tess_abi2_fault(b->fault, TESS_EXTENT_FIXED, t, axis, b->frame[d], extent);
                tess_abi2_fault(b->fault, TESS_EXTENT_MISMATCH, t, axis, b->frame[d], extent);
                b->fault->other_argument = (int32_t)(b->carrier[d] / 16);
                b->fault->other_dimension = (int32_t)(b->carrier[d] % 16);
                return tess_abi2_status(TESS_EXTENT_MISMATCH, (int32_t)t);
            }
            if (b->carrier[d] < 0) b->carrier[d] = t * 16 + axis;
        }
    }
    return TESS_OK;
}

static int32_t check_constraints(TessBinding *b) {
    const int64_t dims = b->spec[TESS_SPEC_N_DIMS];
    int64_t d;
    for (d = 0; d < dims; ++d) {
        const int64_t *record = tess_spec_dim(b->spec, d);
        const int64_t min = record[TESS_SPEC_DIM_MIN], max = record[TESS_SPEC_DIM_MAX];
        const int64_t factor = record[TESS_SPEC_DIM_MULTIPLE_OF], other = record[TESS_SPEC_DIM_EQUAL_TO];
        if (other >= dims) return kernel_fault(b);
        if (b->frame[d] < 0 && other >= 0) b->frame[d] = b->frame[other];
        if (b->frame[d] < 0) return kernel_fault(b);
        if (b->frame[d] < min) return dim_fault(b, d, TESS_EXTENT_MIN, min);
        if (max >= 0 && b->frame[d] > max) return dim_fault(b, d, TESS_EXTENT_MAX, max);
        if (factor > 1 && b->frame[d] % factor != 0) return dim_fault(b, d, TESS_EXTENT_MULTIPLE, factor);
        if (other >= 0 && b->frame[other] >= 0 && b->frame[d] != b->frame[other]) {
            int32_t status;
            if (b->carrier[other] < 0) return dim_fault(b, d, TESS_EXTENT_FIXED, b->frame[other]);
            status = dim_fault(b, d, TESS_EXTENT_MISMATCH, b->frame[other]);
            b->fault->other_argument = (int32_t)(b->carrier[other] / 16);
            b->fault->other_dimension = (int32_t)(b->carrier[other] % 16);
            return status;
        }
    }
    return TESS_OK;
}

static int64_t most_elements(const int64_t *record) {
    return (record[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_LARGE) != 0 ? TESS_MAX_LARGE_ELEMENTS : TESS_MAX_ELEMENTS;
}

static int64_t magnitude(int64_t stride) { return stride == INT64_MIN ? INT64_MAX : stride < 0 ? -stride : stride; }

/* a * b, both at least 0, or more than `most` where it is. */
static int64_t product(int64_t a, int64_t b, int64_t most) {
    if ((a | b) >> 31 == 0) return a * b;
    return b != 0 && a > most / b ? most + 1 : a * b;
}

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

/* Extents and strides of a tensor of 4 bits an element in bytes, which the strides must allow. */
static int32_t in_bytes(const TessBinding *b, int64_t t, int64_t *extents, int64_t *strides) {
    const TessTensor *arg = b->args[t];
    const int64_t last = tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_RANK] - 1;
    int64_t axis;
    for (axis = 0; axis <= last; ++axis) {
        const int64_t extent = arg->extents[axis];
        extents[axis] = axis == last ? (extent + 1) / 2 : extent;
        strides[axis] = 1;
        if (arg->strides == NULL || extent <= 1) continue;
        if (axis == last && arg->strides[axis] != 1) return tess_abi2_fault(b->fault, TESS_STRIDE_LAST, t, axis, 1, arg->strides[axis]);
        if (axis == last) continue;
        if (arg->strides[axis] % 2 != 0) return tess_abi2_fault(b->fault, TESS_STRIDE_ODD, t, axis, TESS_NO_NUMBER, arg->strides[axis]);
        strides[axis] = arg->strides[axis] / 2;
    }
    return TESS_OK;
}

/* a + b of what is at least 0, or the largest number there is. */
static int64_t sum(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

/* What is too much of the whole tensor, no axis alone: its elements, or as many from the lowest to the highest address. */
static int32_t too_large(const TessBinding *b, int64_t t, int64_t most, const int64_t *extents, const int64_t *strides) {
    const int64_t rank = tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_RANK];
    int64_t elements = 1, reach = 1, axis;
    for (axis = 0; axis < rank; ++axis) {
        elements = product(elements, extents[axis], INT64_MAX - 1);
        if (strides != NULL && extents[axis] > 1) reach = sum(reach, product(magnitude(strides[axis]), extents[axis] - 1, INT64_MAX - 1));
    }
    return tess_abi2_fault(b->fault, TESS_TOO_LARGE, t, -1, most, elements > reach ? elements : reach);
}

/* Checks the strides of tensor t, writes them to its slots, and finds which bytes it touches. */
static int32_t bind_strides(TessBinding *b, int64_t t) {
    const int64_t *record = tess_spec_tensor(b->spec, t);
    const TessTensor *arg = b->args[t];
    TessPlanTensor *tensor = &b->tensors[t];
    int64_t *slots = b->frame + tensor->slot + 1;
    const int64_t rank = record[TESS_SPEC_TENSOR_RANK], last = rank - 1;
    const uint64_t size = (uint64_t)tess_unit_bytes(record[TESS_SPEC_TENSOR_DTYPE]);
    const int64_t *extents = arg->extents, *strides = arg->strides;
    int64_t bytes[TESS_MAX_RANK], steps[TESS_MAX_RANK];
    const int64_t most = most_elements(record);
    int64_t elements = 1, below = 0, above = 0, axis;
    for (axis = 0; axis < rank; ++axis) {
        if (arg->extents[axis] == 0) elements = 0;
        slots[axis] = axis == last;
    }
    tensor->begin = tensor->first;
    tensor->bytes = 0;
    if (elements == 0) return TESS_OK;
    if (tess_is_half_byte((int32_t)record[TESS_SPEC_TENSOR_DTYPE])) {
        const int32_t status = in_bytes(b, t, bytes, steps);
        if (status != TESS_OK) return status;
        extents = bytes;
        if (strides != NULL) strides = steps;
    }
    if (strides == NULL) {
        for (axis = last; axis >= 0; --axis) {
            if (extents[axis] > 1) slots[axis] = elements;
            elements = product(elements, extents[axis], most);
            if (elements > most) return too_large(b, t, most, extents, NULL);
        }
        tensor->bytes = (uint64_t)elements * size;
        return TESS_OK;
    }
    for (axis = 0; axis < rank; ++axis) {
        const int64_t extent = extents[axis], stride = strides[axis];
        int64_t reach;
        if (extent == 1) continue;
        if (axis == last && stride != 1 && (record[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_LAST_STRIDE_1) != 0)
            return tess_abi2_fault(b->fault, TESS_STRIDE_LAST, t, axis, 1, stride);
        if (axis == last && stride < 0) return tess_abi2_fault(b->fault, TESS_STRIDE_NEGATIVE, t, axis, 0, stride);
        if (stride < -most || stride > most) return tess_abi2_fault(b->fault, TESS_TOO_LARGE, t, axis, most, magnitude(stride));
        elements = product(elements, extent, most);
        reach = product(magnitude(stride), extent - 1, most);
        if (stride < 0) below += reach;
        else above += reach;
        if (elements > most || below + above >= most) return too_large(b, t, most, extents, strides);
        slots[axis] = stride;
    }
    if (tensor->written && overlaps_itself(rank, extents, strides)) return tess_abi2_plain_fault(b->fault, TESS_SELF_OVERLAP, t);
    tensor->begin = tensor->first - (uint64_t)below * size;
    tensor->bytes = (uint64_t)(below + above + 1) * size;
    return TESS_OK;
}

/* What a plan must know of a tensor that is not packed. */
static int32_t bind_tensor(TessBinding *b, int64_t t) {
    const TessTensor *arg = b->args[t];
    TessPlanTensor *tensor = &b->tensors[t];
    const uint64_t size = (uint64_t)tess_unit_bytes(tess_spec_tensor(b->spec, t)[TESS_SPEC_TENSOR_DTYPE]);
    int32_t status;
    tensor->data = (uintptr_t)arg->data;
    tensor->first = arg->byte_offset;
    tensor->mask = (uint32_t)size - 1;
    status = bind_strides(b, t);
    if (status != TESS_OK || b->plan->device.type != TESS_OPENCL) return status;
    /* A memory object has no address: what counts is within it. */
    if (tensor->bytes != 0 && (arg->byte_offset & (size - 1)) != 0)
        return tess_abi2_misaligned(b->fault, TESS_MISALIGNED, t, arg->byte_offset, size);
    b->frame[tess_frame_offset(b->spec, t)] = (int64_t)arg->byte_offset;
    tensor->first = 0;
    tensor->mask = 0;
    return TESS_OK;
}

static uint64_t features_left(const TessContext *context) {
    const uint64_t have = tess_cpu_features();
    return context != NULL && context->size >= sizeof(TessContext) ? have & ~context->features_off : have;
}

int32_t tess_abi2_check_features(uint64_t required, uint64_t have, TessFault *fault) {
    const uint64_t missing = required & ~have;
    int bit = 0;
    if (missing == 0) return TESS_OK;
    while ((missing >> bit & 1u) == 0) ++bit;
    return tess_abi2_fault(fault, TESS_CPU, -1, -1, bit, TESS_NO_NUMBER);
}

/* Whether the bytes of a struct that this library does not know of are 0. */
int tess_abi2_is_known(const void *object, size_t known, uint32_t size) {
    const unsigned char *at = object;
    if (size > TESS_LARGEST_STRUCT) return 0;
    for (; known < size; ++known)
        if (at[known] != 0) return 0;
    return 1;
}

int32_t tess_abi2_check_kernel(const TessKernel *kernel, TessFault *fault) {
    if (kernel == NULL) return tess_abi2_plain_fault(fault, TESS_NULL_ARGUMENT, -1);
    if (kernel->size < sizeof *kernel) return tess_abi2_fault(fault, TESS_STRUCT_SIZE, -1, -1, (int64_t)sizeof *kernel, kernel->size);
    if (kernel->abi != TESS_ABI || !tess_abi2_is_known(kernel, sizeof *kernel, kernel->size) || !tess_abi2_is_kernel(kernel->spec))
        return tess_abi2_plain_fault(fault, TESS_KERNEL, -1);
    return TESS_OK;
}

int32_t tess_abi2_check_context(const TessContext *context, TessFault *fault) {
    const TessPool *pool;
    if (context == NULL) return TESS_OK;
    if (context->size < sizeof *context) return tess_abi2_fault(fault, TESS_CONTEXT_SIZE, -1, -1, (int64_t)sizeof *context, context->size);
    if (context->fault != NULL && context->fault->size < sizeof *context->fault)
        return tess_abi2_fault(fault, TESS_FAULT_SIZE, -1, -1, (int64_t)sizeof *context->fault, context->fault->size);
    if (context->flags != 0 || context->reserved != 0 || !tess_abi2_is_known(context, sizeof *context, context->size))
        return tess_abi2_plain_fault(fault, TESS_CONTEXT_NEWER, -1);
    if (context->threads < 0) return tess_abi2_fault(fault, TESS_CONTEXT_THREADS, -1, -1, 0, context->threads);
    pool = context->pool;
    if (pool == NULL) return TESS_OK;
    if (pool->size < sizeof *pool) return tess_abi2_fault(fault, TESS_POOL_SIZE, -1, -1, (int64_t)sizeof *pool, pool->size);
    if (pool->flags != 0 || !tess_abi2_is_known(pool, sizeof *pool, pool->size)) return tess_abi2_plain_fault(fault, TESS_POOL_NEWER, -1);
    return pool->parallel_for == NULL ? tess_abi2_plain_fault(fault, TESS_POOL_FUNCTION, -1) : TESS_OK;
}

/* Where the kernel runs. */
static int32_t bind_device(TessBinding *b, const TessContext *context) {
    TessDevice *device = &b->plan->device;
    device->type = (int32_t)b->spec[TESS_SPEC_DEVICE];
    device->id = 0;
    if (context == NULL || context->device.type == 0) return TESS_OK;
    if (!is_there(context->device, (TessDevice){device->type, context->device.id}))
        return tess_abi2_fault(b->fault, TESS_DEVICE, -1, -1, device->type, context->device.type);
    if (device->type != TESS_HOST) device->id = context->device.id;
    return TESS_OK;
}

int32_t tess_abi2_bind(TessBinding *b, const TessContext *context) {
    TessPlan *plan = b->plan;
    int64_t t;
    int32_t status;
    plan->features = features_left(context);
    plan->packed_bytes = -1;
    status = tess_abi2_check_features((uint64_t)b->spec[TESS_SPEC_CPU_FEATURES], plan->features, b->fault);
    if (status == TESS_OK) status = tess_abi2_check_context(context, b->fault);
    if (status == TESS_OK) plan->workers = tess_abi2_workers(context);
    if (status == TESS_OK) status = bind_device(b, context);
    if (status == TESS_OK) status = check_descriptors(b);
    if (status == TESS_OK) status = bind_dims(b);
    if (status == TESS_OK) status = check_constraints(b);
    for (t = 0; t < plan->tensors && status == TESS_OK; ++t) {
        const int64_t *record = tess_spec_tensor(b->spec, t);
        TessPlanTensor *tensor = &b->tensors[t];
        tensor->slot = (int32_t)record[TESS_SPEC_TENSOR_SLOT];
        tensor->written = record[TESS_SPEC_TENSOR_ROLE] != TESS_ROLE_INPUT;
        status = tensor->packed >= 0 ? tess_abi2_bind_packed(b, t) : bind_tensor(b, t);
        b->frame[tensor->slot] = (int64_t)(tensor->data + tensor->first);
    }
    return status;
}
