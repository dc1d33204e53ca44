/** What of the system a bundle needs: its file in memory, and memory to copy code to. */
#ifndef TESSERA_BUNDLE_MAP_H
#define TESSERA_BUNDLE_MAP_H

#include "runtime/bundle/bundle.h"

/** Maps a regular file, read only. On systems without Linux's calls it is refused; tess_bundle_read works there. */
int32_t tess_bundle_map(const char *path, const void **file, uint64_t *size, TessBundleError *error);
void tess_bundle_unmap(const void *file, uint64_t size);

/** Memory that the system gives, or null; and back. */
void *tess_bundle_take(uint64_t bytes);
void tess_bundle_give(void *memory, uint64_t bytes);

#endif
