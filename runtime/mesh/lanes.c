#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/fold.h"
#include "runtime/mesh/inside.h"

/* Tags of an engine's messages. Sends and receives have channels of their own, beside collectives. */
enum { HEAD = 0, BODY = 1, PAIR_HEAD = 2, PAIR_BODY = 3 };

TessMeshLane *tess_mesh_lane_of(TessMesh *mesh, int32_t group, int32_t peer, int32_t receives) {
    TessMeshLane *lane;
    if (peer < 0 && mesh->group[group].collectives != NULL) return mesh->group[group].collectives;
    for (lane = peer < 0 ? NULL : mesh->lanes; lane != NULL; lane = lane->next)
        if (lane->group == group && lane->peer == peer && lane->receives == receives) return lane;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL) return NULL;
    lane->group = group;
    lane->peer = peer;
    lane->receives = receives;
    lane->next = mesh->lanes;
    mesh->lanes = lane;
    if (peer < 0) mesh->group[group].collectives = lane;
    return lane;
}

/* Room for one more at the end. */
int tess_mesh_grow_operations(TessMesh *mesh) {
    const int64_t capacity = mesh->capacity == 0 ? 16 : 2 * mesh->capacity;
    TessMeshOperation *grown;
    int64_t i;
    if (mesh->end - mesh->first < mesh->capacity) return 1;
    grown = malloc(sizeof(TessMeshOperation) * (size_t)capacity);
    if (grown == NULL) return 0;
    for (i = mesh->first; i < mesh->end; ++i) grown[i % capacity] = *tess_mesh_operation_of(mesh, i);
    free(mesh->operation);
    mesh->operation = grown;
    mesh->capacity = capacity;
    return 1;
}

int tess_mesh_grow_queue(TessMeshLane *lane) {
    const int64_t capacity = lane->capacity == 0 ? 8 : 2 * lane->capacity;
    int64_t *grown;
    int64_t i;
    if (lane->count < lane->capacity) return 1;
    grown = malloc(sizeof(int64_t) * (size_t)capacity);
    if (grown == NULL) return 0;
    for (i = 0; i < lane->count; ++i) grown[i] = lane->queue[(lane->first + i) % lane->capacity];
    free(lane->queue);
    lane->queue = grown;
    lane->capacity = capacity;
    lane->first = 0;
    return 1;
}

static unsigned char *address(const TessMeshLane *lane, const TessCollective *collective, TessPlace place) {
    union {
        const void *read;
        unsigned char *bytes; /* an input is never written */
    } base;
    switch (tess_place_in(place)) {
    case TESS_IN_INPUT: base.read = collective->input; break;
    case TESS_IN_RESULT: base.read = collective->result; break;
    default: base.read = lane->scratch; break;
    }
    return base.bytes + tess_place_at(place);
}

/* Makes the steps of the next elements of an operation. Nothing of the lane is in flight. */
static int prepare(TessMeshLane *lane, const TessMeshOperation *operation, int64_t begin) {
    const int64_t block = tess_mesh_block(&operation->task), count = operation->task.collective.count;
    lane->block_end = count - begin < block ? count : begin + block;
    lane->at = 0;
    if (lane->block_end == begin) {
        lane->steps.count = 0;
        return 1;
    }
    if (!tess_mesh_make_steps(&operation->task, begin, lane->block_end, &lane->steps)) return 0;
    if (lane->steps.slots > lane->slot_capacity) {
        free(lane->slots);
        lane->slot_capacity = 0;
        lane->slots = calloc((size_t)lane->steps.slots, sizeof(TessMeshSlot));
        if (lane->slots == NULL) return 0;
        lane->slot_capacity = lane->steps.slots;
    }
    if (lane->steps.scratch > lane->scratch_bytes) {
        void *memory = NULL;
        free(lane->scratch);
        lane->scratch = NULL;
        lane->scratch_bytes = 0;
        if (posix_memalign(&memory, 64, lane->steps.scratch) != 0) return 0;
        lane->scratch = memory;
        lane->scratch_bytes = lane->steps.scratch;
    }
    return 1;
}

