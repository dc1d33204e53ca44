// Sequences and their tables: what needs no bytes to be moved.
#include <cstring>

#include "runtime/state/manager.h"

namespace tessera::state {

TessSequence number_of(const TessCache *cache, const Sequence &s) {
    return static_cast<uint64_t>(s.generation) << 32 | static_cast<uint64_t>(&s - cache->sequences);
}

Sequence *find(TessCache *cache, TessSequence sequence, TessStateError *error) {
    const uint64_t at = sequence & UINT32_MAX;
    if (at < static_cast<uint64_t>(cache->sequence_count)) {
        Sequence &s = cache->sequences[at];
        if (s.generation == sequence >> 32 && (s.generation & 1) != 0) return &s;
    }
    refuse(error, TESS_STATE_SEQUENCE,
           "sequence %" PRIu64 ": expected one that is open; it was never opened, or was closed. %" PRId32 " are open.", sequence,
           cache->open);
    return nullptr;
}

TessStateStatus expect_in_memory(const TessCache *cache, const Sequence &s, TessStateError *error) {
    const TessSequence number = number_of(cache, s);
    switch (s.where) {
    case TESS_CACHE_MEMORY:
        if (!s.busy) return TESS_STATE_OK;
        return refuse(error, TESS_STATE_MOVING,
                      "sequence %" PRIu64 ": another call copies a page of it now. Use a sequence from one thread.", number);
    case TESS_CACHE_LEAVING:
    case TESS_CACHE_ARRIVING:
        return refuse(error, TESS_STATE_MOVING, "sequence %" PRIu64 ": its pages are on their way %s. Wait for it.", number,
                      s.where == TESS_CACHE_LEAVING ? "outside" : "back");
    case TESS_CACHE_OUTSIDE:
        return refuse(error, TESS_STATE_OUT, "sequence %" PRIu64 ": its pages are outside. Prefetch it, and wait.", number);
    case TESS_CACHE_LOST:
        return refuse(error, TESS_STATE_LOST,
                      "sequence %" PRIu64 " (key %" PRIu64
                      "): pages that were outside are missing or damaged. Close it, and compute its %" PRId32 " tokens again.",
                      number, s.key, s.length);
    }
    return TESS_STATE_ARGUMENT;
}

Sequence &take_sequence(TessCache *cache, uint64_t key) {
    Sequence &s = cache->sequences[cache->free_sequence];
    cache->free_sequence = s.next;
    const uint32_t generation = s.generation + 1;
    s = Sequence{};
    s.generation = generation, s.key = key, s.id = cache->pages.next_id(), s.source = s.next = none;
    use(cache, s);
    cache->open++;
    return s;
}

void give_sequence(TessCache *cache, Sequence &s) {
    unpublish(cache, s);
    s.generation++;
    s.next = cache->free_sequence;
    cache->free_sequence = static_cast<uint32_t>(&s - cache->sequences);
    cache->open--;
}

void drop(TessCache *cache, const Sequence &s, uint32_t block) {
    if (s.pins > 0) cache->pages.hold(block, s.step);
    cache->pages.drop(block, true);
}

namespace {

TessStateStatus refuse_count(TessCache *cache, TessStateError *error) {
    return refuse(error, TESS_STATE_SEQUENCES,
                  "expected at most %" PRId32 " open sequences; all are open. Close one, or create the cache with more.",
                  cache->sequence_count);
}

// What a copy was to read is not needed any more.
void drop_source(TessCache *cache, Sequence &s) {
    if (s.source == none) return;
    drop(cache, s, s.source);
    s.source = none;
}

// A page that a copy was to fill becomes what it was before.
void undo_copy(TessCache *cache, Sequence &s) {
    if (s.source == none) return;
    int32_t &entry = table_of(cache, s)[s.length / cache->page_tokens];
    drop(cache, s, block_of(cache, s, entry));
    entry = static_cast<int32_t>(cache->pages[s.source].frame);
    s.source = none;
}

// Entries from `pages` on.
void shorten(TessCache *cache, Sequence &s, int32_t pages) {
    const int32_t *table = table_of(cache, s);
    for (; s.entries > pages; s.entries--)
        if (table[s.entries - 1] != no_entry) drop(cache, s, block_of(cache, s, table[s.entries - 1]));
}

bool was_pruned(const Sequence &s, int32_t length) { return length > s.keep && length < s.begin; }

// Closes a sequence that is not in memory: its files go first, then what names them. The lock is let go between.
void close_outside(TessCache *cache, Locked &lock, Sequence &s) {
    int32_t *table = table_of(cache, s);
    s.where = TESS_CACHE_ARRIVING;  // nobody else may do anything with it
    const uint64_t own = s.id;
    lock.let_go();
    cache->store.remove_sequence(own);
    lock.take();
    while (s.entries > 0) {
        uint64_t gone[64];
        int32_t count = 0;
        for (; s.entries > 0 && count < 64; s.entries--)
            if (table[s.entries - 1] != no_entry)
                if (const uint64_t id = cache->pages.drop(static_cast<uint32_t>(table[s.entries - 1]), false)) gone[count++] = id;
        lock.let_go();
        for (int32_t i = 0; i < count; i++) cache->store.remove(gone[i]);
        lock.take();
    }
}

}  // namespace

}  // namespace tessera::state

