#include "runtime/arguments.h"
#include "runtime/packed.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* A code of the kernel's own code or of a foreign pool, as a status. */
static int outcome(int code) {
    if (tess_status_code(code) != TESS_STATUS_KIND_COUNT) return code;
    return tess_abi1_fault(TESS_TASK, -1, -1, code < 0 ? -(int64_t)code : code);
}

/* Runs the plan and gives the bytes of workspace in all. */
static int plan_workspace(const TessBinding *b, TessPlan plan, uint64_t *bytes) {
    int64_t *part = b->frame + b->tail;
    const int64_t limit = TESS_MAX_WORKSPACE_BYTES;
    int status;
    *bytes = 0;
    if (plan == NULL) return TESS_OK;
    status = outcome(plan(b->frame));
    if (status != TESS_OK) return status;
    if (part[TESS_TAIL_SHARED_BYTES] < 0 || part[TESS_TAIL_WORKER_BYTES] < 0) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
    if (part[TESS_TAIL_SHARED_BYTES] > limit || part[TESS_TAIL_WORKER_BYTES] > limit / part[TESS_TAIL_WORKERS] - TESS_WORKSPACE_ALIGNMENT) {
        return tess_abi1_fault(TESS_TOO_LARGE, -1, -1, 1);
    }
    part[TESS_TAIL_SHARED_BYTES] = (part[TESS_TAIL_SHARED_BYTES] + TESS_WORKSPACE_ALIGNMENT - 1) & -TESS_WORKSPACE_ALIGNMENT;
    part[TESS_TAIL_WORKER_BYTES] = (part[TESS_TAIL_WORKER_BYTES] + TESS_WORKSPACE_ALIGNMENT - 1) & -TESS_WORKSPACE_ALIGNMENT;
    *bytes = (uint64_t)part[TESS_TAIL_SHARED_BYTES] + (uint64_t)part[TESS_TAIL_WORKER_BYTES] * (uint64_t)part[TESS_TAIL_WORKERS];
    return TESS_OK;
}

static int check_workspace(const TessBinding *b, const TessContext *context, uint64_t bytes) {
    const int64_t kib = (int64_t)(bytes / 1024 + (bytes % 1024 != 0));
    TessSpan span;
    int64_t t;
    if (bytes == 0) return TESS_OK;
    if (context == NULL || context->workspace == NULL) return tess_abi1_fault(TESS_WORKSPACE_MISSING, -1, -1, kib);
    span.begin = (uintptr_t)context->workspace;
    span.bytes = bytes;
    if (span.begin % TESS_WORKSPACE_ALIGNMENT != 0) return tess_abi1_fault(TESS_WORKSPACE_MISALIGNED, -1, -1, -1);
    if (context->workspace_bytes < bytes) return tess_abi1_fault(TESS_WORKSPACE_SMALL, -1, -1, kib);
    for (t = 0; t < b->spec[TESS_SPEC_N_TENSORS]; ++t) {
        if (tess_abi1_share_memory(span, b->spans[t])) return tess_abi1_fault(TESS_WORKSPACE_OVERLAP, t, -1, -1);
    }
    b->frame[b->tail] = (int64_t)span.begin;
    return TESS_OK;
}

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

int tess_abi1_run(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits, const TessContext *context,
                  TessPlan plan, TessBody body) {
    int64_t frame[TESS_MAX_FRAME];
    TessBinding binding;
    TessCall call;
    FloatState floats;
    uint64_t bytes;
    int status;
    binding.spec = spec;
    binding.args = args;
    binding.frame = frame;
    binding.sizing = 0;
    status = tess_abi1_bind(&binding, parameter_bits, context);
    if (status == TESS_OK) status = tess_abi1_check_data(&binding);
    if (status == TESS_OK) status = plan_workspace(&binding, plan, &bytes);
    if (status == TESS_OK) status = check_workspace(&binding, context, bytes);
    if (status != TESS_OK) return status;
    call.context = context;
    call.worker = 0;
    call.workers = (int32_t)frame[binding.tail + TESS_TAIL_WORKERS];
    call.nested = 0;
    call.reserved = 0;
    if (binding.packed_bytes >= 0) tess_abi1_clear_packed(&binding);
    floats = enter_plain_floats();
    status = outcome(body(&call, frame));
    leave_plain_floats(floats);
    if (status == TESS_OK && binding.packed_bytes >= 0) tess_abi1_head_packed(&binding);
    return status;
}

int tess_abi1_workspace(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits, const TessContext *context,
                        TessPlan plan, uint64_t *bytes) {
    int64_t frame[TESS_MAX_FRAME];
    TessBinding binding;
    int status;
    if (bytes == NULL) return tess_abi1_fault(TESS_NULL_ARGUMENT, -1, -1, -1);
    *bytes = 0;
    binding.spec = spec;
    binding.args = args;
    binding.frame = frame;
    binding.sizing = 0;
    status = tess_abi1_bind(&binding, parameter_bits, context);
    return status != TESS_OK ? status : plan_workspace(&binding, plan, bytes);
}

int tess_abi1_packed_bytes(const int64_t *spec, const TessTensorDesc *const *args, const int64_t *parameter_bits,
                           const TessContext *context, uint64_t *bytes) {
    int64_t frame[TESS_MAX_FRAME];
    TessBinding binding;
    int status;
    if (bytes == NULL) return tess_abi1_fault(TESS_NULL_ARGUMENT, -1, -1, -1);
    *bytes = 0;
    binding.spec = spec;
    binding.args = args;
    binding.frame = frame;
    binding.sizing = 1;
    status = tess_abi1_bind(&binding, parameter_bits, context);
    if (status != TESS_OK) return status;
    if (binding.packed_bytes < 0) return tess_abi1_fault(TESS_KERNEL, -1, -1, -1);
    *bytes = TESS_PACKED_HEADER_BYTES + (uint64_t)binding.packed_bytes;
    return TESS_OK;
}

typedef struct Region {
    const TessCall *call;
    int (*f)(void *call, int index, uint8_t *closure);
    uint8_t *closure;
    int min;
} Region;

static int run_task(void *closure, int32_t index, int32_t worker) {
    const Region *region = closure;
    TessCall call = *region->call;
    FloatState floats;
    int status;
    if (worker < 0 || worker >= call.workers) return tess_abi1_fault(TESS_CONTEXT, -1, -1, TESS_CONTEXT_WORKER);
    call.worker = worker;
    call.nested = 1;
    floats = enter_plain_floats();
    status = region->f(&call, region->min + index, region->closure);
    leave_plain_floats(floats);
    return status;
}

int tess_abi1_do_par_for(void *call, int (*f)(void *call, int index, uint8_t *closure), int min, int size, uint8_t *closure) {
    const TessCall *here = call;
    Region region;
    int i, status;
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

int32_t tess_abi1_worker(void *call) { return ((const TessCall *)call)->worker; }
