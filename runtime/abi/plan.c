#include "runtime/abi/plan.h"

#include <string.h>

#include "runtime/abi/arguments.h"

int32_t tess_abi2_outcome(int32_t code, TessFault *fault) {
    if (code == TESS_OK) return TESS_OK;
    if (tess_status_code(code) != TESS_UNKNOWN) {
        tess_abi2_plain_fault(fault, tess_status_code(code), tess_status_argument(code));
        return code;
    }
    return tess_abi2_fault(fault, TESS_TASK, -1, -1, TESS_NO_NUMBER, code);
}

int32_t tess_abi2_report(const TessContext *context, int32_t status, const TessFault *fault) {
    TessFault *to;
    if (status == TESS_OK || context == NULL || context->size < sizeof *context) return status;
    to = context->fault;
    if (to == NULL || to->size < sizeof *to) return status;
    memcpy((char *)to + sizeof to->size, (const char *)fault + sizeof fault->size, sizeof *to - sizeof to->size);
    return status;
}

uint64_t tess_abi2_plan_bytes(const int64_t *spec) {
    const int64_t words = spec[TESS_SPEC_FRAME_WORDS] + spec[TESS_SPEC_N_DIMS];
    return sizeof(TessPlan) + (uint64_t)spec[TESS_SPEC_N_TENSORS] * sizeof(TessPlanTensor) + (uint64_t)words * sizeof(int64_t) +
           (uint64_t)spec[TESS_SPEC_N_PACKED] * TESS_PACKED_HEADER_BYTES;
}

/* The bits of floats as integers in the order of the floats: those of positive ones are so already. Neither kind of NaN is between two
 * finite numbers. No arithmetic of floats, so that no flag of a compiler and no mode of a processor has a say. */
static int64_t ordered(int64_t dtype, int64_t bits) {
    if (bits >= 0 || (dtype != TESS_F32 && dtype != TESS_F64)) return bits;
    return (dtype == TESS_F32 ? INT32_MIN : INT64_MIN) - bits;
}

static int is_nan(int64_t dtype, int64_t bits) {
    if (dtype == TESS_F32) return (bits & 0x7fffffff) > 0x7f800000;
    return dtype == TESS_F64 && (bits & INT64_MAX) > INT64_C(0x7ff0000000000000);
}

/* TESS_OK where the p-th parameter, whose record has a range, lies in it. */
static int32_t check_range(const TessPlan *plan, const int64_t *record, int32_t p, int64_t bits, TessFault *fault) {
    const int64_t dtype = record[TESS_SPEC_PARAMETER_DTYPE], flags = record[TESS_SPEC_PARAMETER_RANGE];
    const int64_t value = ordered(dtype, bits), open_least = (flags & TESS_RANGE_ABOVE) != 0, open_most = (flags & TESS_RANGE_BELOW) != 0;
    const int64_t least = ordered(dtype, record[TESS_SPEC_PARAMETER_LEAST]), most = ordered(dtype, record[TESS_SPEC_PARAMETER_MOST]);
    const int low = value < least || (open_least && value == least), high = value > most || (open_most && value == most);
    const int no_number = is_nan(dtype, bits);
    int32_t kind = TESS_PARAMETER_FINITE;
    int64_t expected = TESS_NO_NUMBER;
    if ((flags & TESS_RANGE_DECLARED) == 0 || (!low && !high)) return TESS_OK;
    if ((low || no_number) && (flags & TESS_RANGE_LEAST) != 0) {
        kind = open_least ? TESS_PARAMETER_ABOVE : TESS_PARAMETER_MIN;
        expected = record[TESS_SPEC_PARAMETER_LEAST];
    } else if ((high || no_number) && (flags & TESS_RANGE_MOST) != 0) {
        kind = open_most ? TESS_PARAMETER_BELOW : TESS_PARAMETER_MAX;
        expected = record[TESS_SPEC_PARAMETER_MOST];
    }
    return tess_abi2_fault(fault, kind, plan->tensors + p, dtype, expected, bits);
}

