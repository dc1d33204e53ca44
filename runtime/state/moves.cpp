// Pages on their way outside and back, and room for new ones.
#include <algorithm>
#include <cerrno>

#include "runtime/state/manager.h"

namespace tessera::state {

Deadline::Deadline(uint64_t timeout_ns) : never_(timeout_ns > UINT64_MAX / 4) {
    if (never_) return;
    clock_gettime(CLOCK_MONOTONIC, &time_);
    const uint64_t ns = static_cast<uint64_t>(time_.tv_nsec) + timeout_ns % 1000000000;
    time_.tv_sec += static_cast<time_t>(timeout_ns / 1000000000 + ns / 1000000000);
    time_.tv_nsec = static_cast<long>(ns % 1000000000);
}

bool Deadline::has_passed() const {
    if (never_) return false;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec != time_.tv_sec ? now.tv_sec > time_.tv_sec : now.tv_nsec >= time_.tv_nsec;
}

bool Locked::wait(const Deadline &deadline) {
    if (!cache_->has_thread && !cache_->working && has_moves(cache_)) return move_one(cache_, *this);
    cache_->waiters++;
    const int result = deadline.is_never() ? pthread_cond_wait(&cache_->changed, &cache_->mutex)
                                           : pthread_cond_timedwait(&cache_->changed, &cache_->mutex, &deadline.time());
    cache_->waiters--;
    return result != ETIMEDOUT;
}

namespace {

void enqueue(TessCache *cache, Locked &lock, Sequence &s) {
    const auto at = static_cast<uint32_t>(&s - cache->sequences);
    s.next = none, s.fault = TESS_STATE_OK;
    (cache->first_move == none ? cache->first_move : cache->sequences[cache->last_move].next) = at;
    cache->last_move = at;
    lock.tell();
}

void remember(TessCache *cache, const Sequence *s, TessStateError &error) {
    cache->last_error = error;
    cache->last_error_of = s ? number_of(cache, *s) : 0;
}

uint32_t own_place(const TessCache *cache, const Sequence &s) { return static_cast<uint32_t>(&s - cache->sequences); }

// Writes what only this sequence still needed, and its own file behind that. The lock is let go while bytes move.
TessStateStatus write_out(TessCache *cache, Locked &lock, const Sequence &s, TessStateError *error) {
    const int32_t *table = table_of(cache, s);
    for (int32_t e = 0; e < s.entries; e++) {
        cache->ids[e] = 0;
        if (table[e] == no_entry) continue;
        Block &b = cache->pages[static_cast<uint32_t>(table[e])];
        cache->ids[e] = b.id;
        if (b.at != At::leaving || b.owner != own_place(cache, s) || b.users > 0) continue;
        const uint32_t slot = b.slot, frame = b.frame;
        uint64_t hash = 0;
        lock.let_go();
        const TessStateStatus status = cache->store.put(slot, cache->ids[e], frame, &hash, error);
        lock.take();
        if (status != TESS_STATE_OK) return status;
        b.hash = hash;
    }
    if (!cache->store.has_files()) return TESS_STATE_OK;
    const StoredSequence stored = {s.id, s.key, s.length, s.begin, s.keep, s.entries};
    lock.let_go();
    TessStateStatus status = cache->store.sync(error);
    if (status == TESS_STATE_OK) status = cache->store.put_sequence(stored, cache->ids, error);
    if (status == TESS_STATE_OK) status = cache->store.sync(error);
    lock.take();
    return status;
}

// Removes the files of cache->ids, which are 0 where nothing is to be removed.
void remove_files(TessCache *cache, Locked &lock, int32_t count) {
    if (!cache->store.has_files()) return;
    lock.let_go();
    for (int32_t e = 0; e < count; e++) cache->store.remove(cache->ids[e]);
    lock.take();
}

void send_out(TessCache *cache, Locked &lock, Sequence &s) {
    TessStateError error = {};
    const uint32_t own = own_place(cache, s);
    const TessStateStatus status = write_out(cache, lock, s, &error);
    int32_t *table = table_of(cache, s);
    // After a failure it is in memory again, but where another sequence has sent away what both name.
    bool stays = status != TESS_STATE_OK;
    for (int32_t e = 0; e < s.entries && stays; e++)
        stays = table[e] == no_entry || cache->pages[static_cast<uint32_t>(table[e])].frame != none;
    for (int32_t e = 0; e < s.entries; e++) {
        cache->ids[e] = 0;
        if (table[e] == no_entry) continue;
        const auto block = static_cast<uint32_t>(table[e]);
        Block &b = cache->pages[block];
        if (stays) b.users++;
        if (b.at == At::leaving && b.owner == own) cache->ids[e] = cache->pages.end_leaving(block, status == TESS_STATE_OK);
        if (stays) table[e] = static_cast<int32_t>(b.frame);
    }
    s.where = stays ? TESS_CACHE_MEMORY : TESS_CACHE_OUTSIDE;
    s.fault = status;
    const int32_t entries = s.entries;
    if (status != TESS_STATE_OK) {
        cache->failures++;
        remember(cache, &s, error);
        const uint64_t id = s.id;
        lock.let_go();
        cache->store.remove_sequence(id);
        lock.take();
    }
    remove_files(cache, lock, entries);
}

TessStateStatus read_in(TessCache *cache, Locked &lock, const Sequence &s, TessStateError *error) {
    const int32_t *table = table_of(cache, s);
    for (int32_t e = 0; e < s.entries; e++) {
        if (table[e] == no_entry) continue;
        Block &b = cache->pages[static_cast<uint32_t>(table[e])];
        if (b.at == At::outside)  // another sequence tried before
            return refuse(error, b.lost ? TESS_STATE_LOST : TESS_STATE_FILE, "page %" PRIu64 ": it could not be read for another sequence.",
                          b.id);
        if (b.at != At::arriving || b.owner != own_place(cache, s)) continue;
        const uint32_t slot = b.slot, frame = b.frame;
        const uint64_t id = b.id, hash = b.hash;
        lock.let_go();
        const TessStateStatus status = cache->store.get(slot, id, hash, frame, error);
        lock.take();
        if (status == TESS_STATE_LOST) b.lost = true, cache->damaged++;
        if (status != TESS_STATE_OK) return status;
    }
    // What it was on the disk must not be found again once it is written to.
    const uint64_t id = s.id;
    lock.let_go();
    cache->store.remove_sequence(id);
    lock.take();
    return TESS_STATE_OK;
}

void bring_in(TessCache *cache, Locked &lock, Sequence &s) {
    TessStateError error = {};
    const uint32_t own = own_place(cache, s);
    const TessStateStatus status = read_in(cache, lock, s, &error);
    int32_t *table = table_of(cache, s);
    const int32_t entries = s.entries;
    for (int32_t e = 0; e < entries; e++) {
        cache->ids[e] = 0;
        if (table[e] == no_entry) continue;
        const auto block = static_cast<uint32_t>(table[e]);
        Block &b = cache->pages[block];
        const bool was_read = b.at == At::arriving && b.owner == own;
        if (status == TESS_STATE_OK) {
            if (was_read) cache->ids[e] = b.id, cache->pages.arrived(block);
            table[e] = static_cast<int32_t>(b.frame);
        } else {
            if (was_read) cache->pages.turned_back(block);
            cache->pages.leave_user(block);
        }
    }
    s.fault = status;
    s.where = status == TESS_STATE_OK ? TESS_CACHE_MEMORY : status == TESS_STATE_LOST ? TESS_CACHE_LOST : TESS_CACHE_OUTSIDE;
    if (status != TESS_STATE_OK) remember(cache, &s, error);
    use(cache, s);
    remove_files(cache, lock, entries);
}

void send_leaving(TessCache *cache, Locked &lock, uint32_t block) {
    Block &b = cache->pages[block];
    TessStateError error = {};
    uint64_t hash = 0;
    TessStateStatus status = TESS_STATE_OK;
    const bool leaves = b.refs > 0 && b.users == 0;
    if (leaves) {
        const uint32_t slot = b.slot, frame = b.frame;
        const uint64_t id = b.id;
        lock.let_go();
        status = cache->store.put(slot, id, frame, &hash, &error);
        if (status == TESS_STATE_OK) status = cache->store.sync(&error);
        lock.take();
        b.hash = hash;
    }
    if (status != TESS_STATE_OK) cache->failures++, remember(cache, nullptr, error);
    const uint64_t gone = cache->pages.end_leaving(block, leaves && status == TESS_STATE_OK);
    lock.let_go();
    cache->store.remove(gone);
    lock.take();
}

bool may_leave(const Sequence &s) { return s.where == TESS_CACHE_MEMORY && !s.busy && s.pins == 0 && s.reserved == 0; }

// Sequences that may leave, those that were used longest ago first.
int32_t find_candidates(TessCache *cache, const Sequence *who) {
    int32_t count = 0;
    for (int32_t i = 0; i < cache->sequence_count; i++) {
        const Sequence &s = cache->sequences[i];
        if ((s.generation & 1) == 0 || &s == who || !may_leave(s) || s.entries == 0) continue;
        const int32_t *table = table_of(cache, s);
        int32_t pages = 0;
        for (int32_t e = 0; e < s.entries; e++)
            if (table[e] != no_entry && cache->pages[block_of(cache, s, table[e])].users == 1) pages++;
        cache->candidates[count++] = {number_of(cache, s), s.key, s.length, pages, s.used};
    }
    std::sort(cache->candidates, cache->candidates + count, [](const auto &a, const auto &b) { return a.used < b.used; });
    return count;
}

TessStateStatus refuse_full(const TessCache *cache, uint32_t needed, const char *why, TessStateError *error) {
    const Pages &p = cache->pages;
    return refuse(error, TESS_STATE_FULL,
                  "expected %" PRIu32 " free pages, got %" PRIu32 " of %" PRIu32 " (%" PRIu32 " held by running steps, %" PRIu32
                  " moving)%s. Close, prune or "
                  "offload a sequence.",
                  needed, p.free_frames(), p.frames(), p.held(), p.moving(), why);
}

// Begins to send candidates outside, until so many pages will be free. Gives how many go.
int32_t send_candidates(TessCache *cache, Locked &lock, const Sequence *who, uint32_t missing, TessStateStatus *status,
                        TessStateError *error) {
    const int32_t count = find_candidates(cache, who);
    int32_t sent = 0;
    if (!cache->hooks.choose) {
        for (int32_t i = 0; i < count; i++) {
            Sequence *s = find(cache, cache->candidates[i].sequence, nullptr);
            *status = begin_offload(cache, lock, *s, error);
            if (*status != TESS_STATE_OK) continue;
            sent++;
            const auto pages = static_cast<uint32_t>(cache->candidates[i].pages);
            if (pages >= missing) break;
            missing -= pages;
        }
        return sent;
    }
    cache->choosing = true;
    lock.let_go();
    int32_t chosen =
        count == 0 ? 0 : cache->hooks.choose(cache->hooks.state, static_cast<int32_t>(missing), cache->candidates, count, cache->chosen);
    lock.take();
    cache->choosing = false;
    lock.tell();
    chosen = chosen < 0 ? 0 : chosen > count ? count : chosen;
    for (int32_t i = 0; i < chosen; i++) {
        Sequence *s = find(cache, cache->chosen[i], nullptr);
        if (!s || s == who || !may_leave(*s)) continue;  // it changed meanwhile, or was no candidate
        *status = begin_offload(cache, lock, *s, error);
        if (*status == TESS_STATE_OK) sent++;
    }
    return sent;
}

}  // namespace

TessStateStatus make_room(TessCache *cache, Locked &lock, const Sequence *who, uint32_t needed, uint64_t timeout_ns,
                          const Deadline &deadline, uint64_t failures, TessStateError *error) {
    if (timeout_ns == 0 || needed > cache->pages.frames()) return refuse_full(cache, needed, "", error);
    if (!cache->can_leave) return refuse_full(cache, needed, "; this cache has no pages outside", error);
    if (cache->failures != failures) {
        if (error) *error = cache->last_error;
        return cache->last_error.status;
    }
    if (deadline.has_passed())
        return refuse(error, TESS_STATE_TIME, "expected %" PRIu32 " free pages within %" PRIu64 " ns, got %" PRIu32 ". Give it more time.",
                      needed, timeout_ns, cache->pages.free_frames());
    cache->pages.find_strays();
    if (!has_moves(cache) && !cache->working && !cache->choosing) {
        TessStateStatus status = TESS_STATE_OK;
        if (send_candidates(cache, lock, who, needed - cache->pages.free_frames(), &status, error) == 0)
            return status != TESS_STATE_OK ? status : refuse_full(cache, needed, "; no other sequence may leave", error);
    }
    lock.tell();
    lock.wait(deadline);
    return TESS_STATE_OK;
}

TessStateStatus begin_offload(TessCache *cache, Locked &lock, Sequence &s, TessStateError *error) {
    const TessSequence number = number_of(cache, s);
    if (s.where == TESS_CACHE_OUTSIDE || s.where == TESS_CACHE_LEAVING) return TESS_STATE_OK;
    const TessStateStatus status = expect_in_memory(cache, s, error);
    if (status != TESS_STATE_OK) return status;
    if (s.pins > 0)
        return refuse(error, TESS_STATE_PINNED, "offload: step %" PRIu64 " reads sequence %" PRIu64 ". Release it first.", s.step, number);
    if (s.reserved > 0)
        return refuse(error, TESS_STATE_RESERVED,
                      "offload: %" PRId32 " tokens of sequence %" PRIu64 " are reserved. Commit or truncate it first.", s.reserved, number);
    int32_t *table = table_of(cache, s);
    uint32_t needed = 0;
    for (int32_t e = 0; e < s.entries; e++) {
        if (table[e] == no_entry) continue;
        const Block &b = cache->pages[block_of(cache, s, table[e])];
        if (b.users == 1 && b.at == At::memory) needed++;
    }
    if (!cache->can_leave || needed > cache->pages.free_slots())
        return refuse(error, TESS_STATE_SPACE,
                      "offload of sequence %" PRIu64 ": expected %" PRIu32 " free places outside, got %" PRIu32 " of %" PRIu32
                      ". Allow more%s.",
                      number, needed, cache->pages.free_slots(), cache->pages.slots(),
                      cache->can_leave ? ", or close a sequence that is outside" : "");
    for (int32_t e = 0; e < s.entries; e++) {
        if (table[e] == no_entry) continue;
        const uint32_t block = block_of(cache, s, table[e]);
        Block &b = cache->pages[block];
        if (--b.users == 0 && b.at == At::memory) cache->pages.leave(block, own_place(cache, s));
        table[e] = static_cast<int32_t>(block);
    }
    s.where = TESS_CACHE_LEAVING;
    enqueue(cache, lock, s);
    return TESS_STATE_OK;
}

bool move_one(TessCache *cache, Locked &lock) {
    if (cache->working || !has_moves(cache)) return false;
    cache->working = true;
    if (const uint32_t stray = cache->pages.next_stray(); stray != none) {
        send_leaving(cache, lock, stray);
    } else {
        Sequence &s = cache->sequences[cache->first_move];
        cache->first_move = s.next;
        if (s.where == TESS_CACHE_LEAVING) send_out(cache, lock, s);
        else bring_in(cache, lock, s);
    }
    cache->working = false;
    lock.tell();
    return true;
}

void *mover(void *argument) {
    auto *cache = static_cast<TessCache *>(argument);
    Locked lock(cache);
    for (const Deadline never(TESS_STATE_FOREVER);;) {
        if (move_one(cache, lock)) continue;
        if (cache->ending) return nullptr;
        lock.wait(never);
    }
}

}  // namespace tessera::state

