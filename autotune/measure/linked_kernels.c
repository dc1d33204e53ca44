#include "autotune/measure/measured_kernels.h"

int32_t tessera_base_describe(TessKernel *kernel);
int32_t tessera_candidate_describe(TessKernel *kernel) __attribute__((weak));

const char *measured_open(void) { return NULL; }

int measured_kernel(int which, const char *suffix, TessKernel *kernel) {
    *kernel = tess_kernel();
    if (*suffix) return 0; /* nothing is packed for a device */
    return (which == CANDIDATE && tessera_candidate_describe ? tessera_candidate_describe : tessera_base_describe)(kernel) == TESS_OK;
}
