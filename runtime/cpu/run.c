#include <string.h>

#include "runtime/abi/arguments.h"
#include "runtime/abi/packed.h"
#include "runtime/abi/plan.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* Words of a plan that a call makes on its stack: of most kernels, and of the largest. */
enum { CALL_WORDS = 320, MOST_CALL_WORDS = 4096 };

/* Kernels promise the same bits wherever they run, so they bring their own rounding and
 * treatment of denormals. Flags are the caller's too: what a kernel raises is nobody's
 * business. */
#if defined(__SSE__)
typedef unsigned FloatState;

enum { PLAIN_MXCSR = 0x1f80, MXCSR_FLAGS = 0x3f };

static FloatState enter_plain_floats(void) {
    const FloatState state = _mm_getcsr();
    if ((state & ~(FloatState)MXCSR_FLAGS) != PLAIN_MXCSR) _mm_setcsr(PLAIN_MXCSR);
    return state;
}

static void leave_plain_floats(FloatState state) {
    if (_mm_getcsr() != state) _mm_setcsr(state);
}
#elif defined(__aarch64__)
typedef struct FloatState {
    uint64_t control, flags;
} FloatState;

static FloatState enter_plain_floats(void) {
    const uint64_t plain = 0;
    FloatState state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.control)::"memory");
    __asm__ volatile("mrs %0, fpsr" : "=r"(state.flags)::"memory");
    if (state.control != plain) __asm__ volatile("msr fpcr, %0" ::"r"(plain) : "memory");
    return state;
}

static void leave_plain_floats(FloatState state) {
    if (state.control != 0) __asm__ volatile("msr fpcr, %0" ::"r"(state.control) : "memory");
    __asm__ volatile("msr fpsr, %0" ::"r"(state.flags) : "memory");
}
#else
typedef int FloatState;

static FloatState enter_plain_floats(void) { return 0; }

static void leave_plain_floats(FloatState state) { (void)state; }
#endif

/* Where the data of a tensor is: the caller's, or else what the plan was made with. */
static uint64_t data_of(const TessPlan *plan, void *const *data, int32_t tensor) {
    return data != NULL ? (uint64_t)(uintptr_t)data[tensor] : tess_plan_tensors(plan)[tensor].data;
}

/* Checks where the data is and writes it to the frame. */
static int32_t patch_data(const TessPlan *plan, int64_t *frame, void *const *data, TessFault *fault) {
    const TessPlanTensor *tensor = tess_plan_tensors(plan);
    int32_t t;
    for (t = 0; t < plan->tensors; ++t, ++tensor) {
        const uint64_t address = data_of(plan, data, t);
        if (tensor->bytes != 0) {
            if (address == 0) return tess_abi2_plain_fault(fault, TESS_NULL_DATA, t);
            if (((address + tensor->first) & tensor->mask) != 0)
                return tess_abi2_misaligned(fault, tensor->packed >= 0 ? TESS_PACKED_MISALIGNED : TESS_MISALIGNED, t,
                                            address + tensor->first, (uint64_t)tensor->mask + 1);
            if (tensor->packed >= 0 && !tensor->written) {
                const int32_t status = tess_abi2_check_header(plan, t, (const void *)(uintptr_t)address, fault);
                if (status != TESS_OK) return status;
            }
        }
        frame[tensor->slot] = (int64_t)(address + tensor->first);
    }
    return TESS_OK;
}

/* Every pair with a tensor that is written. Memory objects are apart unless they are the same. */
static int32_t check_overlap(const TessPlan *plan, void *const *data, TessFault *fault) {
    const TessPlanTensor *tensors = tess_plan_tensors(plan);
    const int objects = plan->device.type == TESS_OPENCL;
    int32_t t, other;
    for (t = 0; t < plan->tensors; ++t) {
        const uint64_t own = data_of(plan, data, t);
        if (!tensors[t].written) continue;
        for (other = 0; other < plan->tensors; ++other) {
            const uint64_t its = data_of(plan, data, other);
            if (other == t ||
                !tess_abi2_share_memory(own + tensors[t].begin, tensors[t].bytes, its + tensors[other].begin, tensors[other].bytes))
                continue;
            if (objects && own != its) continue;
            tess_abi2_plain_fault(fault, TESS_OVERLAP, t);
            fault->other_argument = other;
            return tess_abi2_status(TESS_OVERLAP, t);
        }
    }
    return TESS_OK;
}

