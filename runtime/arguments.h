/** Arguments against the spec: what tess_abi1_run checks before it plans, and the frame that it
 *  fills on the way. For this library's own sources. */
#ifndef TESSERA_ARGUMENTS_H
#define TESSERA_ARGUMENTS_H

#include "runtime/binding.h"

/** Checks all but where the data is, given spec, args, frame and sizing; fills the frame (no workspace
 *  yet), the tail and the spans (relative to the data). Features come first: not even a kernel's
 *  plan may run without them. */
int tess_abi1_bind(TessBinding *binding, const int64_t *parameter_bits, const TessContext *context);

/** Checks data pointers, alignment and overlap after tess_abi1_bind, and makes the spans
 *  absolute. */
int tess_abi1_check_data(TessBinding *binding);

#endif
