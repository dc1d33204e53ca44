/** The global symbols of a library by name: an open-addressed table in memory that the caller gives. */
#ifndef TESSERA_LOAD_SYMBOLS_H
#define TESSERA_LOAD_SYMBOLS_H

#include <stdint.h>

typedef struct TessLoadGlobal {
    const char *name; /**< null: a free place */
    uint64_t address;
    uint32_t hash;
    uint32_t exported; /**< whether it is seen from outside */
} TessLoadGlobal;

typedef struct TessLoadSymbols {
    TessLoadGlobal *places;
    uint64_t mask; /**< one less than the places, a power of two */
} TessLoadSymbols;

/** Places for this many symbols. */
uint64_t tess_load_symbol_places(uint64_t symbols);

/** The place of a name, which is free where there is none of it. */
TessLoadGlobal *tess_load_find(const TessLoadSymbols *symbols, const char *name, uint32_t *hash);

#endif
