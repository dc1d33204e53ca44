/** Operands that are packed ahead of time: bytes with a header that says how. For this library's own sources. */
#ifndef TESSERA_PACKED_H
#define TESSERA_PACKED_H

#include "runtime/abi/binding.h"

/** Checks the descriptor of a packed tensor and, where the kernel reads it, its header, which may be
 *  anything. */
int32_t tess_abi2_check_packed(const TessBinding *binding, int64_t tensor);

/** The extent of the operand that the header of a packed tensor states. */
int64_t tess_abi2_packed_extent(const TessBinding *binding, int64_t tensor, int64_t axis);

/** Checks the bytes of a packed tensor against the dims, sets what the plan must know of it, and writes the header that it has or is to
 *  get into the plan. */
int32_t tess_abi2_bind_packed(TessBinding *binding, int64_t tensor);

/** Checks that the header at `data` is the one in the plan. */
int32_t tess_abi2_check_header(const TessPlan *plan, int64_t tensor, const void *data, TessFault *fault);

/** Takes the header off what the kernel is to write; puts it there once all is written. */
void tess_abi2_clear_packed(void *data);
void tess_abi2_head_packed(const TessPlan *plan, int64_t tensor, void *data);

#endif
