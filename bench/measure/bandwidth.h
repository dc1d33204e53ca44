/* How fast one core moves data between its registers and the cache or memory that holds it: plain vector loads and
 * stores, as generated code has them. */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `passes` passes over `bytes` of memory, a multiple of 512, aligned to 64. `vector_bytes` is 16, 32 or 64, which the
 * processor must have. */
void bandwidth_read(const void *from, size_t bytes, int vector_bytes, long passes);
void bandwidth_copy(void *to, const void *from, size_t bytes, int vector_bytes, long passes);

#ifdef __cplusplus
}
#endif
