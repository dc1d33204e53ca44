/* The tables of all ranks together: their messages are run without an engine. A send is done when its receive was posted and the other way
 * round, so nothing is held in between; if some rank cannot go on then, some engine may hang too. What a rank can do next never depends on
 * what others did in between, so one order stands for all. */
#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/inside.h"
#include "runtime/mesh/table.h"

/* Bytes of a row that stand for more: enough to be cut as many are. */
enum { ENOUGH = 32 << 10 };

/* A message that was posted. */
typedef struct Post {
    uint64_t hash, total, bytes; /* hash 0: without a head */
} Post;

/* Messages of one kind from one rank to another, as each end posts them. */
typedef struct Channel {
    struct Channel *next;
    int32_t axis, pair, from, to; /* among all ranks */
    Post *post[2];                /* sent, received */
    int64_t count[2], capacity[2];
} Channel;

typedef struct Lane {
    struct Lane *next;
    int32_t axis, peer, receives; /* peer -1: collectives */
    int32_t *queue, first, count; /* operations */
    TessSteps steps;
    int64_t at;
    Channel **slot_channel; /* by slot */
    int64_t *slot_number;
    int32_t slots, active;
} Lane;

typedef struct Rank {
    TessProgramParts parts;
    Lane *lanes;
    char *done; /* by operation */
    int32_t at;
} Rank;

typedef struct World {
    Rank *rank;
    int32_t ranks, buckets;
    Channel **channel; /* by hash */
    TessFault *fault;
} World;

/* Rank r's number along an axis, how many there are, and who another one is. */
static void along(const TessProgramHeader *header, int32_t ranks, int32_t axis, int32_t rank, int32_t *r, int32_t *n, int32_t *step) {
    int32_t a, inner = 1;
    *r = rank;
    *n = ranks;
    *step = 1;
    if (axis < 0) return;
    for (a = header->axes - 1; a > axis; --a) inner *= header->extents[a];
    *n = header->extents[axis];
    *r = rank / inner % *n;
    *step = inner;
}

static Channel *channel_of(World *world, int32_t axis, int32_t pair, int32_t from, int32_t to) {
    const uint32_t hash = ((uint32_t)from * 31u + (uint32_t)to) * 31u + (uint32_t)(axis + 1) * 2u + (uint32_t)pair;
    Channel **list = &world->channel[hash % (uint32_t)world->buckets], *channel;
    for (channel = *list; channel != NULL; channel = channel->next)
        if (channel->axis == axis && channel->pair == pair && channel->from == from && channel->to == to) return channel;
    channel = calloc(1, sizeof *channel);
    if (channel == NULL) return NULL;
    channel->axis = axis;
    channel->pair = pair;
    channel->from = from;
    channel->to = to;
    channel->next = *list;
    *list = channel;
    return channel;
}

static int32_t no_memory(const World *world) { return tess_mesh_refuse_plainly(world->fault, TESS_MESH_MEMORY); }

/* Posts one end of a message and compares it with the other one. */
static int32_t post(const World *world, Channel *channel, int end, Post message, int32_t operation, int32_t rank) {
    const int64_t number = channel->count[end];
    if (number == channel->capacity[end]) {
        const int64_t capacity = number == 0 ? 8 : 2 * number;
        Post *grown = realloc(channel->post[end], sizeof(Post) * (size_t)capacity);
        if (grown == NULL) return no_memory(world);
        channel->post[end] = grown;
        channel->capacity[end] = capacity;
    }
    channel->post[end][channel->count[end]++] = message;
    if (number < channel->count[!end]) {
        const Post *other = &channel->post[!end][number];
        if (other->hash != message.hash || other->total != message.total || other->bytes != message.bytes)
            return tess_mesh_refuse(world->fault, TESS_PROGRAM_ORDER, -1, operation, rank);
    }
    return TESS_OK;
}

static int32_t task_of(const World *world, int32_t rank, int32_t i, TessTask *task, int32_t *step) {
    const Rank *self = &world->rank[rank];
    const TessProgramOperation *operation = &self->parts.operations[i];
    const TessProgramCollective *said = &self->parts.collectives[operation->index];
    const TessCollective collective = tess_program_collective(said);
    int32_t r, n, status;
    along(self->parts.header, world->ranks, said->axis, rank, &r, &n, step);
    status = tess_mesh_check_fields(&collective, r, n, task, world->fault);
    if (status != TESS_OK) return status;
    task->collective.group = said->axis;
    if (!tess_program_fits(&self->parts, operation, task))
        return tess_mesh_refuse(world->fault, TESS_PROGRAM_TENSOR, -1, i, self->parts.arguments[operation->first].tensor);
    return TESS_OK;
}

