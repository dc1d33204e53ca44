#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/inside.h"

enum { SPINS = 2000 };

#define DEFAULT_TIMEOUT UINT64_C(60000000000)

static int add_group(TessMesh *mesh, const int32_t *ranks, int32_t n, int32_t r) {
    TessMeshGroup *grown = realloc(mesh->group, sizeof(TessMeshGroup) * (size_t)(mesh->groups + 1));
    TessMeshGroup *group;
    if (grown == NULL) return 0;
    mesh->group = grown;
    group = &grown[mesh->groups];
    memset(group, 0, sizeof *group);
    group->n = n;
    group->r = r;
    if (n > 0) {
        group->numbers = calloc((size_t)n * 4, sizeof(uint32_t));
        if (ranks != NULL) group->ranks = malloc(sizeof(int32_t) * (size_t)n);
        if (group->numbers == NULL || (ranks != NULL && group->ranks == NULL)) {
            free(group->numbers);
            free(group->ranks);
            return 0;
        }
        if (ranks != NULL) memcpy(group->ranks, ranks, sizeof(int32_t) * (size_t)n);
    }
    ++mesh->groups;
    return 1;
}

int32_t tess_mesh_rank(const TessMesh *mesh, int32_t group) {
    const TessMeshGroup *found = tess_mesh_group_of(mesh, group);
    return found != NULL ? found->r : -1;
}

int32_t tess_mesh_ranks(const TessMesh *mesh, int32_t group) {
    const TessMeshGroup *found = tess_mesh_group_of(mesh, group);
    return found != NULL ? found->n : -1;
}

int32_t tess_mesh_group(TessMesh *mesh, const int32_t *ranks, int32_t n, int32_t *group, TessFault *fault) {
    int32_t i, j, r = -1, named = 0, status;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || group == NULL || (n > 0 && ranks == NULL)) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    *group = -1;
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    if (n < 0 || n > mesh->engine.ranks) return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, n);
    for (i = 0; i < n; ++i) {
        if (ranks[i] < 0 || ranks[i] >= mesh->engine.ranks)
            return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, ranks[i]);
        for (j = 0; j < i; ++j)
            if (ranks[j] == ranks[i]) return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, ranks[i]);
        if (ranks[i] == mesh->engine.rank) r = i;
    }
    if (n > 0 && r < 0) return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, mesh->engine.rank);
    if (!add_group(mesh, ranks, n, r)) /* the others have it, and would count on from there */
        return tess_mesh_say_broken(mesh, tess_mesh_fail(mesh, TESS_MESH_MEMORY, mesh->end, mesh->engine.rank), fault);
    status = mesh->engine.group(mesh->engine.state, ranks, n, &named);
    if (status != TESS_OK || named != mesh->groups - 1)
        return tess_mesh_say_broken(mesh, tess_mesh_fail(mesh, TESS_MESH_MEMORY, mesh->end, -1), fault);
    *group = named;
    return TESS_OK;
}

int32_t tess_mesh_axes(TessMesh *mesh, const int32_t *extents, int32_t axes, int32_t *groups, TessFault *fault) {
    int32_t a, i, status = TESS_OK, *ranks;
    int64_t product = 1, inner;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || extents == NULL || groups == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    if (axes < 1 || axes > TESS_MESH_MAX_AXES) return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, TESS_MESH_MAX_AXES, axes);
    for (a = 0; a < axes; ++a) {
        if (extents[a] < 1 || extents[a] > TESS_MESH_MAX_RANKS || product > TESS_MESH_MAX_RANKS)
            return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, extents[a]);
        product *= extents[a];
    }
    if (product != mesh->engine.ranks) return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, mesh->engine.ranks, product);
    ranks = malloc(sizeof(int32_t) * (size_t)mesh->engine.ranks);
    if (ranks == NULL) return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    inner = product;
    for (a = 0; a < axes && status == TESS_OK; ++a) {
        const int32_t step = (int32_t)(inner /= extents[a]);
        const int32_t coordinate = mesh->engine.rank / step % extents[a];
        for (i = 0; i < extents[a]; ++i) ranks[i] = mesh->engine.rank + (i - coordinate) * step;
        status = tess_mesh_group(mesh, ranks, extents[a], &groups[a], fault);
    }
    free(ranks);
    return status;
}

