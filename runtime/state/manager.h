// The cache as all of its parts see it. Its lock is held where a function takes a Locked, or says so.
#pragma once
#include <pthread.h>

#include <cinttypes>
#include <ctime>

#include "runtime/state/cache.h"
#include "runtime/state/pages.h"
#include "runtime/state/refusal.h"
#include "runtime/state/store.h"

namespace tessera::state {

struct Sequence {
    uint64_t id;          // names its file
    uint64_t key, used;   // the caller's; the clock when it was used last
    uint64_t step;        // the last that pinned it
    uint32_t generation;  // of its number; even: closed
    uint32_t source;      // what a copy still reads, or none; only while something is reserved
    uint32_t next;        // of the closed ones, or of those that wait to be moved
    int32_t length, begin, keep, reserved, entries, pins;
    int32_t published;  // tokens
    TessCacheWhere where;
    TessStateStatus fault;  // how its last move ended
    bool busy;              // its own call copies a page now
};

struct Step {
    uint64_t number;  // 0: none
    int32_t count;
};

// A published page: the tokens of a sequence up to its end.
struct PrefixNode {
    uint64_t hash;
    uint32_t next, bucket;
};

// Entries of tables are frames while their sequence is in memory, else blocks; no_entry: pruned.
constexpr int32_t no_entry = -1;

}  // namespace tessera::state

struct TessCache {
    pthread_mutex_t mutex;
    pthread_cond_t changed;  // something moved, or something came free
    pthread_t mover;
    tessera::state::Pages pages;
    tessera::state::Store store;
    TessCacheHooks hooks;
    int32_t page_tokens, sequence_count, sequence_pages, step_count, prefix_tokens, prefix_pages;
    tessera::state::Sequence *sequences;
    int32_t *tables;  // [sequences, sequence_pages]
    tessera::state::Step *steps;
    TessSequence *pinned;  // [steps, sequences]
    TessCacheCandidate *candidates;
    TessSequence *chosen;
    uint64_t *ids;                      // of the sequence that is moved
    int32_t *prefix;                    // tokens, [sequences, prefix_tokens]
    tessera::state::PrefixNode *nodes;  // [sequences, prefix_pages]
    uint32_t *buckets;
    uint32_t bucket_mask, free_sequence, first_move, last_move;
    uint64_t clock, next_step;
    int32_t open, waiters, damaged;
    uint64_t failures;          // of moves to the outside
    TessStateError last_error;  // of a move that failed, and whose it was
    TessSequence last_error_of;
    bool has_thread, can_leave, can_copy, working, choosing, ending;
};

namespace tessera::state {

// A moment up to which somebody waits.
class Deadline {
public:
    explicit Deadline(uint64_t timeout_ns);
    bool is_never() const { return never_; }
    bool has_passed() const;
    const timespec &time() const { return time_; }

private:
    timespec time_ = {};
    bool never_ = false;
};

// Holds the lock.
class Locked {
public:
    explicit Locked(TessCache *cache) : cache_(cache) { pthread_mutex_lock(&cache->mutex); }
    ~Locked() { pthread_mutex_unlock(&cache_->mutex); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

    void let_go() { pthread_mutex_unlock(&cache_->mutex); }
    void take() { pthread_mutex_lock(&cache_->mutex); }
    // Waits for a change, or makes one where no thread moves pages. False where the deadline has passed.
    bool wait(const Deadline &deadline);
    void tell() {
        if (cache_->waiters > 0) pthread_cond_broadcast(&cache_->changed);
    }

private:
    TessCache *cache_;
};

// The sequence of a number; null, with the words, where there is none.
Sequence *find(TessCache *cache, TessSequence sequence, TessStateError *error);
TessSequence number_of(const TessCache *cache, const Sequence &s);
// Refuses a sequence that is not in memory.
TessStateStatus expect_in_memory(const TessCache *cache, const Sequence &s, TessStateError *error);

inline int32_t *table_of(TessCache *cache, const Sequence &s) { return cache->tables + (&s - cache->sequences) * cache->sequence_pages; }
// The content of an entry, or none.
inline uint32_t block_of(const TessCache *cache, const Sequence &s, int32_t entry) {
    if (entry == no_entry) return none;
    return s.where == TESS_CACHE_MEMORY ? cache->pages.block_of(static_cast<uint32_t>(entry)) : static_cast<uint32_t>(entry);
}
inline int32_t pages_of(const TessCache *cache, int32_t tokens) {
    return tokens / cache->page_tokens + (tokens % cache->page_tokens != 0 ? 1 : 0);
}
inline void use(TessCache *cache, Sequence &s) { s.used = ++cache->clock; }

// A new sequence in memory; the caller knows that there is room.
Sequence &take_sequence(TessCache *cache, uint64_t key);
void give_sequence(TessCache *cache, Sequence &s);

// One reference less of a sequence in memory, whose steps may still read it.
void drop(TessCache *cache, const Sequence &s, uint32_t block);

// Frames for `needed` more pages, by sending sequences outside where the deadline allows it. The lock is let go meanwhile, so what the
// caller knew has to be found again. TESS_STATE_OK: look again. `who` asks, and stays. `failures` is cache->failures as it was before the
// first try.
TessStateStatus make_room(TessCache *cache, Locked &lock, const Sequence *who, uint32_t needed, uint64_t timeout_ns,
                          const Deadline &deadline, uint64_t failures, TessStateError *error);

TessStateStatus begin_offload(TessCache *cache, Locked &lock, Sequence &s, TessStateError *error);
inline bool has_moves(const TessCache *cache) { return cache->first_move != none || cache->pages.has_strays(); }
// Does one piece of the work that waits, or returns false where there is none. The lock is let go while bytes move.
bool move_one(TessCache *cache, Locked &lock);
// The thread of a cache that has one.
void *mover(void *cache);

void unpublish(TessCache *cache, Sequence &s);

}  // namespace tessera::state