int32_t tess_abi2_bind_parameters(const TessPlan *plan, int64_t *frame, const void *parameters, TessFault *fault) {
    int64_t *slot = frame + plan->tail - plan->parameters;
    const int64_t *record = tess_spec_parameter(plan->spec, 0);
    const int64_t words = tess_spec_parameter_words(plan->spec);
    int32_t i;
    for (i = 0; i < plan->parameters; ++i, record += words) {
        const char *at = (const char *)parameters + record[TESS_SPEC_PARAMETER_OFFSET];
        switch (record[TESS_SPEC_PARAMETER_DTYPE]) {
        case TESS_BOOL: slot[i] = *at != 0; break;
        case TESS_F32:
        case TESS_I32: {
            int32_t word;
            memcpy(&word, at, sizeof word);
            slot[i] = word;
            break;
        }
        default: memcpy(&slot[i], at, sizeof slot[i]);
        }
        if (words == TESS_SPEC_RANGED_WORDS) {
            const int32_t status = check_range(plan, record, i, slot[i], fault);
            if (status != TESS_OK) return status;
        }
    }
    return TESS_OK;
}

static int64_t rounded(int64_t bytes) { return (bytes + TESS_WORKSPACE_ALIGNMENT - 1) & -TESS_WORKSPACE_ALIGNMENT; }

/* Runs the kernel's plan, which may choose a body, and lays out the workspace. */
static int32_t plan_workspace(TessPlan *plan, int64_t *frame, TessPlanFunction function, TessFault *fault) {
    int64_t *tail = frame + plan->tail;
    const int64_t limit = TESS_MAX_WORKSPACE_BYTES;
    int64_t *shared = &tail[TESS_TAIL_SHARED_BYTES], *worker = &tail[TESS_TAIL_WORKER_BYTES];
    if (function != NULL) {
        const int32_t status = tess_abi2_outcome(function(frame), fault);
        if (status != TESS_OK) {
            if (fault->kind != TESS_EXTENT_FIXED) return status;
            fault->dimension = (int32_t)tail[TESS_TAIL_DIMENSION];
            fault->expected = tail[TESS_TAIL_EXPECTED];
            if (fault->argument >= 0 && fault->dimension >= 0)
                fault->got = frame[tess_spec_tensor(plan->spec, fault->argument)[TESS_SPEC_TENSOR_AXES + fault->dimension]];
            return status;
        }
    }
    if (*shared < 0 || *worker < 0) return tess_abi2_plain_fault(fault, TESS_KERNEL, -1);
    if (*shared > limit || *worker > limit / plan->workers - TESS_WORKSPACE_ALIGNMENT)
        return tess_abi2_fault(fault, TESS_WORKSPACE_LARGE, -1, -1, limit, *shared > *worker ? *shared : *worker);
    *shared = rounded(*shared);
    *worker = rounded(*worker);
    plan->workspace_bytes = (uint64_t)*shared + (uint64_t)*worker * (uint64_t)plan->workers;
    plan->body = (TessBody)(uintptr_t)tail[TESS_TAIL_BODY];
    return plan->body == NULL ? tess_abi2_plain_fault(fault, TESS_KERNEL, -1) : TESS_OK;
}

