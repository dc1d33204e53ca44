/* The memory that kernels work on: the host's own, or, where this is compiled with TESSERA_OPENCL, a copy of it on a device. */
#ifndef TESSERA_DEVICE_MEMORY_H
#define TESSERA_DEVICE_MEMORY_H

#include "runtime/abi/tessera.h"

#ifdef TESSERA_OPENCL
/* Opens the device and names it and a queue in the context; 0, or -1 where there is none. */
int device_open(TessContext *context);
/* A copy of host memory; null where there is no room. */
void *device_memory(void *host, size_t bytes);
void device_release(void *memory);
/* All of what the device has: from the host, and back. */
void device_write(void *memory, const void *host, size_t bytes);
void device_read(void *memory, void *host, size_t bytes);
/* Returns when all calls are done. */
void device_wait(void);
#else
static inline int device_open(TessContext *context) { return context == NULL; }
static inline void *device_memory(void *host, size_t bytes) { return (void)bytes, host; }
static inline void device_release(void *memory) { (void)memory; }
static inline void device_write(void *memory, const void *host, size_t bytes) { (void)memory, (void)host, (void)bytes; }
static inline void device_read(void *memory, void *host, size_t bytes) { (void)memory, (void)host, (void)bytes; }
static inline void device_wait(void) {}
#endif

#endif
