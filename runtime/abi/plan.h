/** Making a plan. For this library's own sources. */
#ifndef TESSERA_PLAN_H
#define TESSERA_PLAN_H

#include "runtime/abi/binding.h"

/** Bytes of a plan for a spec that this library can read, without a second frame. */
uint64_t tess_abi2_plan_bytes(const int64_t *spec);

/** Makes the plan in `plan`, which has room for it. `sizing` as in TessBinding; `parameters` may be null. */
int32_t tess_abi2_plan(TessPlan *plan, const int64_t *spec, TessPlanFunction function, TessBody body, const TessTensor *const *tensors,
                       const void *parameters, const TessContext *context, int sizing, TessFault *fault);

/** Writes a struct of parameters to their slots. A status where one is outside of its range. */
int32_t tess_abi2_bind_parameters(const TessPlan *plan, int64_t *frame, const void *parameters, TessFault *fault);

/** What a plan at this address is marked with. */
static inline uint64_t tess_abi2_mark(const TessPlan *plan) { return (uintptr_t)plan ^ UINT64_C(0x5445535350414c4e); }

/** A code of the kernel's own code or of a foreign pool, as a status. */
int32_t tess_abi2_outcome(int32_t code, TessFault *fault);

/** Tells the context's fault, if it has one, of a status; gives the status. */
int32_t tess_abi2_report(const TessContext *context, int32_t status, const TessFault *fault);

#endif
