/* Two elements folded to one, for each type and monoid. */
#ifndef TESSERA_MESH_FOLD_H
#define TESSERA_MESH_FOLD_H

#include "runtime/mesh/mesh.h"

/* result[i] = left[i] folded with right[i]; the result may be either of them. */
typedef void (*TessMeshFold)(void *result, const void *left, const void *right, int64_t count);

/* Null where there is none. */
TessMeshFold tess_mesh_fold_of(int32_t dtype, int32_t monoid);

/* Writes `bytes` bytes of the fold of nothing. */
void tess_mesh_fill(int32_t dtype, int32_t monoid, void *result, uint64_t bytes);

#endif
