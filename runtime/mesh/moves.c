#include "runtime/mesh/steps.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/reduce.h"

enum { LARGEST = 1 << 20 }; /* bytes of a message without a fold, where others wait to pass it on */

#define BLOCK (INT64_C(64) << 20) /* bytes that one list handles */

/* ---- what only moves */

static void all_to_all(const TessTask *task, TessSpan block, TessSteps *steps) {
    const uint64_t row = (uint64_t)task->collective.count * task->element, bytes = block.end - block.begin;
    const int gather = task->collective.kind == TESS_ALL_GATHER;
    const int64_t since = steps->count;
    const uint64_t mine = (uint64_t)task->r * row + block.begin;
    int32_t t;
    for (t = 1; t < task->n; ++t) {
        const int32_t from = (task->r + task->n - t) % task->n;
        tess_list_receive(steps, from, tess_place(TESS_IN_RESULT, (uint64_t)from * row + block.begin), bytes);
    }
    for (t = 1; t < task->n; ++t) {
        const int32_t to = (task->r + t) % task->n;
        tess_list_send(steps, to, tess_place(TESS_IN_INPUT, (gather ? 0 : (uint64_t)to * row) + block.begin), bytes);
    }
    tess_list_copy(steps, tess_place(TESS_IN_RESULT, mine), tess_place(TESS_IN_INPUT, gather ? block.begin : mine), bytes);
    tess_list_wait_for_receives(steps, since);
    tess_list_wait_for_sends(steps, since);
}

static void shift(const TessTask *task, TessSpan block, TessSteps *steps) {
    const int64_t n = task->n, r = task->r, distance = task->collective.distance;
    const int open = (task->collective.flags & TESS_COLLECTIVE_OPEN) != 0;
    const int64_t to = open ? r + distance : (((r + distance) % n) + n) % n, from = open ? r - distance : (((r - distance) % n) + n) % n;
    const uint64_t bytes = block.end - block.begin;
    const TessPlace input = tess_place(TESS_IN_INPUT, block.begin), result = tess_place(TESS_IN_RESULT, block.begin);
    int32_t in = TESS_NO_SLOT, out = TESS_NO_SLOT;
    if (to == r) {
        tess_list_copy(steps, result, input, bytes);
        return;
    }
    if (from >= 0 && from < n) {
        in = tess_list_receive(steps, (int32_t)from, result, bytes);
    } else {
        TessStep *step = tess_list_add(steps, TESS_STEP_ZERO);
        step->to = result;
        step->bytes = bytes;
    }
    if (to >= 0 && to < n) out = tess_list_send(steps, (int32_t)to, input, bytes);
    tess_list_wait(steps, in);
    tess_list_wait(steps, out);
}

/* A binomial tree of ranks, in pieces, which are passed on as they come. */
static void broadcast(const TessTask *task, TessSpan block, TessSteps *steps) {
    const int32_t n = task->n, v = (task->r - task->collective.peer + n) % n;
    const uint64_t in = v == 0 ? TESS_IN_INPUT : TESS_IN_RESULT;
    const int64_t since = steps->count;
    int32_t mask = 1, child;
    uint64_t t;
    while (mask < n && (v & mask) == 0) mask *= 2;
    if (v != 0) {
        for (t = 0; t < tess_tiles(block, LARGEST); ++t) {
            const TessSpan part = tess_tile_at(block, LARGEST, t);
            tess_list_receive(steps, (v - mask + task->collective.peer) % n, tess_place(TESS_IN_RESULT, part.begin), part.end - part.begin);
        }
    }
    for (t = 0; t < tess_tiles(block, LARGEST); ++t) {
        const TessSpan part = tess_tile_at(block, LARGEST, t);
        if (v != 0) tess_list_wait(steps, steps->failed ? TESS_NO_SLOT : steps->step[since + (int64_t)t].slot);
        for (child = mask / 2; child > 0; child /= 2)
            if (v + child < n)
                tess_list_send(steps, (v + child + task->collective.peer) % n, tess_place(in, part.begin), part.end - part.begin);
    }
    if (v == 0)
        tess_list_copy(steps, tess_place(TESS_IN_RESULT, block.begin), tess_place(TESS_IN_INPUT, block.begin), block.end - block.begin);
    tess_list_wait_for_sends(steps, since);
}

static void point_to_point(const TessTask *task, TessSpan block, TessSteps *steps) {
    const uint64_t bytes = block.end - block.begin;
    if (task->collective.kind == TESS_SEND)
        tess_list_wait(steps, tess_list_send(steps, task->collective.peer, tess_place(TESS_IN_INPUT, block.begin), bytes));
    else tess_list_wait(steps, tess_list_receive(steps, task->collective.peer, tess_place(TESS_IN_RESULT, block.begin), bytes));
}

int64_t tess_mesh_block(const TessTask *task) {
    const uint64_t rows = task->collective.kind == TESS_REDUCE_SCATTER ? (uint64_t)task->n : 1;
    const int64_t elements = BLOCK / (int64_t)(task->element * rows) / 64 * 64;
    return elements < 64 ? 64 : elements;
}

int tess_mesh_make_steps(const TessTask *task, int64_t begin, int64_t end, TessSteps *steps) {
    const TessSpan block = {(uint64_t)begin * task->element, (uint64_t)end * task->element};
    int32_t *channel = realloc(steps->channel, sizeof(int32_t) * 2 * (size_t)task->n);
    if (channel == NULL) return 0;
    memset(channel, 0xff, sizeof(int32_t) * 2 * (size_t)task->n);
    steps->channel = channel;
    steps->count = 0;
    steps->slots = steps->frees = steps->failed = 0;
    steps->scratch = 0;
    switch (task->collective.kind) {
    case TESS_ALL_REDUCE: tess_mesh_all_reduce_steps(task, block, steps); break;
    case TESS_REDUCE_SCATTER: tess_mesh_reduce_scatter_steps(task, block, steps); break;
    case TESS_ALL_GATHER:
    case TESS_ALL_TO_ALL: all_to_all(task, block, steps); break;
    case TESS_SHIFT: shift(task, block, steps); break;
    case TESS_BROADCAST: broadcast(task, block, steps); break;
    case TESS_EXCLUSIVE_SCAN: tess_mesh_exclusive_scan_steps(task, block, steps); break;
    default: point_to_point(task, block, steps); break;
    }
    return !steps->failed;
}
