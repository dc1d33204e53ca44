/** Messages by Gloo over TCP, for processes that find each other by a folder. C99 and C++20; the library is tessera_mesh_gloo, which is
 *  built where Gloo is installed (Debian's libgloo-dev), and C++ inside.
 *
 *  The connection of a process that ends is closed, so others know within milliseconds. One that hangs is found at the deadline. */
#ifndef TESSERA_MESH_ENGINE_GLOO_H
#define TESSERA_MESH_ENGINE_GLOO_H

#include "runtime/mesh/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Fills in the engine of rank `rank` of `ranks`. All of them meet in `folder`, which is empty before and can be seen by all. `host` is the
 *  name or address under which others reach this process; null: the host's own name. Waits for the others, at most timeout_ms milliseconds.
 *  TESS_MESH_RANK, TESS_MESH_LATE where not all came, TESS_MESH_ENGINE where Gloo refuses, TESS_MESH_MEMORY. */
int32_t tess_gloo_engine(const char *folder, const char *host, int32_t rank, int32_t ranks, int64_t timeout_ms, TessEngine *engine);

#ifdef __cplusplus
}
#endif

#endif
