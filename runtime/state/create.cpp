// The cache's beginning and end: its memory, its folder, its thread.
#include <cstdlib>
#include <cstring>

#include "runtime/state/manager.h"

namespace tessera::state {

namespace {

struct Range {
    const char *name;
    int64_t value, least, most;
};

TessStateStatus check(const TessCacheConfig &c, TessStateError *error) {
    const Range ranges[] = {{"pages", c.pages, 1, 1 << 30},
                            {"page_tokens", c.page_tokens, 1, 1 << 16},
                            {"sequences", c.sequences, 1, 1 << 20},
                            {"sequence_pages", c.sequence_pages, 1, INT32_MAX / (c.page_tokens > 0 ? c.page_tokens : 1)},
                            {"steps", c.steps, 0, 1024},
                            {"prefix_tokens", c.prefix_tokens, 0, INT32_MAX},
                            {"pieces", c.pieces, 0, INT32_MAX},
                            {"outside_pages", c.outside_pages, 0, 1 << 30}};
    for (const Range &r : ranges)
        if (r.value < r.least || r.value > r.most)
            return refuse(error, TESS_STATE_ARGUMENT, "config.%s: expected %" PRId64 " ..= %" PRId64 ", got %" PRId64 ".", r.name, r.least,
                          r.most, r.value);
    if (static_cast<int64_t>(c.prefix_tokens / c.page_tokens) * c.sequences >= INT32_MAX)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "config.prefix_tokens: expected fewer than 2^31 pages of all sequences, got more. Keep fewer tokens.");
    for (int32_t p = 0; p < c.pieces; p++) {
        if (!c.piece) return refuse(error, TESS_STATE_ARGUMENT, "config.piece: expected %" PRId32 " pieces, got null.", c.pieces);
        if (c.piece[p].bytes == 0 || c.piece[p].bytes > UINT64_C(1) << 40 || c.piece[p].stride < c.piece[p].bytes ||
            (!c.piece[p].data && !c.hooks.get))
            return refuse(error, TESS_STATE_ARGUMENT,
                          "config.piece[%" PRId32 "]: expected data, 1 ..= 2^40 bytes and a stride of at least that, got %s, %" PRIu64
                          " and %" PRIu64 ".",
                          p, c.piece[p].data ? "data" : "null", c.piece[p].bytes, c.piece[p].stride);
    }
    if ((c.hooks.get == nullptr) != (c.hooks.put == nullptr))
        return refuse(error, TESS_STATE_ARGUMENT, "config.hooks: expected both of get and put or neither, got one.");
    if (c.outside_pages > 0 && (c.pieces == 0 || (c.outside != nullptr) == (c.folder != nullptr)))
        return refuse(error, TESS_STATE_ARGUMENT,
                      "config.outside_pages: expected pieces, and one of outside and folder, with %" PRId32 " pages outside; got %s.",
                      c.outside_pages,
                      c.pieces == 0 ? "no pieces"
                      : c.outside   ? "both"
                                    : "neither");
    return TESS_STATE_OK;
}

// Parts of one piece of memory, one behind another; with null it only counts.
class Parts {
public:
    explicit Parts(void *memory) : memory_(static_cast<char *>(memory)) {}
    template <class T>
    T *take(uint64_t count) {
        return static_cast<T *>(take_bytes(count * sizeof(T)));
    }
    void *take_bytes(uint64_t bytes) {
        void *at = memory_ ? memory_ + bytes_ : nullptr;
        bytes_ += (bytes + 15) / 16 * 16;
        return at;
    }
    uint64_t bytes() const { return bytes_; }

private:
    char *memory_;
    uint64_t bytes_ = 0;
};

struct Layout {
    TessCache *cache;
    void *pages, *store;
    uint64_t bytes;
};

Layout lay_out(const TessCacheConfig &c, void *memory) {
    Parts parts(memory);
    auto *cache = parts.take<TessCache>(1);
    const auto sequences = static_cast<uint64_t>(c.sequences), prefix_pages = static_cast<uint64_t>(c.prefix_tokens / c.page_tokens);
    const uint64_t steps = c.steps > 0 ? static_cast<uint64_t>(c.steps) : 4;
    uint64_t buckets = 1;
    while (buckets < prefix_pages * sequences) buckets *= 2;
    Layout layout = {cache, nullptr, nullptr, 0};
    auto *sequence = parts.take<Sequence>(sequences);
    auto *tables = parts.take<int32_t>(sequences * static_cast<uint64_t>(c.sequence_pages));
    auto *step = parts.take<Step>(steps);
    auto *pinned = parts.take<TessSequence>(steps * sequences);
    auto *candidates = parts.take<TessCacheCandidate>(sequences);
    auto *chosen = parts.take<TessSequence>(sequences);
    auto *ids = parts.take<uint64_t>(static_cast<uint64_t>(c.sequence_pages));
    auto *prefix = parts.take<int32_t>(sequences * static_cast<uint64_t>(c.prefix_tokens));
    auto *nodes = parts.take<PrefixNode>(sequences * prefix_pages);
    auto *bucket = parts.take<uint32_t>(buckets);
    layout.pages = parts.take_bytes(Pages::bytes(static_cast<uint32_t>(c.pages), static_cast<uint32_t>(c.outside_pages)));
    layout.store = parts.take_bytes(Store::bytes(c));
    layout.bytes = parts.bytes();
    if (!cache) return layout;
    cache->sequences = sequence, cache->tables = tables, cache->steps = step, cache->pinned = pinned, cache->candidates = candidates;
    cache->chosen = chosen, cache->ids = ids, cache->prefix = prefix, cache->nodes = nodes, cache->buckets = bucket;
    cache->page_tokens = c.page_tokens, cache->sequence_count = c.sequences, cache->sequence_pages = c.sequence_pages;
    cache->step_count = static_cast<int32_t>(steps), cache->prefix_tokens = c.prefix_tokens,
    cache->prefix_pages = static_cast<int32_t>(prefix_pages);
    cache->bucket_mask = static_cast<uint32_t>(buckets - 1);
    std::memset(bucket, 0xff, buckets * sizeof *bucket);  // none
    for (uint64_t s = 0; s < sequences; s++) sequence[s].next = s + 1 < sequences ? static_cast<uint32_t>(s + 1) : none;
    return layout;
}

// What an earlier cache left in the folder. Contents that several sequences name are found by their ids.
class Recovery {
public:
    Recovery(TessCache *cache, TessStateError *error) : cache_(cache), error_(error) {}
    ~Recovery() { std::free(map_); }

