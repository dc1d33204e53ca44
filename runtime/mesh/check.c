#include "runtime/mesh/fold.h"
#include "runtime/mesh/inside.h"

#define MAX_BYTES (INT64_C(1) << 46) /* of a tensor of a collective */

static int is_fold(int32_t kind) { return kind == TESS_ALL_REDUCE || kind == TESS_REDUCE_SCATTER || kind == TESS_EXCLUSIVE_SCAN; }

static uint32_t flags_of(int32_t kind) {
    switch (kind) {
    case TESS_ALL_REDUCE:
    case TESS_REDUCE_SCATTER: return TESS_COLLECTIVE_FOLDED | TESS_COLLECTIVE_ANY_ORDER;
    case TESS_ALL_GATHER:
    case TESS_ALL_TO_ALL:
    case TESS_BROADCAST: return TESS_COLLECTIVE_ANY_ORDER;
    case TESS_SHIFT: return TESS_COLLECTIVE_OPEN;
    default: return 0;
    }
}

static int fields_fit(const TessCollective *collective) {
    const int32_t kind = collective->kind;
    if (kind < TESS_ALL_REDUCE || kind > TESS_RECEIVE || (collective->flags & ~flags_of(kind)) != 0) return 0;
    if (!is_fold(kind) && (collective->monoid != 0 || collective->chunks != 0)) return 0;
    if (is_fold(kind) && (collective->monoid < TESS_SUM || collective->monoid > TESS_PRODUCT)) return 0;
    if (kind != TESS_SHIFT && collective->distance != 0) return 0;
    return tess_mesh_is_pair(kind) || kind == TESS_BROADCAST || collective->peer == 0;
}

void tess_mesh_rows_of(const TessTask *task, int64_t *input, int64_t *result) {
    const TessCollective *c = &task->collective;
    const int64_t n = task->n;
    int64_t own = 1;
    if (is_fold(c->kind)) {
        own = c->chunks / task->n;
        if ((c->flags & TESS_COLLECTIVE_FOLDED) != 0)
            own = tess_mesh_subtrees(c->chunks, task->r * (int32_t)own, (task->r + 1) * (int32_t)own, NULL, 0);
    }
    *input = *result = 1;
    switch (c->kind) {
    case TESS_ALL_REDUCE: *input = own; break;
    case TESS_REDUCE_SCATTER: *input = own * n; break;
    case TESS_ALL_GATHER: *result = n; break;
    case TESS_ALL_TO_ALL: *input = *result = n; break;
    case TESS_EXCLUSIVE_SCAN: *input = *result = own; break;
    case TESS_BROADCAST: *input = task->r == c->peer; break;
    case TESS_SEND: *result = 0; break;
    case TESS_RECEIVE: *input = 0; break;
    default: break;
    }
}

/* Whether input and result may be where they are. */
static int apart(const TessTask *task, uint64_t input_bytes, uint64_t result_bytes) {
    const TessCollective *c = &task->collective;
    const uintptr_t a = (uintptr_t)c->input, b = (uintptr_t)c->result;
    if (input_bytes == 0 || result_bytes == 0 || a + input_bytes <= b || b + result_bytes <= a) return 1;
    if (c->kind == TESS_BROADCAST) return a == b;
    if (c->kind == TESS_ALL_REDUCE) return a == b && input_bytes == result_bytes;
    if (c->kind == TESS_ALL_GATHER) return a == b + input_bytes * (uint64_t)task->r;
    return 0;
}

