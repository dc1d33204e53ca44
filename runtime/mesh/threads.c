/* Ranks that are threads of one process. A message is posted in a ring, and who receives it copies it: straight from the sender's memory,
 * or from the ring where it is small, so that its sender need not wait. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/engine.h"

enum { CELLS = 16, SMALL = 128, TAGS = 4, CACHE_LINE = 64 };

/* What a cell says. The sender posts and empties it, the receiver takes it; a sender that gives up cancels it. */
enum { EMPTY, POSTED, TAKEN, DONE, CANCELLED };

typedef struct Cell {
    uint32_t state, small; /* small: the bytes are in the cell */
    uint64_t bytes;
    const void *data;
    unsigned char held[SMALL];
} Cell;

/* The messages of one group, pair and tag, in order. */
typedef struct Ring {
    struct Ring *next; /* of the same pair */
    int32_t group, tag;
    uint64_t tickets, posted;                                    /* the sender's: messages that were to be sent, and that were posted */
    __attribute__((aligned(CACHE_LINE))) uint64_t wanted, taken; /* the receiver's: messages that were asked for, and that were taken */
    uint64_t lost; /* the receiver's: one of its messages will not come, so none behind it will */
    __attribute__((aligned(CACHE_LINE))) Cell cells[CELLS];
} Ring;

struct TessThreads {
    int32_t ranks;
    uint32_t holds;     /* engines that are open, and one of who made it */
    int32_t aborted;    /* the culprit + 2 once a rank gave up */
    unsigned char *has; /* by rank: 1 while it has its engine, 2 after it closed it */
    Ring **rings;       /* by sender * ranks + receiver: a list that only grows */
};

/* What an engine keeps in a request. */
typedef struct Message {
    struct Message *next; /* of those that are not done */
    Ring *ring;
    void *data;
    uint64_t bytes, ticket;
    int32_t peer; /* among all ranks */
    uint8_t receives, posted, done;
    int32_t status;
} Message;

typedef char message_fits_request[sizeof(Message) <= sizeof(TessRequest) ? 1 : -1];

typedef struct Group {
    int32_t n, *ranks; /* null for group 0 */
    Ring **rings;      /* by (peer * TAGS + tag) * 2 + (1 where it receives); found once */
} Group;

typedef struct Rank {
    TessThreads *shared;
    int32_t rank, groups, gave_up;
    Group *group;
    Message *open; /* in the order in which they were begun */
    Message **end;
} Rank;

static void release(TessThreads *shared) {
    int32_t i;
    if (__atomic_sub_fetch(&shared->holds, 1u, __ATOMIC_ACQ_REL) != 0) return;
    for (i = 0; i < shared->ranks * shared->ranks; ++i) {
        while (shared->rings[i] != NULL) {
            Ring *ring = shared->rings[i];
            shared->rings[i] = ring->next;
            free(ring);
        }
    }
    free(shared->rings);
    free(shared->has);
    free(shared);
}

int32_t tess_threads_create(int32_t ranks, TessThreads **threads) {
    TessThreads *shared;
    if (threads == NULL) return TESS_NULL_ARGUMENT;
    *threads = NULL;
    if (ranks < 1 || ranks > TESS_THREADS_MAX_RANKS) return TESS_MESH_RANK;
    shared = calloc(1, sizeof *shared);
    if (shared == NULL) return TESS_MESH_MEMORY;
    shared->ranks = ranks;
    shared->holds = 1;
    shared->has = calloc((size_t)ranks, 1);
    shared->rings = calloc((size_t)ranks * (size_t)ranks, sizeof(Ring *));
    if (shared->has == NULL || shared->rings == NULL) {
        free(shared->has);
        free(shared->rings);
        free(shared);
        return TESS_MESH_MEMORY;
    }
    *threads = shared;
    return TESS_OK;
}

void tess_threads_destroy(TessThreads *threads) {
    if (threads != NULL) release(threads);
}

