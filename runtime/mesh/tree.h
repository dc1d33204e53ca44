/* The tree over the chunks of a reduction: [lo, hi) is split behind its first 2^k chunks, 2^k the largest power of two below hi - lo. A
 * counter of subtrees, as of a binary number, makes the same tree from chunks that come one after the other. */
#ifndef TESSERA_MESH_TREE_H
#define TESSERA_MESH_TREE_H

#include "runtime/mesh/mesh.h"

enum { TESS_MESH_MAX_SUBTREES = 32 };

/* Where a node of at least two chunks is split. */
static inline int32_t tess_mesh_split(int32_t lo, int32_t hi) {
    int32_t power = 1;
    while (power * 2 < hi - lo) power *= 2;
    return lo + power;
}

#endif