static int32_t check_workspace(const TessPlan *plan, int64_t *frame, void *const *data, const TessContext *context, TessFault *fault) {
    const TessPlanTensor *tensors = tess_plan_tensors(plan);
    const int64_t needed = (int64_t)plan->workspace_bytes;
    const int object = plan->device.type == TESS_OPENCL;
    uint64_t begin;
    int32_t t;
    if (needed == 0) return TESS_OK;
    if (context == NULL || context->workspace == NULL)
        return tess_abi2_fault(fault, TESS_WORKSPACE_MISSING, -1, -1, needed, 0);
    begin = (uintptr_t)context->workspace;
    if (!object && begin % TESS_WORKSPACE_ALIGNMENT != 0)
        return tess_abi2_misaligned(fault, TESS_WORKSPACE_MISALIGNED, -1, begin, TESS_WORKSPACE_ALIGNMENT);
    if (context->workspace_bytes < plan->workspace_bytes)
        return tess_abi2_fault(fault, TESS_WORKSPACE_SMALL, -1, -1, needed, (int64_t)context->workspace_bytes);
    for (t = 0; t < plan->tensors; ++t) {
        const uint64_t its = data_of(plan, data, t);
        if (object ? its == begin && tensors[t].bytes != 0
                   : tess_abi2_share_memory(begin, plan->workspace_bytes, its + tensors[t].begin, tensors[t].bytes))
            return tess_abi2_plain_fault(fault, TESS_WORKSPACE_OVERLAP, t);
    }
    frame[plan->tail] = (int64_t)begin;
    return TESS_OK;
}

/* Runs the body on a frame that nobody else uses. On a device it returns when its work is in the stream, and tells `done` itself. */
static int32_t run_body(const TessPlan *plan, int64_t *frame, void *const *data, const TessContext *context, TessFault *fault) {
    TessCall call;
    FloatState floats;
    int32_t status, written = -1;
    call.context = context;
    call.worker = 0;
    call.workers = tess_abi2_workers(context);
    if (call.workers > plan->workers) call.workers = plan->workers;
    call.nested = 0;
    call.device = plan->device.id;
    if (plan->device.type != TESS_HOST) return tess_abi2_outcome(plan->body(&call, frame), fault);
    if (plan->packed_bytes >= 0) {
        const TessPlanTensor *tensors = tess_plan_tensors(plan);
        for (written = plan->tensors - 1; tensors[written].packed < 0 || !tensors[written].written;) --written;
        tess_abi2_clear_packed((void *)(uintptr_t)data_of(plan, data, written));
    }
    floats = enter_plain_floats();
    status = plan->body(&call, frame);
    leave_plain_floats(floats);
    if (status != TESS_OK) return tess_abi2_outcome(status, fault);
    if (written >= 0) tess_abi2_head_packed(plan, written, (void *)(uintptr_t)data_of(plan, data, written));
    if (context != NULL && context->done != NULL) context->done(context->done_state, TESS_OK);
    return TESS_OK;
}

static int32_t run_checked(const TessPlan *plan, int64_t *frame, void *const *data, const TessContext *context, TessFault *fault) {
    int32_t status = patch_data(plan, frame, data, fault);
    if (status == TESS_OK) status = check_overlap(plan, data, fault);
    if (status == TESS_OK) status = check_workspace(plan, frame, data, context, fault);
    return status != TESS_OK ? status : run_body(plan, frame, data, context, fault);
}

/* A kernel's arguments, as its functions hand them over. */
typedef struct Arguments {
    const int64_t *spec;
    TessPlanFunction plan;
    TessBody body;
    const TessTensor *const *tensors;
    const void *parameters;
    const TessContext *context;
} Arguments;