/* The ring of a pair, which either of both makes. Null without memory. */
static Ring *ring_of(TessThreads *shared, int32_t from, int32_t to, int32_t group, int32_t tag) {
    Ring **list = &shared->rings[from * shared->ranks + to];
    Ring *head = __atomic_load_n(list, __ATOMIC_ACQUIRE), *ring, *made = NULL;
    for (;;) {
        for (ring = head; ring != NULL; ring = ring->next) {
            if (ring->group == group && ring->tag == tag) {
                free(made);
                return ring;
            }
        }
        if (made == NULL) {
            void *memory = NULL;
            if (posix_memalign(&memory, CACHE_LINE, sizeof(Ring)) != 0) return NULL;
            made = memory;
            memset(made, 0, sizeof *made);
            made->group = group;
            made->tag = tag;
        }
        made->next = head;
        if (__atomic_compare_exchange_n(list, &head, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    }
}

/* Those of a group are found once: a group is made for as many peers and tags as there are. */
static int make_group(Rank *self, const int32_t *ranks, int32_t n) {
    Group *grown = realloc(self->group, sizeof(Group) * (size_t)(self->groups + 1));
    Group *group;
    if (grown == NULL) return 0;
    self->group = grown;
    group = &grown[self->groups];
    group->n = n;
    group->ranks = NULL;
    group->rings = NULL;
    if (n > 0) {
        group->rings = calloc((size_t)n * TAGS * 2, sizeof(Ring *));
        if (ranks != NULL) group->ranks = malloc(sizeof(int32_t) * (size_t)n);
        if (group->rings == NULL || (ranks != NULL && group->ranks == NULL)) {
            free(group->rings);
            free(group->ranks);
            return 0;
        }
        if (ranks != NULL) memcpy(group->ranks, ranks, sizeof(int32_t) * (size_t)n);
    }
    ++self->groups;
    return 1;
}

static int32_t name_group(void *state, const int32_t *ranks, int32_t n, int32_t *group) {
    Rank *self = state;
    if (!make_group(self, ranks, n)) return TESS_MESH_MEMORY;
    *group = self->groups - 1;
    return TESS_OK;
}

/* The rank that gave up, or that closed its engine, as a status. */
static int32_t lost(const Rank *self, int32_t peer) {
    const int32_t aborted = __atomic_load_n(&self->shared->aborted, __ATOMIC_ACQUIRE);
    if (aborted != 0) return tess_engine_status(TESS_MESH_LOST, aborted - 2);
    if (__atomic_load_n(&self->shared->has[peer], __ATOMIC_ACQUIRE) == 2) return tess_engine_status(TESS_MESH_LOST, peer);
    return TESS_OK;
}

static void post(Message *message) {
    Ring *ring = message->ring;
    Cell *cell = &ring->cells[ring->posted % CELLS];
    if (ring->posted != message->ticket || __atomic_load_n(&cell->state, __ATOMIC_ACQUIRE) != EMPTY) return;
    ++ring->posted;
    cell->bytes = message->bytes;
    cell->small = message->bytes <= SMALL;
    cell->data = message->data;
    if (cell->small) memcpy(cell->held, message->data, message->bytes);
    __atomic_store_n(&cell->state, POSTED, __ATOMIC_RELEASE);
    message->posted = 1;
    message->done = cell->small != 0;
}

static void sent(Message *message) {
    Cell *cell = &message->ring->cells[message->ticket % CELLS];
    if (__atomic_load_n(&cell->state, __ATOMIC_ACQUIRE) != DONE) return;
    __atomic_store_n(&cell->state, EMPTY, __ATOMIC_RELEASE);
    message->done = 1;
}

static void take(Message *message) {
    Ring *ring = message->ring;
    Cell *cell = &ring->cells[ring->taken % CELLS];
    uint32_t posted = POSTED;
    if (ring->taken != message->ticket || __atomic_load_n(&cell->state, __ATOMIC_RELAXED) != POSTED) return;
    if (!__atomic_compare_exchange_n(&cell->state, &posted, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    ++ring->taken;
    message->done = 1;
    if (cell->bytes == message->bytes) memcpy(message->data, cell->small ? cell->held : cell->data, message->bytes);
    else message->status = tess_engine_status(TESS_MESH_ORDER, message->peer);
    __atomic_store_n(&cell->state, cell->small ? EMPTY : DONE, __ATOMIC_RELEASE);
}

/* After it, nobody reads what this message would have sent. */
static void withdraw(Message *message) {
    Cell *cell;
    uint32_t posted = POSTED;
    if (message->receives || !message->posted || message->done) return;
    cell = &message->ring->cells[message->ticket % CELLS];
    if (__atomic_compare_exchange_n(&cell->state, &posted, CANCELLED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
    while (__atomic_load_n(&cell->state, __ATOMIC_ACQUIRE) == TAKEN) sched_yield(); /* it is being copied */
}

static void step(Message *message) {
    if (message->receives) take(message);
    else if (!message->posted) post(message);
    else sent(message);
}

static void advance(const Rank *self, Message *message) {
    int32_t status;
    step(message);
    if (message->done) return;
    status = lost(self, message->peer);
    if (status == TESS_OK) return;
    step(message); /* what a rank sent or took before it left */
    if (message->done) return;
    if (message->receives) {
        Ring *ring = message->ring;
        /* Those before it on the ring may be there since they were looked at. */
        if (ring->taken != message->ticket && !ring->lost) return;
        ring->lost = 1;
    }
    withdraw(message);
    message->status = status;
    message->done = 1;
}

static void progress(Rank *self) {
    Message **at = &self->open;
    while (*at != NULL) {
        Message *message = *at;
        advance(self, message);
        if (message->done) *at = message->next;
        else at = &message->next;
    }
    self->end = at;
}

static int32_t begin(Rank *self, int32_t number, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int receives,
                     TessRequest *request) {
    Message *message = (Message *)(void *)request;
    Group *group;
    Ring **ring;
    int32_t rank;
    if (number < 0 || number >= self->groups || tag >= TAGS) return TESS_MESH_GROUP;
    group = &self->group[number];
    if (peer < 0 || peer >= group->n) return TESS_MESH_RANK;
    rank = group->ranks != NULL ? group->ranks[peer] : peer;
    ring = &group->rings[((size_t)peer * TAGS + tag) * 2 + (size_t)receives];
    if (*ring == NULL) {
        *ring = receives ? ring_of(self->shared, rank, self->rank, number, (int32_t)tag)
                         : ring_of(self->shared, self->rank, rank, number, (int32_t)tag);
        if (*ring == NULL) return TESS_MESH_MEMORY;
    }
    message->next = NULL;
    message->ring = *ring;
    message->data = data;
    message->bytes = bytes;
    message->ticket = receives ? (*ring)->wanted++ : (*ring)->tickets++;
    message->peer = rank;
    message->receives = (uint8_t)receives;
    message->posted = message->done = 0;
    message->status = TESS_OK;
    advance(self, message);
    if (!message->done) {
        *self->end = message;
        self->end = &message->next;
    }
    return TESS_OK;
}

static int32_t send_message(void *state, int32_t group, int32_t to, uint32_t tag, const void *data, uint64_t bytes, TessRequest *request) {
    union {
        const void *read;
        void *any; /* never written */
    } address;
    address.read = data;
    return begin(state, group, to, tag, address.any, bytes, 0, request);
}

static int32_t receive_message(void *state, int32_t group, int32_t from, uint32_t tag, void *data, uint64_t bytes, TessRequest *request) {
    return begin(state, group, from, tag, data, bytes, 1, request);
}

static int32_t test_message(void *state, TessRequest *request, int32_t *done) {
    Message *message = (Message *)(void *)request;
    if (!message->done) progress(state);
    *done = message->done;
    return message->done ? message->status : TESS_OK;
}

static void withdraw_all(Rank *self) {
    Message *message;
    for (message = self->open; message != NULL; message = message->next) withdraw(message);
    self->open = NULL;
    self->end = &self->open;
}

static int32_t give_up(void *state, int32_t culprit) {
    Rank *self = state;
    int32_t none = 0;
    __atomic_compare_exchange_n(&self->shared->aborted, &none, (culprit < 0 ? self->rank : culprit) + 2, 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    withdraw_all(self);
    return TESS_OK;
}

static void close_rank(void *state) {
    Rank *self = state;
    int32_t i;
    withdraw_all(self);
    __atomic_store_n(&self->shared->has[self->rank], 2, __ATOMIC_RELEASE);
    for (i = 0; i < self->groups; ++i) {
        free(self->group[i].ranks);
        free(self->group[i].rings);
    }
    free(self->group);
    release(self->shared);
    free(self);
}

int32_t tess_threads_engine(TessThreads *threads, int32_t rank, TessEngine *engine) {
    Rank *self;
    unsigned char none = 0;
    if (threads == NULL || engine == NULL) return TESS_NULL_ARGUMENT;
    if (rank < 0 || rank >= threads->ranks) return TESS_MESH_RANK;
    self = calloc(1, sizeof *self);
    if (self == NULL) return TESS_MESH_MEMORY;
    self->shared = threads;
    self->rank = rank;
    self->end = &self->open;
    if (!make_group(self, NULL, threads->ranks)) {
        free(self->group);
        free(self);
        return TESS_MESH_MEMORY;
    }
    if (!__atomic_compare_exchange_n(&threads->has[rank], &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        free(self->group[0].rings);
        free(self->group);
        free(self);
        return TESS_MESH_RANK;
    }
    __atomic_add_fetch(&threads->holds, 1u, __ATOMIC_ACQ_REL);
    memset(engine, 0, sizeof *engine);
    engine->size = sizeof *engine;
    engine->flags = TESS_ENGINE_THREADS;
    engine->rank = rank;
    engine->ranks = threads->ranks;
    engine->name = "threads";
    engine->state = self;
    engine->group = name_group;
    engine->send = send_message;
    engine->receive = receive_message;
    engine->test = test_message;
    engine->abort = give_up;
    engine->close = close_rank;
    return TESS_OK;
}
