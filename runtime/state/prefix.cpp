// Prompts that several sequences begin with: found by a hash of whole pages of tokens, each over the one before it.
#include <cstring>

#include "runtime/state/manager.h"
#include "runtime/state/xxh64.h"

namespace tessera::state {

namespace {

uint64_t hash_of_page(const TessCache *cache, const int32_t *tokens, int32_t page, uint64_t before) {
    const auto count = static_cast<size_t>(cache->page_tokens);
    return xxh64(tokens + static_cast<size_t>(page) * count, count * sizeof *tokens, before);
}

PrefixNode *nodes_of(TessCache *cache, const Sequence &s) { return cache->nodes + (&s - cache->sequences) * cache->prefix_pages; }
int32_t *tokens_of(TessCache *cache, const Sequence &s) { return cache->prefix + (&s - cache->sequences) * cache->prefix_tokens; }

}  // namespace

void unpublish(TessCache *cache, Sequence &s) {
    PrefixNode *nodes = nodes_of(cache, s);
    for (int32_t page = 0; page < s.published / cache->page_tokens; page++) {
        const auto own = static_cast<uint32_t>(&nodes[page] - cache->nodes);
        uint32_t *from = &cache->buckets[nodes[page].bucket];
        while (*from != own) from = &cache->nodes[*from].next;
        *from = nodes[page].next;
    }
    s.published = 0;
}

}  // namespace tessera::state

using namespace tessera::state;

extern "C" {

TessStateStatus tess_cache_publish(TessCache *cache, TessSequence sequence, const int32_t *tokens, int32_t count, TessStateError *error) {
    if (!cache || count < 0 || (count > 0 && !tokens))
        return refuse(error, TESS_STATE_ARGUMENT, "publish: expected a cache and tokens, got null or a count below 0.");
    Locked lock(cache);
    Sequence *s = find(cache, sequence, error);
    if (!s) return TESS_STATE_SEQUENCE;
    const TessStateStatus status = expect_in_memory(cache, *s, error);
    if (status != TESS_STATE_OK) return status;
    const int32_t most = s->length < cache->prefix_tokens ? s->length : cache->prefix_tokens;
    if (count > most || s->begin > 0)
        return refuse(error, TESS_STATE_LENGTH,
                      "publish of %" PRId32 " tokens of sequence %" PRIu64 ": expected at most %" PRId32 " (its length is %" PRId32
                      ", the cache keeps %" PRId32 ")%s.",
                      count, sequence, most, s->length, cache->prefix_tokens, s->begin > 0 ? "; it was pruned" : "");
    unpublish(cache, *s);
    if (count > 0) std::memcpy(tokens_of(cache, *s), tokens, static_cast<size_t>(count) * sizeof *tokens);
    s->published = count;
    PrefixNode *nodes = nodes_of(cache, *s);
    uint64_t hash = 0;
    for (int32_t page = 0; page < count / cache->page_tokens; page++) {
        hash = hash_of_page(cache, tokens, page, hash);
        uint32_t &bucket = cache->buckets[hash & cache->bucket_mask];
        nodes[page] = {hash, bucket, static_cast<uint32_t>(hash & cache->bucket_mask)};
        bucket = static_cast<uint32_t>(&nodes[page] - cache->nodes);
    }
    return TESS_STATE_OK;
}

TessStateStatus tess_cache_prefix(TessCache *cache, const int32_t *tokens, int32_t count, TessSequence *sequence, int32_t *matched,
                                  TessStateError *error) {
    if (!cache || !sequence || !matched || count < 0 || (count > 0 && !tokens))
        return refuse(error, TESS_STATE_ARGUMENT,
                      "prefix: expected a cache, tokens and places for the answer, got null or a count below 0.");
    *sequence = 0, *matched = 0;
    if (cache->prefix_pages == 0) return TESS_STATE_OK;
    Locked lock(cache);
    uint64_t hash = 0;
    Sequence *best = nullptr;
    for (int32_t page = 0; page < count / cache->page_tokens; page++) {
        hash = hash_of_page(cache, tokens, page, hash);
        Sequence *found = nullptr;
        for (uint32_t n = cache->buckets[hash & cache->bucket_mask]; n != none; n = cache->nodes[n].next) {
            Sequence &s = cache->sequences[n / static_cast<uint32_t>(cache->prefix_pages)];
            if (cache->nodes[n].hash != hash || n % static_cast<uint32_t>(cache->prefix_pages) != static_cast<uint32_t>(page)) continue;
            if (s.where == TESS_CACHE_LOST || (found && found->where == TESS_CACHE_MEMORY)) continue;
            const auto bytes = (static_cast<size_t>(page) + 1) * static_cast<size_t>(cache->page_tokens) * sizeof *tokens;
            if (std::memcmp(tokens_of(cache, s), tokens, bytes) != 0) continue;
            if (!found || s.where == TESS_CACHE_MEMORY) found = &s;
        }
        if (!found) break;
        best = found;
        *matched = (page + 1) * cache->page_tokens;
    }
    if (!best) return TESS_STATE_OK;
    use(cache, *best);
    *sequence = number_of(cache, *best);
    return TESS_STATE_OK;
}

}  // extern "C"