static int32_t begin_message(TessMesh *mesh, TessMeshLane *lane, const TessMeshOperation *operation, const TessStep *step) {
    TessMeshGroup *group = &mesh->group[lane->group];
    const TessEngine *engine = &mesh->engine;
    const int receives = step->kind == TESS_STEP_RECEIVE, pair = lane->peer >= 0;
    const uint32_t head_tag = pair ? PAIR_HEAD : HEAD, body_tag = pair ? PAIR_BODY : BODY;
    TessMeshSlot *slot = &lane->slots[step->slot];
    unsigned char *data = address(lane, &operation->task.collective, receives ? step->to : step->left);
    int inside = 0;
    int32_t status = TESS_OK;
    slot->peer = step->peer;
    slot->receives = receives;
    slot->with_head = step->first;
    slot->head_open = slot->body_open = 0;
    slot->to = NULL;
    slot->bytes = step->bytes;
    if (step->first) {
        uint32_t *number = &group->numbers[step->peer * 4 + pair * 2 + receives];
        TessMeshHead head;
        head.hash = operation->hash;
        head.number = (*number)++;
        head.bytes = (uint32_t)step->total;
        inside = step->total <= TESS_INLINE && step->total == step->bytes;
        slot->head_open = 1;
        if (receives) {
            slot->expected = head;
            if (inside) slot->to = data;
            status = engine->receive(engine->state, lane->group, step->peer, head_tag, slot->envelope, TESS_ENVELOPE, &slot->head);
        } else {
            memset(slot->envelope, 0, sizeof slot->envelope);
            memcpy(slot->envelope, &head, TESS_HEAD_BYTES);
            if (inside) memcpy(slot->envelope + TESS_HEAD_BYTES, data, step->bytes);
            status = engine->send(engine->state, lane->group, step->peer, head_tag, slot->envelope, TESS_ENVELOPE, &slot->head);
        }
        if (status != TESS_OK) slot->head_open = 0;
    }
    if (status == TESS_OK && !inside) {
        status = receives ? engine->receive(engine->state, lane->group, step->peer, body_tag, data, step->bytes, &slot->body)
                          : engine->send(engine->state, lane->group, step->peer, body_tag, data, step->bytes, &slot->body);
        slot->body_open = status == TESS_OK;
    }
    if (receives) {
        ++mesh->statistics.received;
        mesh->statistics.received_bytes += step->bytes;
    } else {
        ++mesh->statistics.sent;
        mesh->statistics.sent_bytes += step->bytes;
    }
    return status;
}

/* Whether a message is done; its head is checked before its data count. */
static int32_t test_message(TessMesh *mesh, TessMeshLane *lane, TessMeshSlot *slot, int32_t *done) {
    const TessEngine *engine = &mesh->engine;
    int32_t status;
    *done = 0;
    if (slot->head_open) {
        status = engine->test(engine->state, &slot->head, done);
        if (status != TESS_OK || !*done) return status;
        slot->head_open = 0;
        if (slot->receives) {
            if (memcmp(slot->envelope, &slot->expected, TESS_HEAD_BYTES) != 0)
                return tess_engine_status(TESS_MESH_ORDER, tess_mesh_global(&mesh->group[lane->group], slot->peer));
            if (slot->to != NULL) memcpy(slot->to, slot->envelope + TESS_HEAD_BYTES, slot->bytes);
        }
    }
    *done = 1;
    if (slot->body_open) {
        status = engine->test(engine->state, &slot->body, done);
        if (status != TESS_OK || !*done) return status;
        slot->body_open = 0;
    }
    return TESS_OK;
}

static void compute(const TessMeshLane *lane, const TessMeshOperation *operation, const TessStep *step) {
    const TessCollective *c = &operation->task.collective;
    unsigned char *to = address(lane, c, step->to);
    const unsigned char *left = address(lane, c, step->left);
    switch (step->kind) {
    case TESS_STEP_FOLD:
        tess_mesh_fold_of(c->dtype, c->monoid)(to, left, address(lane, c, step->right), (int64_t)(step->bytes / operation->task.element));
        break;
    case TESS_STEP_COPY:
        if (to != left) memcpy(to, left, step->bytes);
        break;
    case TESS_STEP_FILL: tess_mesh_fill(c->dtype, c->monoid, to, step->bytes); break;
    default: memset(to, 0, step->bytes); break;
    }
}