    TessStateStatus run(bool recover) {
        if (!cache_->store.has_files()) return TESS_STATE_OK;
        TessStateStatus status = list(recover ? highest : remove_all);
        if (status != TESS_STATE_OK || !recover) return status;
        cache_->pages.ids_from(highest_ + 1);
        while (mask_ < 2 * static_cast<uint64_t>(cache_->pages.slots())) mask_ = 2 * mask_ + 1;
        map_ = static_cast<Entry *>(std::calloc(mask_ + 1, sizeof *map_));
        if (!map_) return refuse(error_, TESS_STATE_MEMORY, "the system gives no memory to look through the folder.");
        status = list(open_sequence);
        cache_->pages.ids_from(highest_ + 1);
        if (status == TESS_STATE_OK) status = status_;
        return status == TESS_STATE_OK ? list(remove_orphan) : status;
    }

private:
    struct Entry {
        uint64_t id;  // 0: none
        uint32_t block;
    };
    TessCache *cache_;
    TessStateError *error_;
    Entry *map_ = nullptr;
    uint64_t mask_ = 1, highest_ = 0;
    TessStateStatus status_ = TESS_STATE_OK;

    TessStateStatus list(void (*found)(void *, char, uint64_t)) { return cache_->store.list(found, this, error_); }
    static Recovery &of(void *self) { return *static_cast<Recovery *>(self); }

    static void highest(void *self, char, uint64_t id) { of(self).highest_ = of(self).highest_ > id ? of(self).highest_ : id; }
    static void remove_all(void *self, char what, uint64_t id) {
        what == 'p' ? of(self).cache_->store.remove(id) : of(self).cache_->store.remove_sequence(id);
    }
    static void remove_orphan(void *self, char what, uint64_t id) {
        if (what == 'p' && of(self).at(id).id == 0) of(self).cache_->store.remove(id);
    }
    static void open_sequence(void *self, char what, uint64_t id) {
        if (what == 's' && of(self).status_ == TESS_STATE_OK) of(self).open(id);
    }

    // The place of an id: its own, or where it would be.
    Entry &at(uint64_t id) {
        uint64_t place = id * 0x9E3779B97F4A7C15 >> 20 & mask_;
        while (map_[place].id != 0 && map_[place].id != id) place = (place + 1) & mask_;
        return map_[place];
    }

    void open(uint64_t id) {
        StoredSequence stored;
        const TessStateStatus status = cache_->store.get_sequence(id, &stored, cache_->ids, cache_->sequence_pages, error_);
        if (status == TESS_STATE_DAMAGED) {  // as if it had never been there
            cache_->damaged++;
            cache_->store.remove_sequence(id);
            return;
        }
        if (status != TESS_STATE_OK) {
            status_ = status;
            return;
        }
        if (cache_->open == cache_->sequence_count) {
            status_ = refuse(error_, TESS_STATE_SEQUENCES,
                             "the folder has more sequences than config.sequences (%" PRId32 "). Allow more, or do not recover.",
                             cache_->sequence_count);
            return;
        }
        Sequence &s = take_sequence(cache_, stored.key);
        s.id = id, s.length = stored.length, s.begin = stored.begin, s.keep = stored.keep, s.entries = stored.entries;
        s.where = TESS_CACHE_OUTSIDE;
        int32_t *table = table_of(cache_, s);
        for (int32_t e = 0; e < s.entries; e++) table[e] = no_entry;
        for (int32_t e = 0; e < s.entries && status_ == TESS_STATE_OK; e++)
            if (cache_->ids[e] != 0) enter(s, table[e], cache_->ids[e]);
    }

