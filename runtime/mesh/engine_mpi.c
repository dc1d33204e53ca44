#include "runtime/mesh/engine_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 4 };

typedef struct Message {
    MPI_Request request;
    uint64_t bytes;
    int32_t peer, receives;
} Message;

typedef char message_fits_request[sizeof(Message) <= sizeof(TessRequest) ? 1 : -1];

typedef struct Group {
    int32_t n, *ranks; /* null for group 0 */
} Group;

typedef struct State {
    MPI_Comm world;
    Group *group;
    int32_t groups, largest_tag;
    int gave_up, ends_mpi;
} State;

static int make_group(State *state, const int32_t *ranks, int32_t n) {
    Group *grown = realloc(state->group, sizeof(Group) * (size_t)(state->groups + 1));
    Group *group;
    if (grown == NULL) return 0;
    state->group = grown;
    group = &grown[state->groups];
    group->n = n;
    group->ranks = NULL;
    if (ranks != NULL && n > 0) {
        group->ranks = malloc(sizeof(int32_t) * (size_t)n);
        if (group->ranks == NULL) return 0;
        memcpy(group->ranks, ranks, sizeof(int32_t) * (size_t)n);
    }
    ++state->groups;
    return 1;
}

static int32_t name_group(void *self, const int32_t *ranks, int32_t n, int32_t *group) {
    State *state = self;
    /* Each group has its own tags. */
    if (state->groups >= state->largest_tag / TAGS || !make_group(state, ranks, n)) return TESS_MESH_MEMORY;
    *group = state->groups - 1;
    return TESS_OK;
}

static int32_t begin(State *state, int32_t number, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int receives,
                     TessRequest *request) {
    Message *message = (Message *)(void *)request;
    const Group *group;
    int code;
    if (number < 0 || number >= state->groups || tag >= TAGS) return TESS_MESH_GROUP;
    group = &state->group[number];
    if (peer < 0 || peer >= group->n) return TESS_MESH_RANK;
    if (bytes > INT_MAX) return TESS_MESH_COUNT;
    message->peer = group->ranks != NULL ? group->ranks[peer] : peer;
    message->bytes = bytes;
    message->receives = receives;
    code = receives ? MPI_Irecv(data, (int)bytes, MPI_BYTE, message->peer, number * TAGS + (int)tag, state->world, &message->request)
                    : MPI_Isend(data, (int)bytes, MPI_BYTE, message->peer, number * TAGS + (int)tag, state->world, &message->request);
    return code == MPI_SUCCESS ? TESS_OK : tess_engine_status(TESS_MESH_LOST, message->peer);
}

static int32_t send_message(void *self, int32_t group, int32_t to, uint32_t tag, const void *data, uint64_t bytes, TessRequest *request) {
    union {
        const void *read;
        void *any; /* never written */
    } address;
    address.read = data;
    return begin(self, group, to, tag, address.any, bytes, 0, request);
}

static int32_t receive_message(void *self, int32_t group, int32_t from, uint32_t tag, void *data, uint64_t bytes, TessRequest *request) {
    return begin(self, group, from, tag, data, bytes, 1, request);
}

static int32_t test_message(void *self, TessRequest *request, int32_t *done) {
    Message *message = (Message *)(void *)request;
    MPI_Status status;
    int flag = 0, received = 0, code = MPI_Test(&message->request, &flag, &status), kind = MPI_SUCCESS;
    (void)self;
    *done = flag;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &kind);
        return tess_engine_status(kind == MPI_ERR_TRUNCATE ? TESS_MESH_ORDER : TESS_MESH_LOST, message->peer);
    }
    if (!flag || !message->receives) return TESS_OK;
    MPI_Get_count(&status, MPI_BYTE, &received);
    return (uint64_t)received == message->bytes ? TESS_OK : tess_engine_status(TESS_MESH_ORDER, message->peer);
}

/* MPI has no way to tell other ranks that does not end them. */
static int32_t give_up(void *self, int32_t culprit) {
    State *state = self;
    (void)culprit;
    state->gave_up = 1;
    return TESS_OK;
}

static void close_rank(void *self) {
    State *state = self;
    int32_t i;
    if (!state->gave_up) {
        MPI_Comm_free(&state->world);
        if (state->ends_mpi) MPI_Finalize();
    }
    for (i = 0; i < state->groups; ++i) free(state->group[i].ranks);
    free(state->group);
    free(state);
}

int32_t tess_mpi_engine(TessEngine *engine) {
    State *state;
    int here = 0, over = 0, level = 0, rank = 0, ranks = 0, flag = 0, *largest = NULL;
    if (engine == NULL) return TESS_NULL_ARGUMENT;
    if (MPI_Finalized(&over) != MPI_SUCCESS || over || MPI_Initialized(&here) != MPI_SUCCESS) return TESS_MESH_ENGINE;
    state = calloc(1, sizeof *state);
    if (state == NULL) return TESS_MESH_MEMORY;
    if (!here && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
        free(state);
        return TESS_MESH_ENGINE;
    }
    state->ends_mpi = !here;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &state->world) != MPI_SUCCESS) {
        free(state);
        return TESS_MESH_ENGINE;
    }
    MPI_Comm_set_errhandler(state->world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(state->world, &rank);
    MPI_Comm_size(state->world, &ranks);
    MPI_Comm_get_attr(state->world, MPI_TAG_UB, &largest, &flag);
    state->largest_tag = flag ? *largest : 32767;
    if (ranks > TESS_MESH_MAX_RANKS || !make_group(state, NULL, ranks)) {
        const int32_t status = ranks > TESS_MESH_MAX_RANKS ? TESS_MESH_RANK : TESS_MESH_MEMORY;
        close_rank(state);
        return status;
    }
    memset(engine, 0, sizeof *engine);
    engine->size = sizeof *engine;
    engine->flags = TESS_ENGINE_GOODBYE;
    engine->rank = rank;
    engine->ranks = ranks;
    engine->name = "mpi";
    engine->state = state;
    engine->group = name_group;
    engine->send = send_message;
    engine->receive = receive_message;
    engine->test = test_message;
    engine->abort = give_up;
    engine->close = close_rank;
    return TESS_OK;
}
