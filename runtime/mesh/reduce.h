/* Steps of collectives that fold. */
#ifndef TESSERA_MESH_REDUCE_H
#define TESSERA_MESH_REDUCE_H

#include "runtime/mesh/list.h"

/* These bytes of each chunk. */
void tess_mesh_all_reduce_steps(const TessTask *task, TessSpan block, TessSteps *steps);
void tess_mesh_reduce_scatter_steps(const TessTask *task, TessSpan block, TessSteps *steps);
void tess_mesh_exclusive_scan_steps(const TessTask *task, TessSpan block, TessSteps *steps);

#endif
