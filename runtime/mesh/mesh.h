/** A mesh: ranks that run the same program and exchange tensors. C99 and C++20; the library is tessera_mesh.
 *
 *      tess_threads_engine(threads, rank, &engine);                           or MPI's, Gloo's, one's own (engine.h)
 *      tess_mesh_create(&engine, &options, &mesh, &fault);
 *      tess_mesh_collective(mesh, &collective, &fault);                       or tess_mesh_start, work, tess_mesh_wait
 *      tess_mesh_destroy(mesh);
 *
 *  Bits. A reduction is over C chunks, numbered from 0, of which rank r of n has C/n, from r * C/n on. Chunks are the leaves of one binary
 *  tree: [0, C) is split behind its first 2^k chunks, 2^k the largest power of two below C, and so on. Each node is rounded to the type
 *  of the elements, and a NaN is the type's quiet NaN. So the result has the same bits on every rank and for every n that divides C.
 *
 *  Order. All ranks of a group start the same collectives on it in the same order. The first message of each pair in a collective begins
 *  with a head: the hash of program and collective, the number of the message, its bytes. A rank that runs something else gives
 *  TESS_MESH_ORDER.
 *
 *  Failure. Each wait has a deadline. A rank that does not answer gives TESS_MESH_LATE, one that is gone TESS_MESH_LOST. The mesh is
 *  then broken for good: results of what was in flight are worthless, every call gives TESS_MESH_BROKEN at once, and nothing hangs. Make
 *  another mesh, of as many ranks as there are.
 *
 *  One thread at a time may use a mesh, that of its rank. Functions give 0 or a status; `fault`, which may be null everywhere, has the
 *  details: for TESS_MESH_ORDER, LATE, LOST and BROKEN `expected` is the number of the operation and `got` the lowest rank at fault. */
#ifndef TESSERA_MESH_MESH_H
#define TESSERA_MESH_MESH_H

#include "runtime/mesh/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most chunks of a reduction. */
#define TESS_MESH_MAX_CHUNKS 65536

/** Most axes of a mesh. */
#define TESS_MESH_MAX_AXES 8

typedef struct TessMesh TessMesh;

/** How a mesh works. */
typedef struct TessMeshOptions {
    uint32_t size;       /**< sizeof(TessMeshOptions) */
    uint32_t flags;      /**< 0 */
    uint64_t program;    /**< hash of what the ranks run; all must say the same */
    uint64_t timeout_ns; /**< most time of one wait, in nanoseconds; 0: 60 s */
} TessMeshOptions;

/** Options of which nothing is said but their size. */
static inline TessMeshOptions tess_mesh_options(void) {
    TessMeshOptions options;
    options.size = sizeof(TessMeshOptions);
    options.flags = 0;
    options.program = 0;
    options.timeout_ns = 0;
    return options;
}

/** What ranks do together. Below, n is the number of ranks of the group, r this rank's number in it, C the number of chunks, and `count` a
 *  number of elements. */
typedef enum TessCollectiveKind {
    TESS_ALL_REDUCE = 1,     /**< input (C/n, count), result (count): the fold of all chunks */
    TESS_REDUCE_SCATTER = 2, /**< input (C/n, n, count), result (count): part r of the fold */
    TESS_ALL_GATHER = 3,     /**< input (count), result (n, count) */
    TESS_ALL_TO_ALL = 4,     /**< input (n, count), result (n, count): part i of the result is part r of rank i's input */
    TESS_SHIFT = 5,          /**< input (count) to rank r + distance, result (count) from rank r - distance, modulo n */
    TESS_BROADCAST = 6,      /**< result (count) is the input of rank `peer`; the others' inputs are not looked at and may be null */
    TESS_EXCLUSIVE_SCAN = 7, /**< input (C/n, count), result (C/n, count): for each chunk the fold of those before it */
    TESS_SEND = 8,           /**< input (count) to rank `peer`, which receives it */
    TESS_RECEIVE = 9         /**< result (count) from rank `peer` */
} TessCollectiveKind;

