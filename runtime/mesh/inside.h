/* What a mesh is made of, for the sources of this room. */
#ifndef TESSERA_MESH_INSIDE_H
#define TESSERA_MESH_INSIDE_H

#include "runtime/mesh/mesh.h"
#include "runtime/mesh/steps.h"

/* A head, and behind it the data where they are few. */
enum { TESS_HEAD_BYTES = 16, TESS_ENVELOPE = 128, TESS_INLINE = TESS_ENVELOPE - TESS_HEAD_BYTES };

typedef struct TessMeshHead {
    uint64_t hash;   /* of program and collective */
    uint32_t number; /* of the message with a head, on its channel */
    uint32_t bytes;  /* that follow on the channel, for this collective: their low bits */
} TessMeshHead;

/* A message that was begun and not waited for. */
typedef struct TessMeshSlot {
    TessRequest head, body;
    unsigned char envelope[TESS_ENVELOPE];
    TessMeshHead expected; /* of a receive with a head */
    void *to;              /* where data that come with the head go */
    uint64_t bytes;
    int32_t peer, receives, with_head, head_open, body_open;
} TessMeshSlot;

/* Operations that run one after the other: the collectives of a group, or what one rank sends to another or receives from it. */
typedef struct TessMeshLane {
    struct TessMeshLane *next;
    int32_t group, peer, receives; /* peer -1: collectives */
    int64_t *queue;                /* numbers of operations: [first, first + count) of a ring */
    int64_t first, count, capacity;
    int active; /* the first of the queue has its steps */
    TessSteps steps;
    int64_t at, block_end; /* the step that is next; the end of the elements that the steps handle */
    TessMeshSlot *slots;
    int32_t slot_capacity;
    unsigned char *scratch;
    uint64_t scratch_bytes;
    TessRequest native;
    int native_open;
} TessMeshLane;

typedef struct TessMeshOperation {
    TessTask task;
    uint64_t hash;
    TessMeshLane *lane;
    int done;
} TessMeshOperation;

typedef struct TessMeshGroup {
    int32_t n, r, *ranks; /* null for group 0; r -1: this rank is not in it */
    uint32_t *numbers;    /* of heads, by peer * 4 + (2 where between pairs) + (1 where received) */
    TessMeshLane *collectives;
} TessMeshGroup;

struct TessMesh {
    TessEngine engine;
    uint64_t program, timeout;
    int spins;
    TessMeshGroup *group;
    int32_t groups;
    TessMeshLane *lanes;
    TessMeshOperation *operation; /* [first, end) in a ring */
    int64_t first, end, capacity;
    TessFault broken; /* kind 0 while it is whole */
    TessMeshStatistics statistics;
};

/* ---- refusals and failures (refusal.c) */

/* Fills in the fault and gives the status. */
int32_t tess_mesh_refuse(TessFault *fault, int32_t kind, int32_t argument, int64_t expected, int64_t got);
int32_t tess_mesh_refuse_plainly(TessFault *fault, int32_t kind);
static inline int tess_mesh_bad_fault(const TessFault *fault) { return fault != NULL && fault->size < sizeof *fault; }

/* Ends the mesh for good, and gives the kind. `rank` is among all ranks, or -1. */
int32_t tess_mesh_fail(TessMesh *mesh, int32_t kind, int64_t operation, int32_t rank);

/* The same for what an engine said; `rank` is whom it spoke of where it does not say. */
int32_t tess_mesh_fail_of_engine(TessMesh *mesh, int32_t status, int64_t operation, int32_t rank);

/* What a call says that has just broken the mesh, or finds it broken. */
int32_t tess_mesh_say_broken(const TessMesh *mesh, int32_t kind, TessFault *fault);

/* ---- groups and operations */

/* Null where there is no such group or this rank is not in it. */
static inline const TessMeshGroup *tess_mesh_group_of(const TessMesh *mesh, int32_t group) {
    if (mesh == NULL || group < 0 || group >= mesh->groups || mesh->group[group].r < 0) return NULL;
    return &mesh->group[group];
}

/* A rank of a group, among all. */
static inline int32_t tess_mesh_global(const TessMeshGroup *group, int32_t peer) {
    return group->ranks != NULL ? group->ranks[peer] : peer;
}

static inline TessMeshOperation *tess_mesh_operation_of(const TessMesh *mesh, int64_t number) {
    return &mesh->operation[number % mesh->capacity];
}

static inline int tess_mesh_is_done(const TessMesh *mesh, int64_t number) {
    return number < mesh->first || tess_mesh_operation_of(mesh, number)->done;
}

static inline int tess_mesh_is_pair(int32_t kind) { return kind == TESS_SEND || kind == TESS_RECEIVE; }

/* ---- what is asked for (check.c) */

/* The same without looking at memory, for rank r of n. */
int32_t tess_mesh_check_fields(const TessCollective *asked, int32_t r, int32_t n, TessTask *task, TessFault *fault);

/* Rows of `count` elements that the input and the result have. */
void tess_mesh_rows_of(const TessTask *task, int64_t *input, int64_t *result);

/* Starts a collective of a program with this hash. */
int32_t tess_mesh_start_in(TessMesh *mesh, uint64_t program, const TessCollective *collective, int64_t *operation, TessFault *fault);

/* Fills in the task of a collective that can be carried out. */
int32_t tess_mesh_check(const TessMesh *mesh, const TessCollective *asked, TessTask *task, TessFault *fault);

/* A hash of a hash and a word. */
uint64_t tess_mesh_mix(uint64_t hash, uint64_t word);

/* What both ends of a message must agree on. A send and its receive differ in kind and peer. */
uint64_t tess_mesh_hash_of(uint64_t program, const TessTask *task);

/* ---- carrying out (lanes.c) */

/* The lane of a group's collectives (peer -1) or of what goes to or comes from a peer. Null without memory. */
TessMeshLane *tess_mesh_lane_of(TessMesh *mesh, int32_t group, int32_t peer, int32_t receives);

/* Room for one more operation. 0 without memory. */
int tess_mesh_grow_operations(TessMesh *mesh);
int tess_mesh_grow_queue(TessMeshLane *lane);

/* Go on as far as they can without waiting. A status other than TESS_OK has broken the mesh. */
int32_t tess_mesh_progress_lane(TessMesh *mesh, TessMeshLane *lane);
int32_t tess_mesh_progress(TessMesh *mesh);

/* The lowest rank whose message this lane waits for; where it waits for none, the lowest one that does not take its own; or -1. */
int32_t tess_mesh_silent(const TessMesh *mesh, const TessMeshLane *lane);

#endif
