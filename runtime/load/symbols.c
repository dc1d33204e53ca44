#include "runtime/load/symbols.h"

#include <string.h>

uint64_t tess_load_symbol_places(uint64_t symbols) {
    uint64_t places = 8;
    while (places < 2 * symbols) places *= 2;
    return places;
}

/* FNV-1a. */
static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

TessLoadGlobal *tess_load_find(const TessLoadSymbols *symbols, const char *name, uint32_t *hash) {
    uint64_t i;
    *hash = hash_of(name);
    for (i = *hash & symbols->mask;; i = (i + 1) & symbols->mask) {
        TessLoadGlobal *place = &symbols->places[i];
        if (!place->name || (place->hash == *hash && strcmp(place->name, name) == 0)) return place;
    }
}
