/** A cache of keys and values in pages: which page holds which tokens of which sequence. C99 and C++20; the library is tessera_state.
 *
 *  The memory of the pages is the caller's, and kernels read and write it. The cache keeps counts and tables. Sequences share pages (fork)
 *  until one of them writes. What does not fit goes outside, to the host's memory or to files, and comes back.
 *
 *  One step of a model:
 *
 *      tess_cache_reserve(cache, sequence, 1, 0, &copy, &error);                 pages for one more token; a page to copy, or none
 *      tess_cache_tables(cache, sequences, n, width, table, length, begin, &step, &error);
 *      … copy pages, run the kernels that read the tables and write the new tokens …
 *      tess_cache_commit(cache, sequence, 1, &error);
 *      tess_cache_release(cache, step);
 *
 *  Functions may be called from any thread at any time. They take one lock for microseconds; no lock is held while bytes are moved.
 *  All memory is taken when the cache is created. Where a function gives another status than TESS_STATE_OK it has changed nothing, unless
 *  it says so, and *error, which may be null everywhere, has what is wrong in words.
 *
 *  Positions are those of tokens in their sequence and never change. Position t is in entry t / page_tokens of the sequence's table. */
#ifndef TESSERA_STATE_CACHE_H
#define TESSERA_STATE_CACHE_H

#include "runtime/state/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TessCache TessCache;

/** A sequence of tokens. A number that was closed is never used again; 0 is none. */
typedef uint64_t TessSequence;

/** Time without an end. */
#define TESS_STATE_FOREVER UINT64_MAX

/** One of the places where a page lies: its keys, its values, its scales, of one layer. Page p has `bytes` bytes at data + p * stride. */
typedef struct TessCachePiece {
    void *data;
    uint64_t bytes, stride;
} TessCachePiece;

/** A sequence that may be sent outside, for TessCacheHooks.choose. */
typedef struct TessCacheCandidate {
    TessSequence sequence;
    uint64_t key;
    int32_t length; /**< tokens */
    int32_t pages;  /**< pages that become free when it leaves alone; what it shares stays */
    uint64_t used;  /**< when it was used last: a count that rises with each use */
} TessCacheCandidate;

/** Functions of the caller's; any of them may be null. None may call into the cache. */
typedef struct TessCacheHooks {
    void *state;
    /** Chooses which sequences leave so that `needed` more pages become free: writes up to `count` of them to `chosen` and gives how many.
     *  Called without a lock, by one thread at a time. Null: those that were used longest ago. */
    int32_t (*choose)(void *state, int32_t needed, const TessCacheCandidate *candidates, int32_t count, TessSequence *chosen);
    /** Pages in memory that the host does not address. They copy `bytes` bytes of page `page`, piece `piece`, to or from the host's memory
     *  and return when that is done: 0, or anything else for a failure. Called without a lock. Both or neither. */
    int32_t (*get)(void *state, int32_t piece, int32_t page, void *host, uint64_t bytes);
    int32_t (*put)(void *state, int32_t piece, int32_t page, const void *host, uint64_t bytes);
} TessCacheHooks;

/** What a cache is made of. Everything it points to but the memory of pages is only read while the cache is created. */
typedef struct TessCacheConfig {
    uint64_t size;          /**< sizeof(TessCacheConfig) */
    int32_t pages;          /**< pages of the caller's memory, 1 ..= 2^30 */
    int32_t page_tokens;    /**< tokens of a page, 1 ..= 2^16 */
    int32_t sequences;      /**< most that are open at once, 1 ..= 2^20 */
    int32_t sequence_pages; /**< most pages of one sequence; with page_tokens at most 2^31 - 1 tokens */
    int32_t steps;          /**< most steps between `tables` and `release`, 1 ..= 1024; 0: 4 */
    int32_t prefix_tokens;  /**< most tokens of a sequence that `publish` keeps; 0: none are */
    const TessCachePiece *piece;
    int32_t pieces;        /**< 0: the cache moves and copies nothing, and nothing can go outside */
    int32_t outside_pages; /**< most pages outside at once, 0 ..= 2^30 */
    void *outside;         /**< host memory of outside_pages times the bytes of a page, which is their home; or null */
    const char *folder;    /**< an existing folder, which is their home; or null. One of both where outside_pages > 0 */
    int32_t recover;       /**< 1: sequences that an earlier cache left in the folder are open, outside; 0: what it left is removed */
    int32_t no_sync;       /**< 1: files are not forced to the disk. They outlive the process, and not the machine */
    int32_t no_thread;     /**< 1: who waits moves pages; 0: a thread of the cache's own does */
    TessCacheHooks hooks;
} TessCacheConfig;

