#include "runtime/mesh/list.h"

#include <stdlib.h>
#include <string.h>

TessStep *tess_list_add(TessSteps *steps, int32_t kind) {
    if (steps->count == steps->capacity) {
        const int64_t capacity = steps->capacity == 0 ? 64 : 2 * steps->capacity;
        TessStep *grown = steps->failed ? NULL : realloc(steps->step, sizeof(TessStep) * (size_t)capacity);
        if (grown == NULL) {
            steps->failed = 1;
            return &steps->nowhere;
        }
        steps->step = grown;
        steps->capacity = capacity;
    }
    memset(&steps->step[steps->count], 0, sizeof(TessStep));
    steps->step[steps->count].kind = kind;
    return &steps->step[steps->count++];
}

void tess_mesh_free_steps(TessSteps *steps) {
    free(steps->step);
    free(steps->channel);
    free(steps->free_slot);
    free(steps->nodes);
    memset(steps, 0, sizeof *steps);
}

/* ---- messages */

static int32_t message(TessSteps *steps, int32_t kind, int32_t peer, TessPlace place, uint64_t bytes) {
    int32_t *channel = &steps->channel[2 * peer + (kind == TESS_STEP_RECEIVE)];
    TessStep *step;
    if (bytes == 0) return TESS_NO_SLOT;
    step = tess_list_add(steps, kind);
    step->peer = peer;
    step->bytes = bytes;
    step->slot = steps->frees > 0 ? steps->free_slot[--steps->frees] : steps->slots++;
    if (kind == TESS_STEP_RECEIVE) step->to = place;
    else step->left = place;
    if (steps->failed) return TESS_NO_SLOT;
    if (*channel < 0) {
        step->first = 1;
        *channel = (int32_t)(steps->count - 1);
    }
    steps->step[*channel].total += bytes;
    return step->slot;
}

int32_t tess_list_send(TessSteps *steps, int32_t to, TessPlace from, uint64_t bytes) {
    return message(steps, TESS_STEP_SEND, to, from, bytes);
}

int32_t tess_list_receive(TessSteps *steps, int32_t from, TessPlace to, uint64_t bytes) {
    return message(steps, TESS_STEP_RECEIVE, from, to, bytes);
}

void tess_list_wait(TessSteps *steps, int32_t slot) {
    if (slot == TESS_NO_SLOT) return;
    tess_list_add(steps, TESS_STEP_WAIT)->slot = slot;
    if (steps->frees == steps->free_capacity) {
        const int32_t capacity = steps->free_capacity == 0 ? 16 : 2 * steps->free_capacity;
        int32_t *grown = realloc(steps->free_slot, sizeof(int32_t) * (size_t)capacity);
        if (grown == NULL) {
            steps->failed = 1;
            return;
        }
        steps->free_slot = grown;
        steps->free_capacity = capacity;
    }
    steps->free_slot[steps->frees++] = slot;
}

void tess_list_wait_for_sends(TessSteps *steps, int64_t since) {
    const int64_t end = steps->count;
    int64_t i;
    for (i = since; i < end; ++i)
        if (steps->step[i].kind == TESS_STEP_SEND) tess_list_wait(steps, steps->step[i].slot);
}

void tess_list_copy(TessSteps *steps, TessPlace to, TessPlace from, uint64_t bytes) {
    TessStep *step;
    if (to == from || bytes == 0) return;
    step = tess_list_add(steps, TESS_STEP_COPY);
    step->to = to;
    step->left = from;
    step->bytes = bytes;
}

void tess_list_fold(TessSteps *steps, TessPlace to, TessPlace left, TessPlace right, uint64_t bytes) {
    TessStep *step = tess_list_add(steps, TESS_STEP_FOLD);
    step->to = to;
    step->left = left;
    step->right = right;
    step->bytes = bytes;
}

/* ---- scratch: whatever is wanted, one after the other */

TessPlace tess_list_scratch(TessSteps *steps, uint64_t bytes) {
    const TessPlace place = tess_place(TESS_IN_SCRATCH, steps->scratch);
    steps->scratch += (bytes + 63) / 64 * 64;
    return place;
}

void tess_list_reach(TessSteps *steps, TessPlace place, uint64_t bytes) {
    const uint64_t end = tess_place_at(place) + (bytes + 63) / 64 * 64;
    if (end > steps->scratch) steps->scratch = end;
}

TessNode *tess_list_nodes(TessSteps *steps, int64_t count) {
    TessNode *grown;
    if (count <= steps->node_capacity) return steps->nodes;
    grown = realloc(steps->nodes, sizeof(TessNode) * (size_t)count);
    if (grown == NULL) {
        steps->failed = 1;
        return NULL;
    }
    steps->nodes = grown;
    steps->node_capacity = count;
    return grown;
}

void tess_list_wait_for_receives(TessSteps *steps, int64_t since) {
    const int64_t end = steps->count;
    int64_t i;
    for (i = since; i < end; ++i)
        if (steps->step[i].kind == TESS_STEP_RECEIVE) tess_list_wait(steps, steps->step[i].slot);
}
