/** Operands that are packed ahead of time: bytes with a header that says how. For this library's own sources. */
#ifndef TESSERA_PACKED_H
#define TESSERA_PACKED_H

#include "runtime/binding.h"

/** Checks the descriptor of a packed tensor and, where the kernel reads it, its header, which may be
 *  anything. */
int tess_abi1_check_packed(const TessBinding *binding, int64_t tensor);

/** The extent of the operand that the header of a packed tensor states. */
int64_t tess_abi1_packed_extent(const TessBinding *binding, int64_t tensor, int64_t axis);

/** Checks the bytes of a packed tensor against the dims, and sets its span and its slot. */
int tess_abi1_bind_packed(TessBinding *binding, int64_t tensor, int64_t slot);

/** Takes the header off what the kernel is to write; puts it there once all is written. */
void tess_abi1_clear_packed(const TessBinding *binding);
void tess_abi1_head_packed(const TessBinding *binding);

#endif