using namespace tessera::state;

extern "C" {

TessStateStatus tess_cache_offload(TessCache *cache, TessSequence sequence, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "offload: expected a cache, got null.");
    Locked lock(cache);
    Sequence *s = find(cache, sequence, error);
    return s ? begin_offload(cache, lock, *s, error) : TESS_STATE_SEQUENCE;
}

TessStateStatus tess_cache_prefetch(TessCache *cache, TessSequence sequence, uint64_t timeout_ns, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "prefetch: expected a cache, got null.");
    const Deadline deadline(timeout_ns);
    Locked lock(cache);
    const uint64_t failures = cache->failures;
    for (;;) {
        Sequence *s = find(cache, sequence, error);
        if (!s) return TESS_STATE_SEQUENCE;
        if (s->where == TESS_CACHE_MEMORY || s->where == TESS_CACHE_ARRIVING) return TESS_STATE_OK;
        if (s->where != TESS_CACHE_OUTSIDE) return expect_in_memory(cache, *s, error);
        const int32_t *table = table_of(cache, *s);
        uint32_t needed = 0;
        for (int32_t e = 0; e < s->entries; e++)
            if (table[e] != no_entry && cache->pages[static_cast<uint32_t>(table[e])].at == At::outside) needed++;
        if (needed > cache->pages.free_frames()) {
            const TessStateStatus status = make_room(cache, lock, s, needed, timeout_ns, deadline, failures, error);
            if (status != TESS_STATE_OK) return status;
            continue;
        }
        for (int32_t e = 0; e < s->entries; e++) {
            if (table[e] == no_entry) continue;
            const auto block = static_cast<uint32_t>(table[e]);
            cache->pages[block].users++;
            if (cache->pages[block].at == At::outside) cache->pages.come(block, own_place(cache, *s));
        }
        s->where = TESS_CACHE_ARRIVING;
        enqueue(cache, lock, *s);
        return TESS_STATE_OK;
    }
}