/** A config in which nothing is set but its size. */
static inline TessCacheConfig tess_cache_config(void) {
#ifdef __cplusplus
    TessCacheConfig config = {};
#else
    TessCacheConfig config = {0};
#endif
    config.size = sizeof config;
    return config;
}

/** Makes a cache, to be destroyed. It takes memory once: about 64 bytes a page, 52 a page outside, and for each sequence 4 bytes times
 *  sequence_pages and 8 for each token that `publish` may keep. TESS_STATE_ARGUMENT, TESS_STATE_MEMORY; of the folder TESS_STATE_FILE,
 *  TESS_STATE_BUSY, and with `recover` TESS_STATE_SEQUENCES, TESS_STATE_SPACE, TESS_STATE_FOREIGN where it holds what this cache cannot. */
TessStateStatus tess_cache_create(const TessCacheConfig *config, TessCache **cache, TessStateError *error);

/** Ends the moves that were begun and the cache. Nobody may use it any more. Files of sequences that are outside stay. Null is none. */
void tess_cache_destroy(TessCache *cache);

/** A sequence without tokens. `key` is the caller's, for hooks, `info` and after `recover`. TESS_STATE_SEQUENCES. */
TessStateStatus tess_cache_open(TessCache *cache, uint64_t key, TessSequence *sequence, TessStateError *error);

/** Ends a sequence in any state; waits for its moves. Pages that a running step reads become free when that step is released. */
TessStateStatus tess_cache_close(TessCache *cache, TessSequence sequence, TessStateError *error);

/** A new sequence with the first `at` tokens of another one. It shares their pages; a page that is not full is copied when either of both
 *  is about to write to it. Costs nothing but counts. TESS_STATE_LENGTH beyond its length or in what was pruned; TESS_STATE_RESERVED where
 *  the parent has tokens reserved in the last of these pages; TESS_STATE_SEQUENCES, TESS_STATE_OUT, TESS_STATE_MOVING, TESS_STATE_LOST. */
TessStateStatus tess_cache_fork(TessCache *cache, TessSequence parent, int32_t at, uint64_t key, TessSequence *child,
                                TessStateError *error);

/** Page `to` has to become what page `from` is, before anything is written to it; both -1: nothing to copy. */
typedef struct TessPageCopy {
    int32_t from, to;
} TessPageCopy;

/** Makes room for `tokens` after the sequence's length, all or nothing; what is reserved already counts. Only positions that are reserved
 *  may be written, and no other sequence has their pages.
 *
 *  Where the page that the sequence ends in is shared, or a running step reads it for one that was closed, a new one takes its place and
 *  *copy says so; `from` is not written or freed until this sequence is committed, truncated or closed. With copy null the cache copies
 *  itself, by memcpy.
 *
 *  Where pages are missing and timeout_ns is not 0, sequences that are neither pinned nor reserved go outside and the call waits for that,
 *  up to so many nanoseconds. They stay outside, whatever the status is. TESS_STATE_FULL, TESS_STATE_LENGTH beyond the table;
 *  TESS_STATE_SPACE, TESS_STATE_FILE of what could not go outside; TESS_STATE_TIME, TESS_STATE_OUT, TESS_STATE_MOVING, TESS_STATE_LOST. */
TessStateStatus tess_cache_reserve(TessCache *cache, TessSequence sequence, int32_t tokens, uint64_t timeout_ns, TessPageCopy *copy,
                                   TessStateError *error);

/** The first `tokens` reserved ones count as written; the others stay reserved. TESS_STATE_LENGTH: more than are reserved. */
TessStateStatus tess_cache_commit(TessCache *cache, TessSequence sequence, int32_t tokens, TessStateError *error);

/** Drops the tokens from `length` on, and all that is reserved. TESS_STATE_PINNED; TESS_STATE_LENGTH above its length, or in what was
 *  pruned, but for 0; TESS_STATE_OUT, TESS_STATE_MOVING, TESS_STATE_LOST. */
TessStateStatus tess_cache_truncate(TessCache *cache, TessSequence sequence, int32_t length, TessStateError *error);

/** Keeps the last `window` tokens and the first `keep` ones (attention sinks); frees whole pages between. Positions stay. TESS_STATE_LENGTH
 *  where either is negative; TESS_STATE_OUT, TESS_STATE_MOVING, TESS_STATE_LOST. */
TessStateStatus tess_cache_prune(TessCache *cache, TessSequence sequence, int32_t window, int32_t keep, TessStateError *error);

