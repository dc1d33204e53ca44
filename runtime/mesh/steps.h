/* A collective as one rank carries it out: a list of sends, receives, waits and folds, in order. What the mesh runs, and what the verifier
 * of programs looks at. */
#ifndef TESSERA_MESH_STEPS_H
#define TESSERA_MESH_STEPS_H

#include "runtime/mesh/mesh.h"

/* Bytes of an address: what it is in, in the two highest bits, and where. */
typedef uint64_t TessPlace;
enum { TESS_IN_INPUT = 0, TESS_IN_RESULT = 1, TESS_IN_SCRATCH = 2 };
static inline TessPlace tess_place(uint64_t in, uint64_t at) { return in << 62 | at; }
static inline uint32_t tess_place_in(TessPlace place) { return (uint32_t)(place >> 62); }
static inline uint64_t tess_place_at(TessPlace place) { return place & ((UINT64_C(1) << 62) - 1); }

typedef enum TessStepKind {
    TESS_STEP_SEND,    /* `bytes` bytes of `left` to `peer`, in the request `slot` */
    TESS_STEP_RECEIVE, /* from `peer` to `to` */
    TESS_STEP_WAIT,    /* for `slot` */
    TESS_STEP_FOLD,    /* to = left folded with right */
    TESS_STEP_COPY,    /* to = left */
    TESS_STEP_FILL,    /* to = the fold of nothing */
    TESS_STEP_ZERO     /* to = zeros */
} TessStepKind;

typedef struct TessStep {
    int32_t kind, slot, peer;
    int32_t first;  /* of a send and a receive: it has the head of this channel */
    uint64_t total; /* with it: bytes of all messages on the channel in this list */
    uint64_t bytes;
    TessPlace to, left, right;
} TessStep;

typedef struct TessSteps {
    TessStep *step;
    int64_t count, capacity;
    int32_t slots;    /* requests that are needed */
    uint64_t scratch; /* bytes that are needed, aligned to 64 */
    int32_t *channel; /* by peer * 2 + receives: the first step of the channel, or -1 */
    int32_t *free_slot;
    struct TessNode *nodes; /* room for nodes, while a list is made */
    int64_t node_capacity;
    int32_t frees, free_capacity;
    int32_t failed;   /* no memory */
    TessStep nowhere; /* what is written to then */
} TessSteps;

/* A collective that was checked, as it is carried out by rank r of n. */
typedef struct TessTask {
    TessCollective collective;
    int32_t r, n;
    uint64_t element; /* bytes */
    uint64_t piece;   /* bytes of a message that the engine likes */
} TessTask;

/* How many elements of `count` one list handles at most. */
int64_t tess_mesh_block(const TessTask *task);

/* Makes the list for elements [begin, end) of `count`. 0 without memory. */
int tess_mesh_make_steps(const TessTask *task, int64_t begin, int64_t end, TessSteps *steps);

void tess_mesh_free_steps(TessSteps *steps);

#endif