/* The operation is done. */
static void finish(TessMesh *mesh, TessMeshLane *lane, TessMeshOperation *operation) {
    operation->done = 1;
    lane->active = 0;
    lane->first = (lane->first + 1) % lane->capacity;
    --lane->count;
    ++mesh->statistics.operations;
    while (mesh->first < mesh->end && tess_mesh_operation_of(mesh, mesh->first)->done) ++mesh->first;
}

static int32_t progress_native(TessMesh *mesh, TessMeshLane *lane, TessMeshOperation *operation, int64_t number, int32_t *done) {
    const TessEngine *engine = &mesh->engine;
    int32_t status;
    if (!lane->native_open) {
        status = engine->native(engine->state, lane->group, &operation->task.collective, &lane->native);
        if (status != TESS_OK) return tess_mesh_fail_of_engine(mesh, status, number, -1);
        lane->native_open = 1;
    }
    status = engine->test(engine->state, &lane->native, done);
    if (status != TESS_OK) return tess_mesh_fail_of_engine(mesh, status, number, -1);
    if (*done) lane->native_open = 0;
    return TESS_OK;
}

/* Goes on with a lane as far as it can without waiting. */
int32_t tess_mesh_progress_lane(TessMesh *mesh, TessMeshLane *lane) {
    while (lane->count > 0) {
        const int64_t number = lane->queue[lane->first];
        TessMeshOperation *operation = tess_mesh_operation_of(mesh, number);
        if (operation->task.collective.flags & TESS_COLLECTIVE_ANY_ORDER && mesh->engine.native != NULL) {
            int32_t done = 0;
            const int32_t status = progress_native(mesh, lane, operation, number, &done);
            if (status != TESS_OK || !done) return status;
            finish(mesh, lane, operation);
            continue;
        }
        if (!lane->active) {
            if (!prepare(lane, operation, 0)) return tess_mesh_fail(mesh, TESS_MESH_MEMORY, number, mesh->engine.rank);
            lane->active = 1;
        }
        while (lane->at < lane->steps.count) {
            const TessStep *step = &lane->steps.step[lane->at];
            int32_t status = TESS_OK;
            if (step->kind == TESS_STEP_SEND || step->kind == TESS_STEP_RECEIVE) {
                status = begin_message(mesh, lane, operation, step);
                if (status != TESS_OK)
                    return tess_mesh_fail_of_engine(mesh, status, number, tess_mesh_global(&mesh->group[lane->group], step->peer));
            } else if (step->kind == TESS_STEP_WAIT) {
                TessMeshSlot *slot = &lane->slots[step->slot];
                int32_t done;
                status = test_message(mesh, lane, slot, &done);
                if (status != TESS_OK)
                    return tess_mesh_fail_of_engine(mesh, status, number, tess_mesh_global(&mesh->group[lane->group], slot->peer));
                if (!done) return TESS_OK;
            } else {
                compute(lane, operation, step);
            }
            ++lane->at;
        }
        if (lane->block_end < operation->task.collective.count) {
            if (!prepare(lane, operation, lane->block_end)) return tess_mesh_fail(mesh, TESS_MESH_MEMORY, number, mesh->engine.rank);
        } else {
            finish(mesh, lane, operation);
        }
    }
    return TESS_OK;
}

int32_t tess_mesh_progress(TessMesh *mesh) {
    TessMeshLane *lane;
    for (lane = mesh->lanes; lane != NULL; lane = lane->next) {
        const int32_t status = tess_mesh_progress_lane(mesh, lane);
        if (status != TESS_OK) return status;
    }
    return TESS_OK;
}

/* The lowest rank whose message this lane waits for; where it waits for none, the lowest one that does not take its own. */
int32_t tess_mesh_silent(const TessMesh *mesh, const TessMeshLane *lane) {
    const TessMeshGroup *group = &mesh->group[lane->group];
    int32_t i, receives, lowest = -1;
    if (!lane->active) return -1;
    for (receives = 1; receives >= 0 && lowest < 0; --receives) {
        for (i = 0; i < lane->steps.slots; ++i) {
            const TessMeshSlot *slot = &lane->slots[i];
            if ((slot->head_open || slot->body_open) && slot->receives == receives) {
                const int32_t rank = tess_mesh_global(group, slot->peer);
                if (lowest < 0 || rank < lowest) lowest = rank;
            }
        }
    }
    return lowest;
}