    void enter(Sequence &s, int32_t &entry, uint64_t id) {
        highest(this, 'p', id);
        Entry &known = at(id);
        if (known.id == 0) {
            if (cache_->pages.free_slots() == 0) {
                status_ = refuse(error_, TESS_STATE_SPACE,
                                 "the folder has more pages than config.outside_pages (%" PRIu32 "). Allow more, or do not recover.",
                                 cache_->pages.slots());
                return;
            }
            known = {id, cache_->pages.make_outside(id)};
            const TessStateStatus seen = cache_->store.look(id, error_);
            if (seen == TESS_STATE_FOREIGN) {
                status_ = seen;
                return;
            }
            if (seen == TESS_STATE_LOST) cache_->pages[known.block].lost = true, cache_->damaged++;
        }
        Block &b = cache_->pages[known.block];
        b.refs++;
        entry = static_cast<int32_t>(known.block);
        if (b.lost) s.where = TESS_CACHE_LOST;
    }
};

TessStateStatus start(TessCache *cache, TessStateError *error) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    const bool made = pthread_mutex_init(&cache->mutex, nullptr) == 0 && pthread_cond_init(&cache->changed, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    if (!made) return refuse(error, TESS_STATE_MEMORY, "the system gives no lock.");
    if (cache->has_thread && pthread_create(&cache->mover, nullptr, mover, cache) != 0)
        return refuse(error, TESS_STATE_MEMORY, "the system gives no thread. Set config.no_thread, and let who waits move pages.");
    return TESS_STATE_OK;
}

}  // namespace

}  // namespace tessera::state

using namespace tessera::state;

extern "C" {

TessStateStatus tess_cache_create(const TessCacheConfig *config, TessCache **cache, TessStateError *error) {
    if (!config || !cache) return refuse(error, TESS_STATE_ARGUMENT, "create: expected a config and a place for the cache, got null.");
    *cache = nullptr;
    if (config->size < sizeof *config)
        return refuse(error, TESS_STATE_ARGUMENT, "config.size: expected %zu, got %" PRIu64 ". Begin with tess_cache_config().",
                      sizeof *config, config->size);
    for (uint64_t byte = sizeof *config; byte < config->size; byte++)
        if (reinterpret_cast<const char *>(config)[byte] != 0)
            return refuse(error, TESS_STATE_ARGUMENT,
                          "config: expected 0 in fields after its first %zu bytes, which this library does not know.", sizeof *config);
    TessStateStatus status = check(*config, error);
    if (status != TESS_STATE_OK) return status;
    const uint64_t bytes = lay_out(*config, nullptr).bytes;
    void *memory = std::calloc(1, bytes);
    if (!memory) return refuse(error, TESS_STATE_MEMORY, "the system gives no %" PRIu64 " bytes. Ask for fewer pages or sequences.", bytes);
    const Layout layout = lay_out(*config, memory);
    TessCache *made = layout.cache;
    made->pages.place(layout.pages, static_cast<uint32_t>(config->pages), static_cast<uint32_t>(config->outside_pages));
    made->store = Store();
    made->hooks = config->hooks;
    made->first_move = made->last_move = none, made->next_step = 1;
    made->can_leave = config->outside_pages > 0, made->can_copy = config->pieces > 0 && !config->hooks.get;
    made->has_thread = made->can_leave && config->no_thread == 0;
    status = made->store.open(*config, layout.store, error);
    if (status == TESS_STATE_OK) status = Recovery(made, error).run(config->recover != 0);
    if (status == TESS_STATE_OK) status = start(made, error);
    if (status != TESS_STATE_OK) {
        made->store.close();
        std::free(memory);
        return status;
    }
    *cache = made;
    return TESS_STATE_OK;
}

void tess_cache_destroy(TessCache *cache) {
    if (!cache) return;
    {
        Locked lock(cache);
        while (!cache->has_thread && move_one(cache, lock)) {}
        cache->ending = true;
        pthread_cond_broadcast(&cache->changed);
    }
    if (cache->has_thread) pthread_join(cache->mover, nullptr);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->mutex);
    cache->store.close();
    std::free(cache);
}

}  // extern "C"