/** What two elements are folded to. The fold of nothing is 0, -infinity or the least integer, infinity or the greatest, 1. A maximum and a
 *  minimum of a NaN are NaN; integers wrap. */
typedef enum TessMonoid { TESS_SUM = 1, TESS_MAX = 2, TESS_MIN = 3, TESS_PRODUCT = 4 } TessMonoid;

/** Flags of a TessCollective. */
enum {
    /** The input has the rank's subtrees (tess_mesh_subtrees), each folded already, in the place of its chunks. */
    TESS_COLLECTIVE_FOLDED = 1,
    /** A shift that is not a ring. Where no rank sends, the result is zeros. */
    TESS_COLLECTIVE_OPEN = 2,
    /** Additions in whatever order the engine likes, where it has such a collective: bits depend on n and on the engine. */
    TESS_COLLECTIVE_ANY_ORDER = 4
};

/** One collective with its memory. Tensors are row-major without gaps; input and result share no byte, except that
 *  they may be the same memory in a broadcast, and in an all-reduce where the rank has one chunk, and that the input of an all-gather
 *  may be part r of the result. Both must stay, and the result not be read, until the operation was waited for. */
typedef struct TessCollective {
    uint32_t size;    /**< sizeof(TessCollective) */
    uint32_t flags;   /**< TESS_COLLECTIVE_… */
    int32_t kind;     /**< a TessCollectiveKind */
    int32_t group;    /**< 0: all ranks */
    int32_t dtype;    /**< a TessDType whose elements have whole bytes; of a fold f32, f64, f16, bf16, i32 or i64 */
    int32_t monoid;   /**< a TessMonoid, of a fold; else 0 */
    int32_t chunks;   /**< C of a fold, a multiple of n, or 0: n; else 0 */
    int32_t peer;     /**< of broadcast, send and receive; else 0 */
    int32_t distance; /**< of a shift, of any sign; else 0 */
    uint32_t id;      /**< any number, the same on all ranks: goes into the hash of the messages' heads */
    int64_t count;    /**< elements; 0 is legal */
    const void *input;
    void *result;
} TessCollective;

/** A collective of which nothing is said but its kind, over all ranks. */
static inline TessCollective tess_collective(TessCollectiveKind kind) {
    TessCollective collective;
    collective.size = sizeof(TessCollective);
    collective.flags = 0;
#ifdef __cplusplus
    collective.kind = int32_t(kind);
#else
    collective.kind = (int32_t)kind;
#endif
    collective.group = collective.dtype = collective.monoid = collective.chunks = collective.peer = collective.distance = 0;
    collective.id = 0;
    collective.count = 0;
    collective.input = TESS_NULL;
    collective.result = TESS_NULL;
    return collective;
}

/** Makes a mesh of the engine, which it then owns and closes. All ranks make theirs; nothing is sent. `options` may be null. It takes
 *  memory as it is used: scratch of at most about 2 MiB a group, and lists of what is in flight. TESS_MESH_ENGINE where the engine is not
 *  whole, TESS_STRUCT_SIZE, TESS_CONTEXT_NEWER, TESS_MESH_MEMORY; the engine is then still the caller's. */
int32_t tess_mesh_create(const TessEngine *engine, const TessMeshOptions *options, TessMesh **mesh, TessFault *fault);

/** Ends the mesh and its engine. What is in flight is given up, which breaks the mesh. One between processes that is whole first waits
 *  for the other ranks to end theirs, at most as long as a wait takes. Null is none. */
void tess_mesh_destroy(TessMesh *mesh);

/** This rank's number, and how many there are in a group; -1 where there is no such group or this rank is not in it. */
int32_t tess_mesh_rank(const TessMesh *mesh, int32_t group);
int32_t tess_mesh_ranks(const TessMesh *mesh, int32_t group);

/** Names some of the ranks, as TessEngine.group says: all ranks of the mesh call it in the same order, with n = 0 where they are in no
 *  group. TESS_MESH_RANK where a rank is not there, is named twice, or this one is missing; TESS_MESH_MEMORY, TESS_MESH_BROKEN. */
