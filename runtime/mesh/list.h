/* What lists of steps are made of. */
#ifndef TESSERA_MESH_LIST_H
#define TESSERA_MESH_LIST_H

#include "runtime/mesh/steps.h"

/* No message: it would have no bytes. */
enum { TESS_NO_SLOT = -1 };

/* A node of the tree over chunks, and where it is. */
typedef struct TessNode {
    int32_t first, chunks;
    TessPlace place;
} TessNode;

/* Bytes of a chunk, or of what is moved. */
typedef struct TessSpan {
    uint64_t begin, end; /* bytes of a chunk */
} TessSpan;

static inline uint64_t tess_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A range is cut into tiles of so many bytes. */
static inline uint64_t tess_tiles(TessSpan range, uint64_t tile) { return (range.end - range.begin + tile - 1) / tile; }

static inline TessSpan tess_tile_at(TessSpan range, uint64_t tile, uint64_t i) {
    TessSpan part;
    part.begin = range.begin + i * tile;
    part.end = tess_least(part.begin + tile, range.end);
    return part;
}

TessStep *tess_list_add(TessSteps *steps, int32_t kind);

/* Begin a message, and give its slot. */
int32_t tess_list_send(TessSteps *steps, int32_t to, TessPlace from, uint64_t bytes);
int32_t tess_list_receive(TessSteps *steps, int32_t from, TessPlace to, uint64_t bytes);

void tess_list_wait(TessSteps *steps, int32_t slot);

/* Wait for all of these that were begun from step `since` on. */
void tess_list_wait_for_sends(TessSteps *steps, int64_t since);
void tess_list_wait_for_receives(TessSteps *steps, int64_t since);

void tess_list_copy(TessSteps *steps, TessPlace to, TessPlace from, uint64_t bytes);
void tess_list_fold(TessSteps *steps, TessPlace to, TessPlace left, TessPlace right, uint64_t bytes);

/* Room in the scratch behind all that is there. */
TessPlace tess_list_scratch(TessSteps *steps, uint64_t bytes);

/* Makes the scratch so large that it has these bytes. */
void tess_list_reach(TessSteps *steps, TessPlace place, uint64_t bytes);

/* Room for so many nodes while the list is made. Null without memory. */
TessNode *tess_list_nodes(TessSteps *steps, int64_t count);

#endif
