/** A tensor of a file in the format of safetensors, read with suspicion. */
#ifndef TESSERA_BUNDLE_STORED_TENSOR_H
#define TESSERA_BUNDLE_STORED_TENSOR_H

#include "runtime/abi/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The type that safetensors calls by a name; bits are 0 where there is none that takes whole bytes. */
TessType tess_stored_type(const char *name);

/** The bytes of the tensor of this name; null where the file is none or broken, or has none of this name, type and extents. */
const unsigned char *tess_stored_tensor(const unsigned char *file, uint64_t size, const char *name, const TessTensor *like);

#ifdef __cplusplus
}
#endif
#endif