int32_t tess_abi2_plan(TessPlan *plan, const int64_t *spec, TessPlanFunction function, TessBody body, const TessTensor *const *tensors,
                       const void *parameters, const TessContext *context, int sizing, TessFault *fault) {
    TessBinding binding;
    int64_t *tail;
    int32_t status;
    plan->mark = 0;
    plan->spec = spec;
    plan->tail = tess_frame_workspace(spec);
    plan->workspace_bytes = 0;
    plan->tensors = (int32_t)spec[TESS_SPEC_N_TENSORS];
    plan->parameters = (int32_t)spec[TESS_SPEC_N_PARAMETERS];
    plan->workers = 1;
    plan->has_parameters = parameters != NULL || plan->parameters == 0;
    plan->busy = 0;
    plan->reserved = 0;
    binding.spec = spec;
    binding.args = tensors;
    binding.plan = plan;
    binding.tensors = tess_plan_tensors(plan);
    binding.frame = tess_plan_frame(plan);
    binding.carrier = tess_plan_carriers(plan);
    binding.fault = fault;
    binding.sizing = sizing;
    status = tess_abi2_bind(&binding, context);
    if (status != TESS_OK || sizing) return status;
    tail = binding.frame + plan->tail;
    tail[TESS_TAIL_WORKSPACE] = 0;
    tail[TESS_TAIL_SHARED_BYTES] = 0;
    tail[TESS_TAIL_WORKER_BYTES] = 0;
    tail[TESS_TAIL_WORKERS] = plan->workers;
    tail[TESS_TAIL_FEATURES] = (int64_t)plan->features;
    tail[TESS_TAIL_BODY] = (int64_t)(uintptr_t)body;
    tail[TESS_TAIL_DIMENSION] = -1;
    tail[TESS_TAIL_EXPECTED] = TESS_NO_NUMBER;
    if (parameters != NULL) status = tess_abi2_bind_parameters(plan, binding.frame, parameters, fault);
    else memset(tail - plan->parameters, 0, (size_t)plan->parameters * sizeof *tail);
    if (status == TESS_OK) status = plan_workspace(plan, binding.frame, function, fault);
    if (status == TESS_OK) plan->mark = tess_abi2_mark(plan);
    return status;
}

/* With a second frame for what does not fit the stack of a run. */
static uint64_t bytes_of(const int64_t *spec) {
    const int64_t words = spec[TESS_SPEC_FRAME_WORDS];
    return tess_abi2_plan_bytes(spec) + (words > TESS_RUN_WORDS ? (uint64_t)words * sizeof(int64_t) : 0);
}

int32_t tess_plan_bytes(const TessKernel *kernel, uint64_t *bytes) {
    TessFault fault;
    const int32_t status = tess_abi2_check_kernel(kernel, &fault);
    if (bytes == NULL) return tess_abi2_status(TESS_NULL_ARGUMENT, -1);
    *bytes = status == TESS_OK ? bytes_of(kernel->spec) : 0;
    return status;
}

int32_t tess_plan_make(const TessKernel *kernel, const TessTensor *const *tensors, const void *parameters, const TessContext *context,
                       void *memory, uint64_t bytes) {
    TessFault fault;
    int32_t status = tess_abi2_check_kernel(kernel, &fault);
    /* What may be there from before is no plan any more, whatever happens. */
    if (memory != NULL && (uintptr_t)memory % TESS_PLAN_ALIGNMENT == 0 && bytes >= sizeof(TessPlan)) ((TessPlan *)memory)->mark = 0;
    if (status == TESS_OK) {
        const uint64_t needed = bytes_of(kernel->spec);
        if (memory == NULL) status = tess_abi2_plain_fault(&fault, TESS_NULL_ARGUMENT, -1);
        else if ((uintptr_t)memory % TESS_PLAN_ALIGNMENT != 0)
            status = tess_abi2_misaligned(&fault, TESS_PLAN_MISALIGNED, -1, (uintptr_t)memory, TESS_PLAN_ALIGNMENT);
        else if (bytes < needed) status = tess_abi2_fault(&fault, TESS_PLAN_SMALL, -1, -1, (int64_t)needed, (int64_t)bytes);
        else status = tess_abi2_plan(memory, kernel->spec, kernel->plan, kernel->body, tensors, parameters, context, 0, &fault);
    }
    return tess_abi2_report(context, status, &fault);
}

int32_t tess_plan_workspace(const TessPlan *plan, uint64_t *bytes) {
    if (bytes == NULL) return tess_abi2_status(TESS_NULL_ARGUMENT, -1);
    *bytes = 0;
    if (plan == NULL || plan->mark != tess_abi2_mark(plan)) return tess_abi2_status(TESS_PLAN_INVALID, -1);
    *bytes = plan->workspace_bytes;
    return TESS_OK;
}