int32_t tess_mesh_check_fields(const TessCollective *asked, int32_t r, int32_t n, TessTask *task, TessFault *fault) {
    TessCollective *c = &task->collective;
    int64_t input_rows, result_rows, most;
    *c = *asked;
    c->size = sizeof *c;
    if (!fields_fit(c)) return tess_mesh_refuse_plainly(fault, TESS_MESH_COLLECTIVE);
    task->r = r;
    task->n = n;
    task->piece = 0;
    task->element = tess_dtype_size(c->dtype);
    if (task->element == 0 || (is_fold(c->kind) && tess_mesh_fold_of(c->dtype, c->monoid) == NULL))
        return tess_mesh_refuse(fault, TESS_DTYPE, -1, TESS_NO_NUMBER, c->dtype);
    if (c->peer < 0 || c->peer >= n || (tess_mesh_is_pair(c->kind) && c->peer == r))
        return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, n, c->peer);
    if (is_fold(c->kind)) {
        if (c->chunks == 0) c->chunks = n;
        if (c->chunks < 1 || c->chunks > TESS_MESH_MAX_CHUNKS || c->chunks % n != 0)
            return tess_mesh_refuse(fault, TESS_MESH_CHUNKS, -1, c->chunks, n);
    }
    tess_mesh_rows_of(task, &input_rows, &result_rows);
    most = MAX_BYTES / (int64_t)task->element / ((input_rows > result_rows ? input_rows : result_rows) + 1);
    if (c->count < 0 || c->count > most) return tess_mesh_refuse(fault, TESS_MESH_COUNT, -1, most, c->count);
    return TESS_OK;
}

int32_t tess_mesh_check(const TessMesh *mesh, const TessCollective *asked, TessTask *task, TessFault *fault) {
    const TessMeshGroup *group;
    const TessCollective *c = &task->collective;
    int64_t input_rows, result_rows;
    uint64_t row;
    int32_t status;
    if (asked->size < sizeof *asked) return tess_mesh_refuse_plainly(fault, TESS_STRUCT_SIZE);
    group = tess_mesh_group_of(mesh, asked->group);
    if (group == NULL) return tess_mesh_refuse_plainly(fault, TESS_MESH_GROUP);
    status = tess_mesh_check_fields(asked, group->r, group->n, task, fault);
    if (status != TESS_OK || c->count == 0) return status;
    task->piece = mesh->engine.piece;
    tess_mesh_rows_of(task, &input_rows, &result_rows);
    row = (uint64_t)c->count * task->element;
    if (input_rows > 0 && c->input == NULL) return tess_mesh_refuse(fault, TESS_NULL_DATA, 0, TESS_NO_NUMBER, TESS_NO_NUMBER);
    if (result_rows > 0 && c->result == NULL) return tess_mesh_refuse(fault, TESS_NULL_DATA, 1, TESS_NO_NUMBER, TESS_NO_NUMBER);
    if (input_rows > 0 && (uintptr_t)c->input % task->element != 0)
        return tess_mesh_refuse(fault, TESS_MISALIGNED, 0, (int64_t)task->element, TESS_NO_NUMBER);
    if (result_rows > 0 && (uintptr_t)c->result % task->element != 0)
        return tess_mesh_refuse(fault, TESS_MISALIGNED, 1, (int64_t)task->element, TESS_NO_NUMBER);
    if (apart(task, row * (uint64_t)input_rows, row * (uint64_t)result_rows)) return TESS_OK;
    status = tess_mesh_refuse(fault, TESS_OVERLAP, 1, TESS_NO_NUMBER, TESS_NO_NUMBER);
    if (fault != NULL) fault->other_argument = 0;
    return status;
}

uint64_t tess_mesh_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 29;
}

uint64_t tess_mesh_hash_of(uint64_t program, const TessTask *task) {
    const TessCollective *c = &task->collective;
    uint64_t hash = tess_mesh_mix(program, (uint64_t)(tess_mesh_is_pair(c->kind) ? TESS_SEND : c->kind) << 32 | (uint32_t)c->flags);
    hash = tess_mesh_mix(hash, (uint64_t)(uint32_t)c->group << 32 | (uint32_t)c->dtype);
    hash = tess_mesh_mix(hash, (uint64_t)(uint32_t)c->monoid << 32 | (uint32_t)c->chunks);
    hash = tess_mesh_mix(hash, (uint64_t)(uint32_t)(tess_mesh_is_pair(c->kind) ? 0 : c->peer) << 32 | (uint32_t)c->distance);
    hash = tess_mesh_mix(hash, (uint64_t)c->id << 32 | (uint32_t)task->n);
    return tess_mesh_mix(hash, (uint64_t)c->count);
}
