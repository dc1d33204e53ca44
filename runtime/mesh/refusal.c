#include "runtime/mesh/inside.h"

int32_t tess_mesh_refuse(TessFault *fault, int32_t kind, int32_t argument, int64_t expected, int64_t got) {
    if (fault != NULL) {
        const uint32_t size = fault->size;
        *fault = tess_fault();
        fault->size = size;
        fault->kind = kind;
        fault->argument = argument;
        fault->expected = expected;
        fault->got = got;
    }
    return kind | (argument + 1) << 12;
}

int32_t tess_mesh_refuse_plainly(TessFault *fault, int32_t kind) {
    return tess_mesh_refuse(fault, kind, -1, TESS_NO_NUMBER, TESS_NO_NUMBER);
}

/* Ends the mesh for good. `rank` is among all ranks, or -1. */
int32_t tess_mesh_fail(TessMesh *mesh, int32_t kind, int64_t operation, int32_t rank) {
    if (mesh->broken.kind != TESS_OK) return mesh->broken.kind;
    tess_mesh_refuse(&mesh->broken, kind, -1, operation, rank < 0 ? TESS_NO_NUMBER : rank);
    mesh->engine.abort(mesh->engine.state, rank);
    return kind;
}

/* What an engine said. */
int32_t tess_mesh_fail_of_engine(TessMesh *mesh, int32_t status, int64_t operation, int32_t rank) {
    const int32_t kind = status & 0xfff, said = (status >> 12) - 1;
    const int known = status > 0 && (kind == TESS_MESH_ORDER || kind == TESS_MESH_MEMORY);
    return tess_mesh_fail(mesh, known ? kind : TESS_MESH_LOST, operation, status > 0 && said >= 0 ? said : rank);
}

/* What a call says that has just broken the mesh, or finds it broken. */
int32_t tess_mesh_say_broken(const TessMesh *mesh, int32_t kind, TessFault *fault) {
    return tess_mesh_refuse(fault, kind, -1, mesh->broken.expected, mesh->broken.got);
}