TessStateStatus tess_cache_wait(TessCache *cache, TessSequence sequence, uint64_t timeout_ns, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "wait: expected a cache, got null.");
    const Deadline deadline(timeout_ns);
    Locked lock(cache);
    for (bool in_time = timeout_ns > 0;; in_time = lock.wait(deadline)) {
        Sequence *s = find(cache, sequence, error);
        if (!s) return TESS_STATE_SEQUENCE;
        if (s->where == TESS_CACHE_LEAVING || s->where == TESS_CACHE_ARRIVING || s->busy) {
            if (in_time) continue;
            return refuse(error, TESS_STATE_TIME, "wait: the pages of sequence %" PRIu64 " are not there after %" PRIu64 " ns. Wait again.",
                          sequence, timeout_ns);
        }
        const TessStateStatus fault = s->fault;
        s->fault = TESS_STATE_OK;
        if (fault != TESS_STATE_OK && cache->last_error_of == sequence && cache->last_error.status == fault) {
            if (error) *error = cache->last_error;
            return fault;
        }
        if (s->where == TESS_CACHE_LOST) return expect_in_memory(cache, *s, error);
        return fault == TESS_STATE_OK ? fault
                                      : refuse(error, fault, "sequence %" PRIu64 ": %s", sequence, tess_state_status_message(fault));
    }
}

}  // extern "C"
