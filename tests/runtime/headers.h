/* What the public and the semi-private header look like to a C99 and to a C++20 compiler. */
#ifndef TESSERA_TESTS_RUNTIME_HEADERS_H
#define TESSERA_TESTS_RUNTIME_HEADERS_H

#include "runtime/abi/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HeaderView {
    size_t tensor_size, context_size, pool_size, call_size, kernel_size, info_sizes;
    size_t tensor_rank, context_pool, call_workers;
    int bool_value, kernel_kind, last_feature;
    TessTensor dense;
    TessContext context;
    TessFault fault;
    TessKernel kernel;
    int64_t parameter_slot;
    int32_t status;
} HeaderView;

HeaderView headers_as_c99(void);
HeaderView headers_as_cxx20(void);

#ifdef __cplusplus
}
#endif

#endif