/** The tables of n sequences as they are at one moment, and a step that pins them until it is released: they do not go outside, and what
 *  the tables name is not given to others. table[i * width + e] is the page of entry e of sequence i, and -1 where there is none: pruned,
 *  or after its last one. length[i] counts committed tokens, begin[i] is the first one that was not pruned; either may be null. One
 *  sequence may be named twice. TESS_STATE_ARGUMENT where n is above config.sequences or a table is wider than `width`; TESS_STATE_STEPS,
 *  TESS_STATE_SEQUENCE, TESS_STATE_OUT, TESS_STATE_MOVING, TESS_STATE_LOST. */
TessStateStatus tess_cache_tables(TessCache *cache, const TessSequence *sequences, int32_t n, int32_t width, int32_t *table,
                                  int32_t *length, int32_t *begin, uint64_t *step, TessStateError *error);

/** Ends a step. TESS_STATE_ARGUMENT where there is no such step. */
TessStateStatus tess_cache_release(TessCache *cache, uint64_t step, TessStateError *error);

/** Begins to send a sequence's pages outside; those that a sequence in memory shares stay until that one leaves. A sequence that is
 *  outside or leaves already is no error. TESS_STATE_PINNED, TESS_STATE_RESERVED, TESS_STATE_SPACE, TESS_STATE_MOVING, TESS_STATE_LOST.
 *  What fails later `wait` says; the sequence is in memory again then. */
TessStateStatus tess_cache_offload(TessCache *cache, TessSequence sequence, TessStateError *error);

/** Begins to bring a sequence's pages back, all or nothing, so that they move while a step runs. timeout_ns is as in `reserve`. One that
 *  is in memory or comes already is no error. TESS_STATE_FULL, TESS_STATE_LOST, TESS_STATE_MOVING (it leaves: wait), TESS_STATE_TIME. What
 *  fails later `wait` says: TESS_STATE_LOST for good, and after TESS_STATE_FILE it may be tried again. */
TessStateStatus tess_cache_prefetch(TessCache *cache, TessSequence sequence, uint64_t timeout_ns, TessStateError *error);

/** Waits until a sequence is not moving. Gives how its last move ended, once; TESS_STATE_LOST again and again; TESS_STATE_TIME. */
TessStateStatus tess_cache_wait(TessCache *cache, TessSequence sequence, uint64_t timeout_ns, TessStateError *error);

/** Makes the first `count` tokens of a sequence known to `prefix`, in place of earlier ones, until it is truncated below them, pruned or
 *  closed. TESS_STATE_LENGTH: more than its length or config.prefix_tokens. */
TessStateStatus tess_cache_publish(TessCache *cache, TessSequence sequence, const int32_t *tokens, int32_t count, TessStateError *error);

/** The published sequence that begins with most of these tokens, in whole pages, one in memory before one outside; *matched is how many,
 *  a multiple of page_tokens. Found by hash, and compared. Where there is none: OK, 0 and 0. */
TessStateStatus tess_cache_prefix(TessCache *cache, const int32_t *tokens, int32_t count, TessSequence *sequence, int32_t *matched,
                                  TessStateError *error);

/** Where a sequence is. */
typedef enum TessCacheWhere {
    TESS_CACHE_MEMORY = 0,
    TESS_CACHE_LEAVING = 1,
    TESS_CACHE_OUTSIDE = 2,
    TESS_CACHE_ARRIVING = 3,
    TESS_CACHE_LOST = 4
} TessCacheWhere;

typedef struct TessCacheInfo {
    TessSequence sequence;
    uint64_t key;
    int32_t length, begin, keep, reserved; /**< tokens; the first `keep` and those from `begin` on are there */
    int32_t pages;                         /**< entries of its table */
    int32_t pins;                          /**< in how many places of running steps it is */
    TessCacheWhere where;
} TessCacheInfo;

TessStateStatus tess_cache_info(TessCache *cache, TessSequence sequence, TessCacheInfo *info, TessStateError *error);

/** Writes what is known of up to `capacity` open sequences, and gives how many are open. */
int32_t tess_cache_sequences(TessCache *cache, TessCacheInfo *info, int32_t capacity);

/** Pages by what they are. free + used + moving + held are all pages of the caller's memory. */
typedef struct TessCacheCounts {
    int32_t free;    /**< may be given to any sequence */
    int32_t used;    /**< some table names it */
    int32_t moving;  /**< on its way outside or back */
    int32_t held;    /**< no table names it, and a running step reads it */
    int32_t outside; /**< of what was sent outside: places that are taken */
    int32_t damaged; /**< files that `recover` or a prefetch found damaged or missing */
} TessCacheCounts;

void tess_cache_counts(TessCache *cache, TessCacheCounts *counts);

/** Copies a page, as `reserve` asks for, by memcpy or the hooks. */
TessStateStatus tess_cache_copy(TessCache *cache, TessPageCopy copy, TessStateError *error);

#ifdef __cplusplus
}
#endif
#endif