/* What is asked of a plan that is made on the stack. */
typedef enum Question { RUN, WORKSPACE, PACKED_BYTES } Question;

static int32_t answer(TessPlan *plan, const Arguments *a, Question question, uint64_t *bytes, TessFault *fault) {
    int32_t status =
        tess_abi2_plan(plan, a->spec, a->plan, a->body, a->tensors, a->parameters, a->context, question == PACKED_BYTES, fault);
    if (status != TESS_OK) return status;
    if (question == WORKSPACE) *bytes = plan->workspace_bytes;
    if (question == PACKED_BYTES) {
        if (plan->packed_bytes < 0) return tess_abi2_plain_fault(fault, TESS_KERNEL, -1);
        *bytes = TESS_PACKED_HEADER_BYTES + (uint64_t)plan->packed_bytes;
    }
    if (question != RUN) return TESS_OK;
    if (!plan->has_parameters) return tess_abi2_plain_fault(fault, TESS_NULL_PARAMETERS, -1);
    return run_checked(plan, tess_plan_frame(plan), NULL, a->context, fault);
}

/* Apart, so that no other call has its stack. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static int32_t
answer_large(const Arguments *a, Question question, uint64_t *bytes, TessFault *fault) {
    union {
        TessPlan plan;
        uint64_t words[MOST_CALL_WORDS];
    } memory;
    return answer(&memory.plan, a, question, bytes, fault);
}

static int32_t answer_on_stack(const Arguments *a, Question question, uint64_t *bytes) {
    union {
        TessPlan plan;
        uint64_t words[CALL_WORDS];
    } memory;
    uint64_t needed;
    TessFault fault;
    int32_t status;
    if (question != RUN) {
        if (bytes == NULL) return tess_abi2_report(a->context, tess_abi2_plain_fault(&fault, TESS_NULL_ARGUMENT, -1), &fault);
        *bytes = 0;
    }
    if (!tess_abi2_is_kernel(a->spec)) {
        status = tess_abi2_plain_fault(&fault, TESS_KERNEL, -1);
    } else {
        needed = tess_abi2_plan_bytes(a->spec);
        if (needed <= sizeof memory) status = answer(&memory.plan, a, question, bytes, &fault);
        else if (needed <= MOST_CALL_WORDS * sizeof(uint64_t)) status = answer_large(a, question, bytes, &fault);
        else status = tess_abi2_fault(&fault, TESS_CALL_LARGE, -1, -1, MOST_CALL_WORDS * (int64_t)sizeof(uint64_t), (int64_t)needed);
    }
    return tess_abi2_report(a->context, status, &fault);
}

int32_t tess_abi2_call(const int64_t *spec, TessPlanFunction plan, TessBody body, const TessTensor *const *tensors, const void *parameters,
                       const TessContext *context) {
    const Arguments arguments = {spec, plan, body, tensors, parameters, context};
    return answer_on_stack(&arguments, RUN, NULL);
}

int32_t tess_abi2_workspace(const int64_t *spec, TessPlanFunction plan, TessBody body, const TessTensor *const *tensors,
                            const TessContext *context, uint64_t *bytes) {
    const Arguments arguments = {spec, plan, body, tensors, NULL, context};
    return answer_on_stack(&arguments, WORKSPACE, bytes);
}

int32_t tess_abi2_packed_bytes(const int64_t *spec, const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes) {
    const Arguments arguments = {spec, NULL, NULL, tensors, NULL, context};
    return answer_on_stack(&arguments, PACKED_BYTES, bytes);
}

int32_t tess_call(const TessKernel *kernel, const TessTensor *const *tensors, const void *parameters, const TessContext *context) {
    TessFault fault;
    const int32_t status = tess_abi2_check_kernel(kernel, &fault);
    if (status != TESS_OK) return tess_abi2_report(context, status, &fault);
    return tess_abi2_call(kernel->spec, kernel->plan, kernel->body, tensors, parameters, context);
}

int32_t tess_call_workspace(const TessKernel *kernel, const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes) {
    TessFault fault;
    const int32_t status = tess_abi2_check_kernel(kernel, &fault);
    if (bytes != NULL) *bytes = 0;
    if (status != TESS_OK) return tess_abi2_report(context, status, &fault);
    return tess_abi2_workspace(kernel->spec, kernel->plan, kernel->body, tensors, context, bytes);
}

static int32_t run_on(const TessPlan *plan, int64_t *frame, void *const *data, const void *parameters, const TessContext *context,
                      TessFault *fault) {
    memcpy(frame, tess_plan_frame(plan), (size_t)plan->spec[TESS_SPEC_FRAME_WORDS] * sizeof *frame);
    if (parameters != NULL) {
        const int32_t status = tess_abi2_bind_parameters(plan, frame, parameters, fault);
        if (status != TESS_OK) return status;
    }
    return run_checked(plan, frame, data, context, fault);
}

/* On the frame that a plan has for one run at a time, since it is too large for the stack. */
static int32_t run_on_its_own(const TessPlan *plan, void *const *data, const void *parameters, const TessContext *context,
                              TessFault *fault) {
    int32_t *busy = (int32_t *)(uintptr_t)&plan->busy;
    int32_t status;
    if (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE)) return tess_abi2_plain_fault(fault, TESS_PLAN_BUSY, -1);
    status = run_on(plan, tess_plan_own_frame(plan), data, parameters, context, fault);
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
    return status;
}

