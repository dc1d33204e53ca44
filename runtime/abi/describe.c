#include <string.h>

#include "runtime/abi/arguments.h"

/* A text of the spec: its bytes are as a little-endian machine has the words. */
static const char *text_of(const int64_t *spec, int64_t at) { return (const char *)tess_spec_texts(spec) + at; }

/* As much of a struct as its owner has room for; 0 in what this library does not know of. */
static int32_t hand_over(void *to, const void *from, uint32_t known) {
    uint32_t size;
    memcpy(&size, to, sizeof size);
    if (size < known || size > TESS_LARGEST_STRUCT) return tess_abi2_status(TESS_STRUCT_SIZE, -1);
    memset((char *)to + sizeof size, 0, size - sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, known - sizeof size);
    return TESS_OK;
}

static int32_t check(const TessKernel *kernel, const void *info, int64_t word, int32_t index) {
    TessFault fault;
    const int32_t status = tess_abi2_check_kernel(kernel, &fault);
    if (info == NULL) return tess_abi2_status(TESS_NULL_ARGUMENT, -1);
    if (status != TESS_OK) return status;
    return word != 0 && (index < 0 || index >= kernel->spec[word]) ? tess_abi2_status(TESS_NO_SUCH, -1) : TESS_OK;
}

int32_t tess_abi2_describe(const int64_t *spec, TessPlanFunction plan, TessBody body, TessKernel *kernel) {
    TessKernel all = tess_kernel();
    if (kernel == NULL) return tess_abi2_status(TESS_NULL_ARGUMENT, -1);
    if (!tess_abi2_is_kernel(spec)) return tess_abi2_status(TESS_KERNEL, -1);
    all.abi = TESS_ABI;
    all.spec = spec;
    all.plan = plan;
    all.body = body;
    return hand_over(kernel, &all, sizeof all);
}

int32_t tess_kernel_info(const TessKernel *kernel, TessKernelInfo *info) {
    const int32_t status = check(kernel, info, 0, 0);
    TessKernelInfo all;
    if (status != TESS_OK) return status;
    all.flags = 0;
    all.name = text_of(kernel->spec, kernel->spec[TESS_SPEC_NAME]);
    all.device.type = (int32_t)kernel->spec[TESS_SPEC_DEVICE];
    all.device.id = 0;
    all.tensors = (int32_t)kernel->spec[TESS_SPEC_N_TENSORS];
    all.dims = (int32_t)kernel->spec[TESS_SPEC_N_DIMS];
    all.parameters = (int32_t)kernel->spec[TESS_SPEC_N_PARAMETERS];
    all.code = (int32_t)kernel->spec[TESS_SPEC_N_CODE];
    all.parameter_bytes = (uint64_t)kernel->spec[TESS_SPEC_PARAMETER_BYTES];
    all.cpu_features = (uint64_t)kernel->spec[TESS_SPEC_CPU_FEATURES];
    return hand_over(info, &all, sizeof all);
}

int32_t tess_kernel_tensor(const TessKernel *kernel, int32_t index, TessTensorInfo *info) {
    const int32_t status = check(kernel, info, TESS_SPEC_N_TENSORS, index);
    const int64_t *record;
    TessTensorInfo all;
    int axis;
    if (status != TESS_OK) return status;
    record = tess_spec_tensor(kernel->spec, index);
    all.flags = (uint32_t)record[TESS_SPEC_TENSOR_FLAGS];
    all.name = text_of(kernel->spec, record[TESS_SPEC_TENSOR_NAME]);
    all.type = tess_type((int32_t)record[TESS_SPEC_TENSOR_DTYPE]);
    all.rank = (int32_t)record[TESS_SPEC_TENSOR_RANK];
    all.role = (int32_t)record[TESS_SPEC_TENSOR_ROLE];
    for (axis = 0; axis < TESS_MAX_RANK; ++axis) all.dims[axis] = (int32_t)record[TESS_SPEC_TENSOR_AXES + axis];
    return hand_over(info, &all, sizeof all);
}

int32_t tess_kernel_dim(const TessKernel *kernel, int32_t index, TessDimInfo *info) {
    const int32_t status = check(kernel, info, TESS_SPEC_N_DIMS, index);
    const int64_t *record;
    TessDimInfo all;
    if (status != TESS_OK) return status;
    record = tess_spec_dim(kernel->spec, index);
    all.flags = 0;
    all.name = text_of(kernel->spec, record[TESS_SPEC_DIM_NAME]);
    all.fixed = record[TESS_SPEC_DIM_FIXED];
    all.min = record[TESS_SPEC_DIM_MIN];
    all.max = record[TESS_SPEC_DIM_MAX];
    all.multiple_of = record[TESS_SPEC_DIM_MULTIPLE_OF];
    all.equal_to = (int32_t)record[TESS_SPEC_DIM_EQUAL_TO];
    all.reserved = 0;
    return hand_over(info, &all, sizeof all);
}

int32_t tess_kernel_parameter(const TessKernel *kernel, int32_t index, TessParameterInfo *info) {
    const int32_t status = check(kernel, info, TESS_SPEC_N_PARAMETERS, index);
    const int64_t *record;
    TessParameterInfo all;
    if (status != TESS_OK) return status;
    record = tess_spec_parameter(kernel->spec, index);
    all.flags = 0;
    all.name = text_of(kernel->spec, record[TESS_SPEC_PARAMETER_NAME]);
    all.type = tess_type((int32_t)record[TESS_SPEC_PARAMETER_DTYPE]);
    all.offset = (uint32_t)record[TESS_SPEC_PARAMETER_OFFSET];
    all.range = all.least = all.most = 0;
    if (tess_spec_parameter_words(kernel->spec) == TESS_SPEC_RANGED_WORDS) {
        all.range = record[TESS_SPEC_PARAMETER_RANGE];
        all.least = record[TESS_SPEC_PARAMETER_LEAST];
        all.most = record[TESS_SPEC_PARAMETER_MOST];
    }
    return hand_over(info, &all, sizeof all);
}

int32_t tess_kernel_code(const TessKernel *kernel, int32_t index, TessCodeInfo *info) {
    const int32_t status = check(kernel, info, TESS_SPEC_N_CODE, index);
    const int64_t *record;
    TessCodeInfo all;
    if (status != TESS_OK) return status;
    record = tess_spec_code(kernel->spec, index);
    all.flags = 0;
    all.target = text_of(kernel->spec, record[TESS_SPEC_CODE_TARGET]);
    all.when = text_of(kernel->spec, record[TESS_SPEC_CODE_WHEN]);
    all.hash = text_of(kernel->spec, record[TESS_SPEC_CODE_HASH]);
    all.cpu_features = (uint64_t)record[TESS_SPEC_CODE_CPU_FEATURES];
    return hand_over(info, &all, sizeof all);
}