static int32_t start(const World *world, int32_t rank, int32_t i) {
    Rank *self = &world->rank[rank];
    const TessProgramCollective *said = &self->parts.collectives[self->parts.operations[i].index];
    const int32_t peer = tess_mesh_is_pair(said->kind) ? said->peer : -1, receives = said->kind == TESS_RECEIVE;
    Lane *lane;
    for (lane = self->lanes; lane != NULL; lane = lane->next)
        if (lane->axis == said->axis && lane->peer == peer && (peer < 0 || lane->receives == receives)) break;
    if (lane == NULL) {
        lane = calloc(1, sizeof *lane);
        if (lane == NULL) return no_memory(world);
        lane->axis = said->axis;
        lane->peer = peer;
        lane->receives = receives;
        lane->next = self->lanes;
        self->lanes = lane;
        lane->queue = malloc(sizeof(int32_t) * (size_t)self->parts.header->operations.count);
        if (lane->queue == NULL) return no_memory(world);
    }
    lane->queue[lane->count++] = i;
    return TESS_OK;
}

static int32_t prepare(const World *world, Lane *lane, const TessTask *task) {
    const int64_t most = ENOUGH / (int64_t)task->element, count = task->collective.count;
    lane->steps.count = 0;
    lane->at = 0;
    lane->active = 1;
    if (count == 0) return TESS_OK;
    if (!tess_mesh_make_steps(task, 0, count < most ? count : most, &lane->steps)) return no_memory(world);
    if (lane->steps.slots > lane->slots) {
        free(lane->slot_channel);
        free(lane->slot_number);
        lane->slots = 0;
        lane->slot_channel = malloc(sizeof(Channel *) * (size_t)lane->steps.slots);
        lane->slot_number = malloc(sizeof(int64_t) * (size_t)lane->steps.slots);
        if (lane->slot_channel == NULL || lane->slot_number == NULL) return no_memory(world);
        lane->slots = lane->steps.slots;
    }
    return TESS_OK;
}

/* Goes on with a lane as far as it can. */
static int32_t advance(World *world, int32_t rank, Lane *lane, int *moved) {
    Rank *self = &world->rank[rank];
    while (lane->first < lane->count) {
        const int32_t i = lane->queue[lane->first];
        TessTask task;
        int32_t step, status = task_of(world, rank, i, &task, &step);
        uint64_t hash;
        if (status == TESS_OK && !lane->active) status = prepare(world, lane, &task);
        if (status != TESS_OK) return status;
        hash = tess_mesh_hash_of(self->parts.header->hash, &task) | 1;
        for (; lane->at < lane->steps.count; ++lane->at, *moved = 1) {
            const TessStep *now = &lane->steps.step[lane->at];
            if (now->kind == TESS_STEP_SEND || now->kind == TESS_STEP_RECEIVE) {
                const int end = now->kind == TESS_STEP_RECEIVE, pair = lane->peer >= 0;
                const int32_t peer = rank + (now->peer - task.r) * step;
                const Post message = {now->first ? hash : 0, now->first ? now->total : 0, now->bytes};
                Channel *channel = channel_of(world, lane->axis, pair, end ? peer : rank, end ? rank : peer);
                if (channel == NULL) return no_memory(world);
                lane->slot_channel[now->slot] = channel;
                lane->slot_number[now->slot] = channel->count[end] * 2 + end;
                status = post(world, channel, end, message, i, rank);
                if (status != TESS_OK) return status;
            } else if (now->kind == TESS_STEP_WAIT) {
                const int64_t number = lane->slot_number[now->slot];
                if (lane->slot_channel[now->slot]->count[!(number & 1)] <= number / 2) return TESS_OK;
            }
        }
        self->done[i] = 1;
        lane->active = 0;
        ++lane->first;
        *moved = 1;
    }
    return TESS_OK;
}