int32_t tess_mesh_group(TessMesh *mesh, const int32_t *ranks, int32_t n, int32_t *group, TessFault *fault);

/** Lays the ranks out in a grid, row-major, and makes a group for each axis: groups[a] has the ranks that differ from this one in
 *  coordinate a only. TESS_MESH_RANK where the product of the extents is not the number of ranks. */
int32_t tess_mesh_axes(TessMesh *mesh, const int32_t *extents, int32_t axes, int32_t *groups, TessFault *fault);

/** Says that collectives will read and write this memory (on = 1), or no longer do. Does nothing where the engine does not care. */
int32_t tess_mesh_memory(TessMesh *mesh, void *data, uint64_t bytes, int32_t on, TessFault *fault);

/** Starts a collective and gives its number, which counts from 0. Collectives of a group run one after the other; sends and receives
 *  run beside them, those of one pair and direction one after the other. Progress is made while the thread is in tess_mesh_start, test or
 *  wait. Refusals leave the mesh as it was: TESS_STRUCT_SIZE, TESS_MESH_COLLECTIVE, TESS_MESH_GROUP, TESS_MESH_RANK, TESS_DTYPE,
 *  TESS_MESH_CHUNKS where n does not divide C, TESS_MESH_COUNT, TESS_NULL_DATA, TESS_MISALIGNED, TESS_OVERLAP; the argument is 0 for the
 *  input and 1 for the result. Failures break it: TESS_MESH_ORDER, TESS_MESH_LOST, TESS_MESH_MEMORY, TESS_MESH_BROKEN. */
int32_t tess_mesh_start(TessMesh *mesh, const TessCollective *collective, int64_t *operation, TessFault *fault);

/** Whether an operation is done, without waiting. TESS_MESH_OPERATION where it was not started; failures as above. */
int32_t tess_mesh_test(TessMesh *mesh, int64_t operation, int32_t *done, TessFault *fault);

/** Waits for an operation, at most as long as the options say; waiting again is legal. TESS_MESH_OPERATION; failures as above, and
 *  TESS_MESH_LATE. */
int32_t tess_mesh_wait(TessMesh *mesh, int64_t operation, TessFault *fault);

/** Starts a collective and waits for it. */
int32_t tess_mesh_collective(TessMesh *mesh, const TessCollective *collective, TessFault *fault);

/** Nodes of a rank's chunks in the tree: what it must fold by itself, in ascending order. */
typedef struct TessSubtree {
    int32_t first, chunks;
} TessSubtree;

/** The largest nodes of the tree over `chunks` that hold chunks [first, end) and no others: writes at most `most` of them and gives how
 *  many there are, at most 32; one where end - first is a power of two that divides first. 0 where a number is outside of its range. */
int32_t tess_mesh_subtrees(int32_t chunks, int32_t first, int32_t end, TessSubtree *subtrees, int32_t most);

/** result[i] = left[i] folded with right[i], as in a node of the tree; `left` has the lower chunks. The result may be either of them.
 *  TESS_MESH_COLLECTIVE for no TessMonoid, TESS_DTYPE, TESS_MESH_COUNT, TESS_NULL_DATA. */
int32_t tess_mesh_fold(int32_t dtype, int32_t monoid, void *result, const void *left, const void *right, int64_t count);

/** What a mesh has done. */
typedef struct TessMeshStatistics {
    uint32_t size, flags;
    uint64_t operations;     /**< that are done */
    uint64_t sent, received; /**< messages, without heads of their own */
    uint64_t sent_bytes, received_bytes;
    uint64_t wait_ns; /**< time in tess_mesh_wait */
    uint64_t memory;  /**< bytes that the mesh holds: scratch and lists */
} TessMeshStatistics;

/** Fills in as much of *statistics as its `size` says. TESS_STRUCT_SIZE, TESS_NULL_ARGUMENT. */
int32_t tess_mesh_statistics(const TessMesh *mesh, TessMeshStatistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
