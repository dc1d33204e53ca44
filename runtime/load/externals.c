#include "runtime/load/externals.h"

#include <math.h>
#include <string.h>

#include "runtime/abi/kernel.h"

typedef struct External {
    const char *name;
    void (*function)(void);
} External;

#define OF(function) \
    { #function, (void (*)(void))function }

/* The runtime; memory; and functions whose results are exact, so that every C library gives the same bits. Processors without SSE4.1 or
 * FMA call them. */
static const External externals[] = {
    OF(tess_abi2_call),
    OF(tess_abi2_describe),
    OF(tess_abi2_do_par_for),
    OF(tess_abi2_end_stream),
    OF(tess_abi2_packed_bytes),
    OF(tess_abi2_stream),
    OF(tess_abi2_worker),
    OF(tess_abi2_workspace),
    OF(memcpy),
    OF(memmove),
    OF(memset),
    OF(ceil),
    OF(ceilf),
    OF(floor),
    OF(floorf),
    OF(fma),
    OF(fmaf),
    OF(nearbyint),
    OF(nearbyintf),
    OF(rint),
    OF(rintf),
    OF(trunc),
    OF(truncf),
};

uint64_t tess_load_external(const char *name) {
    size_t i;
    for (i = 0; i < sizeof externals / sizeof *externals; ++i)
        if (strcmp(externals[i].name, name) == 0) return (uint64_t)(uintptr_t)externals[i].function;
    return 0;
}