static int32_t advance_rank(World *world, int32_t rank, int *moved) {
    Rank *self = &world->rank[rank];
    const TessProgramParts *parts = &self->parts;
    Lane *lane;
    int32_t status;
    do {
        const int32_t before = self->at;
        for (lane = self->lanes; lane != NULL; lane = lane->next) {
            status = advance(world, rank, lane, moved);
            if (status != TESS_OK) return status;
        }
        for (; self->at < parts->header->operations.count; ++self->at) {
            const TessProgramOperation *operation = &parts->operations[self->at];
            if (operation->kind == TESS_PROGRAM_WAIT && !self->done[operation->index]) break;
            if (operation->kind != TESS_PROGRAM_START) continue;
            status = start(world, rank, self->at);
            if (status != TESS_OK) return status;
        }
        if (self->at == before) return TESS_OK;
        *moved = 1;
    } while (1);
}

/* A message that only one end knows of. */
static const Channel *unmatched(const World *world) {
    int32_t i;
    const Channel *channel;
    for (i = 0; i < world->buckets; ++i)
        for (channel = world->channel[i]; channel != NULL; channel = channel->next)
            if (channel->count[0] != channel->count[1]) return channel;
    return NULL;
}

static int32_t run(World *world) {
    int32_t rank, status;
    int moved;
    do {
        moved = 0;
        for (rank = 0; rank < world->ranks; ++rank) {
            status = advance_rank(world, rank, &moved);
            if (status != TESS_OK) return status;
        }
    } while (moved);
    for (rank = 0; rank < world->ranks; ++rank)
        if (world->rank[rank].at < world->rank[rank].parts.header->operations.count)
            return tess_mesh_refuse(world->fault, TESS_PROGRAM_DEADLOCK, -1, world->rank[rank].at, rank);
    if (unmatched(world) != NULL) return tess_mesh_refuse(world->fault, TESS_PROGRAM_ORDER, -1, TESS_NO_NUMBER, unmatched(world)->from);
    return TESS_OK;
}

static void free_world(World *world) {
    int32_t i;
    for (i = 0; world->rank != NULL && i < world->ranks; ++i) {
        while (world->rank[i].lanes != NULL) {
            Lane *lane = world->rank[i].lanes;
            world->rank[i].lanes = lane->next;
            tess_mesh_free_steps(&lane->steps);
            free(lane->queue);
            free(lane->slot_channel);
            free(lane->slot_number);
            free(lane);
        }
        free(world->rank[i].done);
    }
    for (i = 0; world->channel != NULL && i < world->buckets; ++i) {
        while (world->channel[i] != NULL) {
            Channel *channel = world->channel[i];
            world->channel[i] = channel->next;
            free(channel->post[0]);
            free(channel->post[1]);
            free(channel);
        }
    }
    free(world->rank);
    free(world->channel);
}

static int same_mesh(const TessProgramHeader *a, const TessProgramHeader *b) {
    return a->hash == b->hash && a->axes == b->axes && memcmp(a->extents, b->extents, sizeof a->extents) == 0;
}

int32_t tess_program_verify(const TessProgramTable *tables, int32_t count, int32_t ranks, TessFault *fault) {
    World world = {0};
    int32_t i, status = TESS_OK;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (tables == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    if (ranks < 1 || ranks > TESS_MESH_MAX_RANKS || (count != 1 && count != ranks))
        return tess_mesh_refuse(fault, TESS_MESH_RANK, -1, ranks, count);
    for (i = 0; i < count; ++i) {
        status = tess_program_check(&tables[i], fault);
        if (status != TESS_OK) return status;
    }
    world.fault = fault;
    world.ranks = ranks;
    world.buckets = 64 * ranks;
    world.rank = calloc((size_t)ranks, sizeof(Rank));
    world.channel = calloc((size_t)world.buckets, sizeof(Channel *));
    if (world.rank == NULL || world.channel == NULL) status = no_memory(&world);
    for (i = 0; i < ranks && status == TESS_OK; ++i) {
        Rank *rank = &world.rank[i];
        status = tess_program_open(&tables[count == 1 ? 0 : i], &rank->parts, fault);
        if (status != TESS_OK) break;
        if (!tess_program_fits_mesh(rank->parts.header, i, ranks) || !same_mesh(rank->parts.header, world.rank[0].parts.header))
            status = tess_mesh_refuse(fault, TESS_PROGRAM_MESH, -1, ranks, i);
        rank->done = calloc((size_t)rank->parts.header->operations.count + 1, 1);
        if (status == TESS_OK && rank->done == NULL) status = no_memory(&world);
    }
    if (status == TESS_OK) status = run(&world);
    free_world(&world);
    return status;
}
