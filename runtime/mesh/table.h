/* Tables of programs as the sources of this room read them. */
#ifndef TESSERA_MESH_TABLE_H
#define TESSERA_MESH_TABLE_H

#include "runtime/mesh/program.h"
#include "runtime/mesh/steps.h"

typedef struct TessProgramParts {
    const TessProgramHeader *header;
    const TessProgramBuffer *buffers;
    const TessProgramTensor *tensors;
    const TessProgramArgument *arguments;
    const TessProgramCollective *collectives;
    const TessProgramOperation *operations;
} TessProgramParts;

/* Finds the lists of a table, and whether they lie in it. */
int32_t tess_program_open(const TessProgramTable *table, TessProgramParts *parts, TessFault *fault);

/* Without group and memory. */
TessCollective tess_program_collective(const TessProgramCollective *said);

/* Whether the tensors of a `start` are what the collective reads and writes. */
int tess_program_fits(const TessProgramParts *parts, const TessProgramOperation *operation, const TessTask *task);

/* Whether this rank of so many can run it. */
int32_t tess_program_fits_mesh(const TessProgramHeader *header, int32_t rank, int32_t ranks);

#endif
