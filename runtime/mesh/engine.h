/** What carries messages between the ranks of a mesh: a table of eight functions. C99 and C++20; the library is tessera_mesh.
 *
 *  An engine moves bytes and adds nothing: trees, heads, deadlines and statistics are above it, once for all engines (mesh.h). An
 *  application may write its own. Functions give 0 or a status; TESS_MESH_LOST and TESS_MESH_ORDER may have the rank at fault as their
 *  argument (tess_engine_status). None blocks, none throws, and `close` and `abort` never wait for another rank.
 *
 *  The messages of one group, one pair of ranks and one tag arrive in the order in which they were sent, and the i-th receive gets the
 *  i-th of them. Both name the same number of bytes; an engine that sees another number gives TESS_MESH_ORDER.
 *
 *  One thread at a time uses an engine, that of its rank. */
#ifndef TESSERA_MESH_ENGINE_H
#define TESSERA_MESH_ENGINE_H

#include "runtime/abi/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most ranks of a mesh. */
#define TESS_MESH_MAX_RANKS 4096

/** A message in flight, in memory of who sends or receives it. The engine's own words; it must not be moved before it is done. */
typedef struct TessRequest {
    uint64_t word[8];
} TessRequest;

/** Flags of a TessEngine. */
enum {
    TESS_ENGINE_THREADS = 1,       /**< ranks are threads of this process */
    TESS_ENGINE_DEVICE_MEMORY = 2, /**< messages are in a device's memory */
    TESS_ENGINE_GOODBYE = 4        /**< `close` ends the engine on all ranks, so that they meet before it */
};

struct TessCollective; /* mesh.h */

/** How ranks send, receive and end. Made by a function of the engine's own, such as tess_threads_engine. */
typedef struct TessEngine {
    uint32_t size;       /**< sizeof(TessEngine) */
    uint32_t flags;      /**< TESS_ENGINE_… */
    int32_t rank, ranks; /**< this one, and how many there are, 1 ..= TESS_MESH_MAX_RANKS */
    uint64_t piece;      /**< bytes of one message that it likes best in a large transfer; 0: 128 KiB */
    const char *name;    /**< such as "threads"; lives as long as the library */
    void *state;

    /** Names some of the ranks: rank i of the group is ranks[i]. All ranks of the mesh call it in the same order, each with the group that
     *  it is in, or with n = 0 where it is in none; the k-th groups of all belong together. Group 0, all ranks, is there from the
     *  beginning. Sends nothing that waits. TESS_MESH_MEMORY. */
    int32_t (*group)(void *state, const int32_t *ranks, int32_t n, int32_t *group);
    /** Begins to send `bytes` bytes, which must stay as they are until the request is done. `to` is a rank of the group, tag is 0 ..= 3. */
    int32_t (*send)(void *state, int32_t group, int32_t to, uint32_t tag, const void *data, uint64_t bytes, TessRequest *request);
    /** Begins to receive. */
    int32_t (*receive)(void *state, int32_t group, int32_t from, uint32_t tag, void *data, uint64_t bytes, TessRequest *request);
    /** Whether a request is done; makes progress on all of them. Not called again after it said so. */
    int32_t (*test)(void *state, TessRequest *request, int32_t *done);
    /** The engine's own collective, whose order of additions is nobody's promise; or null. `collective` is a checked one. */
    int32_t (*native)(void *state, int32_t group, const struct TessCollective *collective, TessRequest *request);
    /** Says that messages will come from and go to this memory (on = 1), or no longer do; or null. */
    int32_t (*memory)(void *state, void *data, uint64_t bytes, int32_t on);
    /** Gives up: messages in flight touch no memory of this rank after it, and other ranks learn of it where the engine can tell them.
     *  `culprit` is the rank for whose sake, or -1. Called at most once; only `close` follows. */
    int32_t (*abort)(void *state, int32_t culprit);
    /** Ends this rank's part. Requests that are not done are given up, as by `abort`. */
    void (*close)(void *state);
} TessEngine;

/** A status of an engine: the kind, and the rank at fault where it is known, else -1. */
static inline int32_t tess_engine_status(int32_t kind, int32_t rank) { return kind | (rank + 1) << 12; }

/** Ranks that are threads of one process, which share what carries their messages. */
typedef struct TessThreads TessThreads;

/** Most ranks that are threads. */
#define TESS_THREADS_MAX_RANKS 256

/** Makes what `ranks` threads share, to be destroyed. TESS_MESH_RANK outside of 1 ..= TESS_THREADS_MAX_RANKS, TESS_MESH_MEMORY. */
int32_t tess_threads_create(int32_t ranks, TessThreads **threads);

/** Fills in the engine of a rank, for a thread of its own. Once for each rank. TESS_MESH_RANK where there is no such rank or it has its
 *  engine already, TESS_MESH_MEMORY. */
int32_t tess_threads_engine(TessThreads *threads, int32_t rank, TessEngine *engine);

/** Gives up the caller's hold. The memory is freed when the engines of all ranks are closed as well. Null is none. */
void tess_threads_destroy(TessThreads *threads);

#ifdef __cplusplus
}
#endif

#endif
