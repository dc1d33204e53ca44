/* The parts of the runtime that differ on 64-bit ARM, run under an emulator: the floating-point state of a call and of its
 * parallel tasks, and the features that Linux tells. Prints what is wrong and exits with 1. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime/abi/kernel.h"

enum { FLUSH_TO_ZERO = 1 << 24, TOWARD_ZERO = 3 << 22, SOME_FLAGS = 0x9 };

static int failures;

static void check(int holds, const char *what) {
    if (!holds) printf("wrong: %s\n", what), ++failures;
}

static uint64_t fpcr(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}

static uint64_t fpsr(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, fpsr" : "=r"(value));
    return value;
}

static int plain_tasks, plain_body;

static int32_t task(void *call, int32_t index, uint8_t *closure) {
    (void)call, (void)index, (void)closure;
    __atomic_fetch_add(&plain_tasks, fpcr() == 0, __ATOMIC_RELAXED);
    return 0;
}

static int32_t body(void *call, int64_t *frame) {
    volatile float tiny = 1e-38f, third;
    (void)frame;
    third = tiny / 3; /* a denormal, and inexact */
    plain_body = fpcr() == 0 && third > 0;
    return tess_abi2_do_par_for(call, task, 0, 16, NULL);
}

int main(void) {
    static const int64_t avx2[TESS_SPEC_HEADER] = {TESS_SPEC_ABI2, INT64_C(1) << TESS_CPU_AVX2, 0, 0, 0, 0, 0, 0, 0, TESS_TAIL_WORDS,
                                                   TESS_HOST};
    static const int64_t spec[TESS_SPEC_HEADER] = {TESS_SPEC_ABI2, 0, 0, 0, 0, 0, 0, 0, 0, TESS_TAIL_WORDS, TESS_HOST};
    const uint64_t odd = FLUSH_TO_ZERO | TOWARD_ZERO, flags = SOME_FLAGS;
    TessContext context = tess_context();
    TessPool *pool = tess_pool_create(2);
    int bit, status;
    context.pool = pool;
    context.threads = 2;
    __asm__ volatile("msr fpcr, %0" ::"r"(odd));
    __asm__ volatile("msr fpsr, %0" ::"r"(flags));
    status = tess_abi2_call(spec, NULL, body, NULL, NULL, &context);
    check(status == TESS_OK, "the status of a run");
    check(plain_body, "rounding and denormals inside a run");
    check(plain_tasks == 16, "rounding and denormals inside parallel tasks");
    check(fpcr() == odd, "the caller's FPCR after a run");
    check(fpsr() == flags, "the caller's flags after a run");
    tess_pool_destroy(pool);

    for (bit = 0; bit < TESS_CPU_ASIMDHP; ++bit) check((tess_cpu_features() >> bit & 1) == 0, "a feature of x86");
    check((tess_cpu_features() >> TESS_CPU_ASIMDDP & 1) == (getauxval(AT_HWCAP) >> 20 & 1), "asimddp");
    check((tess_cpu_features() >> TESS_CPU_I8MM & 1) == (getauxval(AT_HWCAP2) >> 13 & 1), "i8mm");
    check(strcmp(tess_cpu_feature_name(TESS_CPU_ASIMDDP), "asimddp") == 0, "the name of asimddp");
    check(tess_status_code(tess_abi2_call(avx2, NULL, body, NULL, NULL, NULL)) == TESS_CPU, "code for AVX2 is refused");
    return failures != 0;
}
