/** Arguments against the spec: what a call or a plan checks before anything runs, and the frame that is filled on the way. For this
 *  library's own sources. */
#ifndef TESSERA_ARGUMENTS_H
#define TESSERA_ARGUMENTS_H

#include "runtime/abi/binding.h"

/** Whether this library can read the spec. */
int tess_abi2_is_kernel(const int64_t *spec);

/** The largest `size` of a struct that is believed. */
enum { TESS_LARGEST_STRUCT = 1 << 16 };

/** Whether what a struct of `size` bytes has beyond the `known` ones is 0. */
int tess_abi2_is_known(const void *object, size_t known, uint32_t size);

/** Checks the context's own fields and those of its pool. */
int32_t tess_abi2_check_context(const TessContext *context, TessFault *fault);

/** The most workers that a call with this context, which has been checked, may use. */
static inline int32_t tess_abi2_workers(const TessContext *context) {
    return context != NULL && context->pool != NULL && context->threads > 1 ? context->threads : 1;
}

/** Whether this library can read the kernel: 0 or a status. */
int32_t tess_abi2_check_kernel(const TessKernel *kernel, TessFault *fault);

/** 0, or the status that names the first feature in `required` that `have` lacks. */
int32_t tess_abi2_check_features(uint64_t required, uint64_t have, TessFault *fault);

/** Checks all but where the data is; fills the plan's frame (no workspace and no parameters yet), its tensors and what a call must know.
 *  Features come first: not even a kernel's plan may run without them. */
int32_t tess_abi2_bind(TessBinding *binding, const TessContext *context);

#endif
