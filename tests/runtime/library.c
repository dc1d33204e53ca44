/* A library with a kernel and a runtime of its own, which is loaded beside another one like it. y[0] = which, by each worker. */
#include "runtime/abi/kernel.h"

#define SHOWN __attribute__((visibility("default")))

/* No dims; one output of rank 0; no parameters; one code; frame: data, tail. */
static const int64_t spec[] = {TESS_SPEC_ABI2,
                               0,
                               0,
                               1,
                               0,
                               1,
                               0,
                               0,
                               0,
                               1 + TESS_TAIL_WORDS,
                               TESS_HOST,
                               0,
                               TESS_ROLE_OUTPUT,
                               TESS_F32,
                               0,
                               0,
                               0,
                               0,
                               -1,
                               -1,
                               -1,
                               -1,
                               -1,
                               -1,
                               -1,
                               -1,
                               0,
                               0,
                               0,
                               0,
                               0x796f74 /* "toy" */};

static int32_t task(void *call, int32_t index, uint8_t *closure) {
    float *y = (float *)(uintptr_t)((const int64_t *)closure)[0];
    (void)index;
    (void)call;
    __atomic_store_n((uint32_t *)y, WHICH == 1 ? 0x3f800000u : 0x40000000u, __ATOMIC_RELAXED);
    return 0;
}

static int32_t body(void *call, int64_t *frame) { return tess_abi2_do_par_for(call, task, 0, 8, (uint8_t *)frame); }

SHOWN int32_t toy_table(const TessTensor *const *tensors, const TessContext *context);
SHOWN int32_t toy_table(const TessTensor *const *tensors, const TessContext *context) {
    return tess_abi2_call(spec, NULL, body, tensors, NULL, context);
}

SHOWN int32_t toy_describe(TessKernel *kernel);
SHOWN int32_t toy_describe(TessKernel *kernel) { return tess_abi2_describe(spec, NULL, body, kernel); }

#ifndef WITHOUT_POOL
SHOWN TessPool *toy_pool(int32_t threads);
SHOWN TessPool *toy_pool(int32_t threads) { return tess_pool_create(threads); }
SHOWN void toy_end(TessPool *pool);
SHOWN void toy_end(TessPool *pool) { tess_pool_destroy(pool); }
#endif