int32_t tess_mesh_create(const TessEngine *engine, const TessMeshOptions *options, TessMesh **mesh, TessFault *fault) {
    TessMesh *made;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || engine == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    *mesh = NULL;
    if (engine->size < sizeof *engine || engine->group == NULL || engine->send == NULL || engine->receive == NULL || engine->test == NULL ||
        engine->abort == NULL || engine->close == NULL || engine->ranks < 1 || engine->ranks > TESS_MESH_MAX_RANKS || engine->rank < 0 ||
        engine->rank >= engine->ranks)
        return tess_mesh_refuse_plainly(fault, TESS_MESH_ENGINE);
    if (options != NULL && options->size < sizeof *options) return tess_mesh_refuse_plainly(fault, TESS_STRUCT_SIZE);
    if (options != NULL && options->flags != 0) return tess_mesh_refuse_plainly(fault, TESS_CONTEXT_NEWER);
    made = calloc(1, sizeof *made);
    if (made == NULL) return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    made->engine = *engine;
    made->program = options != NULL ? options->program : 0;
    made->timeout = options != NULL && options->timeout_ns != 0 ? options->timeout_ns : DEFAULT_TIMEOUT;
    /* With fewer processors than threads, whoever spins keeps the one waited for from running. */
    made->spins = (engine->flags & TESS_ENGINE_THREADS) == 0 || engine->ranks <= tess_cpu_count() ? SPINS : 0;
    made->broken = tess_fault();
    if (!add_group(made, NULL, engine->ranks, engine->rank)) {
        free(made->group);
        free(made);
        return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    }
    *mesh = made;
    return TESS_OK;
}

/* The engine is closed first: until then it may write to what is freed here. */
void tess_mesh_destroy(TessMesh *mesh) {
    int32_t i;
    if (mesh == NULL) return;
    if (mesh->broken.kind == TESS_OK && (mesh->engine.flags & TESS_ENGINE_GOODBYE) != 0 && mesh->engine.ranks > 1) {
        TessCollective meet = tess_collective(TESS_ALL_GATHER);
        unsigned char *all = malloc((size_t)mesh->engine.ranks), one = 1;
        meet.dtype = TESS_U8;
        meet.count = 1;
        meet.input = &one;
        meet.result = all;
        if (mesh->first != mesh->end || all == NULL) tess_mesh_fail(mesh, TESS_MESH_LOST, mesh->first, mesh->engine.rank);
        else tess_mesh_collective(mesh, &meet, NULL);
        mesh->engine.close(mesh->engine.state);
        free(all);
    } else {
        if (mesh->first != mesh->end) tess_mesh_fail(mesh, TESS_MESH_LOST, mesh->first, mesh->engine.rank);
        mesh->engine.close(mesh->engine.state);
    }
    while (mesh->lanes != NULL) {
        TessMeshLane *lane = mesh->lanes;
        mesh->lanes = lane->next;
        tess_mesh_free_steps(&lane->steps);
        free(lane->queue);
        free(lane->slots);
        free(lane->scratch);
        free(lane);
    }
    for (i = 0; i < mesh->groups; ++i) {
        free(mesh->group[i].ranks);
        free(mesh->group[i].numbers);
    }
    free(mesh->group);
    free(mesh->operation);
    free(mesh);
}

int32_t tess_mesh_memory(TessMesh *mesh, void *data, uint64_t bytes, int32_t on, TessFault *fault) {
    int32_t status;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || (data == NULL && bytes > 0)) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    if (mesh->engine.memory == NULL) return TESS_OK;
    status = mesh->engine.memory(mesh->engine.state, data, bytes, on != 0);
    return status == TESS_OK ? TESS_OK : tess_mesh_say_broken(mesh, tess_mesh_fail_of_engine(mesh, status, mesh->end, -1), fault);
}

int32_t tess_mesh_statistics(const TessMesh *mesh, TessMeshStatistics *statistics) {
    const uint32_t whole = sizeof *statistics;
    TessMeshStatistics filled;
    const TessMeshLane *lane;
    uint32_t size;
    int32_t i;
    if (mesh == NULL || statistics == NULL) return TESS_NULL_ARGUMENT;
    size = statistics->size;
    if (size < 8) return TESS_STRUCT_SIZE;
    filled = mesh->statistics;
    filled.size = size;
    filled.flags = 0;
    filled.memory = sizeof *mesh + sizeof(TessMeshOperation) * (uint64_t)mesh->capacity;
    for (i = 0; i < mesh->groups; ++i)
        filled.memory += sizeof(TessMeshGroup) + (uint64_t)mesh->group[i].n * (4 * sizeof(uint32_t) + sizeof(int32_t));
    for (lane = mesh->lanes; lane != NULL; lane = lane->next)
        filled.memory += sizeof *lane + sizeof(int64_t) * (uint64_t)lane->capacity + sizeof(TessStep) * (uint64_t)lane->steps.capacity +
                         sizeof(TessMeshSlot) * (uint64_t)lane->slot_capacity + lane->scratch_bytes;
    memcpy(statistics, &filled, size < whole ? size : whole);
    return TESS_OK;
}
