/** Messages by MPI, for ranks that mpirun or srun started. C99 and C++20; the library is tessera_mesh_mpi, which is built where MPI is
 *  installed (Debian's libopenmpi-dev). It sends, receives and tests, and uses no collective of MPI's.
 *
 *  MPI tells nobody that a rank has died, so a mesh finds out at its deadline. After that MPI_Finalize is not called: it would wait for the
 *  dead. mpirun ends all ranks when one dies, unless it is told to go on (Open MPI: --enable-recovery). Where a network writes to memory by
 *  itself, what was in flight in a broken mesh must stay in place until the process ends. */
#ifndef TESSERA_MESH_ENGINE_MPI_H
#define TESSERA_MESH_ENGINE_MPI_H

#include "runtime/mesh/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Fills in the engine of this process: all ranks call it. Where the application has not initialised MPI it is initialised here, and ended
 *  when the mesh is, for good. The thread that calls it is the one that may use the engine. TESS_MESH_ENGINE where MPI refuses or was
 *  ended, TESS_MESH_RANK above TESS_MESH_MAX_RANKS, TESS_MESH_MEMORY. */
int32_t tess_mpi_engine(TessEngine *engine);

#ifdef __cplusplus
}
#endif

#endif