using namespace tessera::state;

extern "C" {

TessStateStatus tess_cache_open(TessCache *cache, uint64_t key, TessSequence *sequence, TessStateError *error) {
    if (!cache || !sequence) return refuse(error, TESS_STATE_ARGUMENT, "open: expected a cache and a place for the sequence, got null.");
    Locked lock(cache);
    if (cache->open == cache->sequence_count) return refuse_count(cache, error);
    *sequence = number_of(cache, take_sequence(cache, key));
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_close(TessCache *cache, TessSequence sequence, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "close: expected a cache, got null.");
    Locked lock(cache);
    Sequence *s;
    for (const Deadline never(TESS_STATE_FOREVER);; lock.wait(never)) {
        s = find(cache, sequence, error);
        if (!s) return TESS_STATE_SEQUENCE;
        if (s->where != TESS_CACHE_LEAVING && s->where != TESS_CACHE_ARRIVING && !s->busy) break;
    }
    unpublish(cache, *s);
    if (s->where == TESS_CACHE_MEMORY) {
        drop_source(cache, *s);
        shorten(cache, *s, 0);
    } else {
        close_outside(cache, lock, *s);
    }
    give_sequence(cache, *s);
    lock.tell();
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_fork(TessCache *cache, TessSequence parent, int32_t at, uint64_t key, TessSequence *child,
                                TessStateError *error) {
    if (!cache || !child) return refuse(error, TESS_STATE_ARGUMENT, "fork: expected a cache and a place for the child, got null.");
    Locked lock(cache);
    Sequence *from = find(cache, parent, error);
    if (!from) return TESS_STATE_SEQUENCE;
    const TessStateStatus status = expect_in_memory(cache, *from, error);
    if (status != TESS_STATE_OK) return status;
    if (at < 0 || at > from->length || was_pruned(*from, at))
        return refuse(error, TESS_STATE_LENGTH, "fork of sequence %" PRIu64 " at %" PRId32 ": expected 0 ..= %" PRId32 "%s.", parent, at,
                      from->length, from->begin > from->keep ? ", and not among the tokens that were pruned" : "");
    const int32_t entries = pages_of(cache, at);
    if (from->reserved > 0 && entries > from->length / cache->page_tokens)
        return refuse(error, TESS_STATE_RESERVED,
                      "fork of sequence %" PRIu64 " at %" PRId32 ": %" PRId32
                      " tokens are reserved in the last page that both would share. Commit or "
                      "truncate first, or fork at %" PRId32 " or less.",
                      parent, at, from->reserved, from->length / cache->page_tokens * cache->page_tokens);
    if (cache->open == cache->sequence_count) return refuse_count(cache, error);
    Sequence &to = take_sequence(cache, key);
    use(cache, *from);
    to.length = at, to.entries = entries;
    if (at > from->keep) to.begin = from->begin, to.keep = from->keep;
    const int32_t *source = table_of(cache, *from);
    for (int32_t e = 0; e < entries; e++)
        if (source[e] != no_entry) cache->pages.share(block_of(cache, *from, source[e]));
    std::memcpy(table_of(cache, to), source, static_cast<size_t>(entries) * sizeof *source);
    *child = number_of(cache, to);
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_reserve(TessCache *cache, TessSequence sequence, int32_t tokens, uint64_t timeout_ns, TessPageCopy *copy,
                                   TessStateError *error) {
    if (!cache || tokens < 0)
        return refuse(error, TESS_STATE_ARGUMENT, "reserve: expected a cache and 0 tokens or more, got %s and %" PRId32 ".",
                      cache ? "one" : "null", tokens);
    if (!copy && !cache->can_copy)
        return refuse(error, TESS_STATE_ARGUMENT, "reserve: expected a place for the copy, got null: this cache cannot copy pages itself.");
    if (copy) copy->from = copy->to = -1;
    const Deadline deadline(timeout_ns);
    Locked lock(cache);
    const uint64_t failures = cache->failures;
    const int64_t most = static_cast<int64_t>(cache->sequence_pages) * cache->page_tokens;
    for (;;) {
        Sequence *s = find(cache, sequence, error);
        if (!s) return TESS_STATE_SEQUENCE;
        TessStateStatus status = expect_in_memory(cache, *s, error);
        if (status != TESS_STATE_OK) return status;
        if (s->length + static_cast<int64_t>(tokens) > most)
            return refuse(error, TESS_STATE_LENGTH,
                          "sequence %" PRIu64 ": expected at most %" PRId64 " tokens, got %" PRId32 " and %" PRId32 " more.", sequence,
                          most, s->length, tokens);
        const int32_t entries = pages_of(cache, s->length + tokens), last = s->length / cache->page_tokens;
        int32_t *table = table_of(cache, *s);
        const uint32_t shared = tokens > 0 && s->length % cache->page_tokens != 0 ? block_of(cache, *s, table[last]) : none;
        const bool copies = shared != none && (cache->pages[shared].refs > 1 || cache->pages.is_held(shared));
        const uint32_t needed = static_cast<uint32_t>(entries > s->entries ? entries - s->entries : 0) + (copies ? 1 : 0);
        if (needed > cache->pages.free_frames()) {
            status = make_room(cache, lock, s, needed, timeout_ns, deadline, failures, error);
            if (status != TESS_STATE_OK) return status;
            continue;
        }
        use(cache, *s);
        for (; s->entries < entries; s->entries++) table[s->entries] = static_cast<int32_t>(cache->pages[cache->pages.make()].frame);
        if (s->reserved < tokens) s->reserved = tokens;
        if (!copies) return TESS_STATE_OK;
        const TessPageCopy pair = {table[last], static_cast<int32_t>(cache->pages[cache->pages.make()].frame)};
        table[last] = pair.to;
        s->source = shared;
        if (copy) {
            *copy = pair;
            return TESS_STATE_OK;
        }
        s->busy = true;
        lock.let_go();
        cache->store.copy(static_cast<uint32_t>(pair.from), static_cast<uint32_t>(pair.to));
        lock.take();
        s->busy = false;
        drop_source(cache, *s);
        lock.tell();
        return TESS_STATE_OK;
    }
}

TessStateStatus tess_cache_commit(TessCache *cache, TessSequence sequence, int32_t tokens, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "commit: expected a cache, got null.");
    Locked lock(cache);
    Sequence *s = find(cache, sequence, error);
    if (!s) return TESS_STATE_SEQUENCE;
    const TessStateStatus status = expect_in_memory(cache, *s, error);
    if (status != TESS_STATE_OK) return status;
    if (tokens < 0 || tokens > s->reserved)
        return refuse(error, TESS_STATE_LENGTH,
                      "commit to sequence %" PRIu64 ": expected 0 ..= %" PRId32 " tokens, which are reserved, got %" PRId32 ".", sequence,
                      s->reserved, tokens);
    if (tokens == 0) return TESS_STATE_OK;
    drop_source(cache, *s);
    s->length += tokens, s->reserved -= tokens;
    use(cache, *s);
    lock.tell();
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_truncate(TessCache *cache, TessSequence sequence, int32_t length, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "truncate: expected a cache, got null.");
    Locked lock(cache);
    Sequence *s = find(cache, sequence, error);
    if (!s) return TESS_STATE_SEQUENCE;
    const TessStateStatus status = expect_in_memory(cache, *s, error);
    if (status != TESS_STATE_OK) return status;
    if (s->pins > 0)
        return refuse(error, TESS_STATE_PINNED, "truncate: step %" PRIu64 " reads sequence %" PRIu64 ". Release it first.", s->step,
                      sequence);
    if (length < 0 || length > s->length || (length > 0 && was_pruned(*s, length)))
        return refuse(error, TESS_STATE_LENGTH, "truncate of sequence %" PRIu64 " to %" PRId32 ": expected 0 ..= %" PRId32 "%s.", sequence,
                      length, s->length, s->begin > s->keep ? ", and not among the tokens that were pruned" : "");
    undo_copy(cache, *s);
    shorten(cache, *s, pages_of(cache, length));
    if (length < s->published) unpublish(cache, *s);
    s->length = length, s->reserved = 0;
    if (length <= s->keep) s->begin = s->keep = 0;
    use(cache, *s);
    lock.tell();
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_prune(TessCache *cache, TessSequence sequence, int32_t window, int32_t keep, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "prune: expected a cache, got null.");
    Locked lock(cache);
    Sequence *s = find(cache, sequence, error);
    if (!s) return TESS_STATE_SEQUENCE;
    const TessStateStatus status = expect_in_memory(cache, *s, error);
    if (status != TESS_STATE_OK) return status;
    if (window < 0 || keep < 0)
        return refuse(error, TESS_STATE_LENGTH,
                      "prune of sequence %" PRIu64 ": expected a window and a count to keep of 0 or more, got %" PRId32 " and %" PRId32 ".",
                      sequence, window, keep);
    if (window >= s->length) return TESS_STATE_OK;
    const int32_t begin = s->length - window;
    const int32_t kept = s->begin > 0 && s->keep < keep ? s->keep : keep;  // what was pruned does not come back
    if (begin <= kept || begin <= s->begin) return TESS_STATE_OK;
    int32_t *table = table_of(cache, *s);
    bool dropped = false;
    for (int32_t e = pages_of(cache, kept); e < begin / cache->page_tokens; e++)
        if (table[e] != no_entry) drop(cache, *s, block_of(cache, *s, table[e])), table[e] = no_entry, dropped = true;
    if (dropped) unpublish(cache, *s);
    s->begin = begin, s->keep = kept;
    lock.tell();
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_tables(TessCache *cache, const TessSequence *sequences, int32_t n, int32_t width, int32_t *table,
                                  int32_t *length, int32_t *begin, uint64_t *step, TessStateError *error) {
    if (!cache || !step || n < 0 || width < 0 || (n > 0 && (!sequences || (width > 0 && !table))))
        return refuse(error, TESS_STATE_ARGUMENT,
                      "tables: expected a cache, sequences, a table and a place for the step, got null or a number below 0.");
    Locked lock(cache);
    if (n > cache->sequence_count)
        return refuse(error, TESS_STATE_ARGUMENT, "tables: expected at most %" PRId32 " sequences, as the cache has, got %" PRId32 ".",
                      cache->sequence_count, n);
    Step *free_step = nullptr;
    for (int32_t i = 0; i < cache->step_count && !free_step; i++)
        if (cache->steps[i].number == 0) free_step = &cache->steps[i];
    if (!free_step)
        return refuse(error, TESS_STATE_STEPS,
                      "tables: expected at most %" PRId32 " running steps; all run. Release one, or create the cache with more.",
                      cache->step_count);
    for (int32_t i = 0; i < n; i++) {
        const Sequence *s = find(cache, sequences[i], error);
        if (!s) return TESS_STATE_SEQUENCE;
        const TessStateStatus status = expect_in_memory(cache, *s, error);
        if (status != TESS_STATE_OK) return status;
        if (s->entries > width)
            return refuse(error, TESS_STATE_ARGUMENT,
                          "tables: sequence %" PRIu64 " has %" PRId32 " pages; expected a width of at least that, got %" PRId32 ".",
                          sequences[i], s->entries, width);
    }
    free_step->number = cache->next_step++, free_step->count = n;
    TessSequence *pinned = cache->pinned + (free_step - cache->steps) * cache->sequence_count;
    for (int32_t i = 0; i < n; i++) {
        Sequence &s = cache->sequences[sequences[i] & UINT32_MAX];
        pinned[i] = sequences[i];
        s.pins++, s.step = free_step->number;
        use(cache, s);
        int32_t *row = table + static_cast<int64_t>(i) * width;
        std::memcpy(row, table_of(cache, s), static_cast<size_t>(s.entries) * sizeof *row);
        std::memset(row + s.entries, 0xff, static_cast<size_t>(width - s.entries) * sizeof *row);  // no_entry
        if (length) length[i] = s.length;
        if (begin) begin[i] = s.begin;
    }
    *step = free_step->number;
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_release(TessCache *cache, uint64_t step, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "release: expected a cache, got null.");
    Locked lock(cache);
    Step *ended = nullptr;
    uint64_t oldest = cache->next_step;
    for (int32_t i = 0; i < cache->step_count; i++) {
        Step &s = cache->steps[i];
        if (s.number == step && step != 0) ended = &s;
        else if (s.number != 0 && s.number < oldest) oldest = s.number;
    }
    if (!ended)
        return refuse(error, TESS_STATE_ARGUMENT, "release: there is no step %" PRIu64 "; it was released, or `tables` never gave it.",
                      step);
    const TessSequence *pinned = cache->pinned + (ended - cache->steps) * cache->sequence_count;
    for (int32_t i = 0; i < ended->count; i++)
        if (Sequence *s = find(cache, pinned[i], nullptr)) s->pins--;
    ended->number = 0;
    cache->pages.ended(oldest);
    lock.tell();
    return TESS_STATE_OK;
}

static void describe(const TessCache *cache, const Sequence &s, TessCacheInfo *info) {
    *info = {number_of(cache, s), s.key, s.length, s.begin, s.keep, s.reserved, s.entries, s.pins, s.where};
}

TessStateStatus tess_cache_info(TessCache *cache, TessSequence sequence, TessCacheInfo *info, TessStateError *error) {
    if (!cache || !info) return refuse(error, TESS_STATE_ARGUMENT, "info: expected a cache and a place for what is known, got null.");
    Locked lock(cache);
    const Sequence *s = find(cache, sequence, error);
    if (!s) return TESS_STATE_SEQUENCE;
    describe(cache, *s, info);
    return TESS_STATE_OK;
}

int32_t tess_cache_sequences(TessCache *cache, TessCacheInfo *info, int32_t capacity) {
    if (!cache) return 0;
    Locked lock(cache);
    int32_t written = 0;
    for (int32_t i = 0; i < cache->sequence_count && written < capacity && info; i++)
        if ((cache->sequences[i].generation & 1) != 0) describe(cache, cache->sequences[i], &info[written++]);
    return cache->open;
}

void tess_cache_counts(TessCache *cache, TessCacheCounts *counts) {
    if (!cache || !counts) return;
    Locked lock(cache);
    const Pages &p = cache->pages;
    const uint32_t used = p.frames() - p.free_frames() - p.held() - p.moving();
    *counts = {static_cast<int32_t>(p.free_frames()),
               static_cast<int32_t>(used),
               static_cast<int32_t>(p.moving()),
               static_cast<int32_t>(p.held()),
               static_cast<int32_t>(p.slots() - p.free_slots()),
               cache->damaged};
}

TessStateStatus tess_cache_copy(TessCache *cache, TessPageCopy copy, TessStateError *error) {
    if (!cache) return refuse(error, TESS_STATE_ARGUMENT, "copy: expected a cache, got null.");
    if (copy.from == -1 && copy.to == -1) return TESS_STATE_OK;
    const auto most = static_cast<int32_t>(cache->pages.frames());
    if (!cache->can_copy)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "copy: this cache does not know its pages' memory, or the host does not address it. Copy by a kernel.");
    if (copy.from < 0 || copy.from >= most || copy.to < 0 || copy.to >= most || copy.from == copy.to)
        return refuse(error, TESS_STATE_ARGUMENT, "copy: expected two pages of 0 ..< %" PRId32 ", got %" PRId32 " and %" PRId32 ".", most,
                      copy.from, copy.to);
    cache->store.copy(static_cast<uint32_t>(copy.from), static_cast<uint32_t>(copy.to));
    return TESS_STATE_OK;
}

}  // extern "C"
