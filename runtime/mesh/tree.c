#include "runtime/mesh/tree.h"

static int32_t walk(int32_t lo, int32_t hi, int32_t first, int32_t end, TessSubtree *subtrees, int32_t most, int32_t count) {
    int32_t middle;
    if (hi <= first || end <= lo) return count;
    if (first <= lo && hi <= end) {
        if (count < most) {
            subtrees[count].first = lo;
            subtrees[count].chunks = hi - lo;
        }
        return count + 1;
    }
    middle = tess_mesh_split(lo, hi);
    count = walk(lo, middle, first, end, subtrees, most, count);
    return walk(middle, hi, first, end, subtrees, most, count);
}

int32_t tess_mesh_subtrees(int32_t chunks, int32_t first, int32_t end, TessSubtree *subtrees, int32_t most) {
    if (chunks < 1 || chunks > TESS_MESH_MAX_CHUNKS || first < 0 || end <= first || end > chunks) return 0;
    return walk(0, chunks, first, end, subtrees, subtrees == TESS_NULL ? 0 : most, 0);
}
