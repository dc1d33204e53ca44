/** From the bytes of a library to code in memory that is ready to be called. For Linux on x86-64 and 64-bit ARM. */
#ifndef TESSERA_LOAD_LINK_H
#define TESSERA_LOAD_LINK_H

#include "runtime/load/load.h"
#include "runtime/load/symbols.h"

/** What is kept of a library, at the beginning of its memory. */
struct TessLoaded {
    uint64_t bytes; /**< of all its memory */
    unsigned char *code;
    uint64_t code_bytes;
    TessLoadSymbols symbols;
};

/** As tess_load_archive; no pointer is null but `error`. */
TessLoadStatus tess_load_link(const void *bytes, uint64_t size, TessLoaded **loaded, TessLoadError *error);

#endif