int32_t tess_plan_run(const TessPlan *plan, void *const *data, const void *parameters, const TessContext *context) {
    int64_t frame[TESS_RUN_WORDS];
    TessFault fault;
    int32_t status;
    if (plan == NULL || plan->mark != tess_abi2_mark(plan)) {
        status = tess_abi2_plain_fault(&fault, TESS_PLAN_INVALID, -1);
        return tess_abi2_report(context, status, &fault);
    }
    status = tess_abi2_check_context(context, &fault);
    if (status == TESS_OK && data == NULL && plan->tensors > 0) status = tess_abi2_plain_fault(&fault, TESS_NULL_ARGUMENT, -1);
    if (status == TESS_OK && parameters == NULL && !plan->has_parameters) status = tess_abi2_plain_fault(&fault, TESS_NULL_PARAMETERS, -1);
    if (status == TESS_OK)
        status = plan->spec[TESS_SPEC_FRAME_WORDS] <= TESS_RUN_WORDS ? run_on(plan, frame, data, parameters, context, &fault)
                                                                     : run_on_its_own(plan, data, parameters, context, &fault);
    return tess_abi2_report(context, status, &fault);
}

typedef struct Region {
    const TessCall *call;
    int32_t (*f)(void *call, int32_t index, uint8_t *closure);
    uint8_t *closure;
    int32_t min;
} Region;

static int32_t run_task(void *closure, int32_t index, int32_t worker) {
    const Region *region = closure;
    TessCall call = *region->call;
    FloatState floats;
    int32_t status;
    if (worker < 0 || worker >= call.workers) return tess_abi2_status(TESS_POOL_WORKER, -1);
    call.worker = worker;
    call.nested = 1;
    floats = enter_plain_floats();
    status = region->f(&call, region->min + index, region->closure);
    leave_plain_floats(floats);
    return status;
}

int32_t tess_abi2_do_par_for(void *call, int32_t (*f)(void *call, int32_t index, uint8_t *closure), int32_t min, int32_t size,
                             uint8_t *closure) {
    const TessCall *here = call;
    Region region;
    int32_t i, status;
    if (here->nested || here->workers <= 1 || size <= 1) {
        for (i = 0; i < size; ++i) {
            status = f(call, min + i, closure);
            if (status != TESS_OK) return status;
        }
        return TESS_OK;
    }
    region.call = here;
    region.f = f;
    region.closure = closure;
    region.min = min;
    return here->context->pool->parallel_for(here->context->pool->state, run_task, &region, size, here->workers);
}

int32_t tess_abi2_worker(void *call) { return ((const TessCall *)call)->worker; }
