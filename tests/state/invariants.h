// What has to hold of a cache between any two calls, found by counting everything again. The cache must not be in use.
#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "runtime/state/manager.h"

namespace tessera::test_state {

// Empty where everything holds; else what does not.
inline std::string broken_invariant(TessCache *cache) {
    using namespace tessera::state;
    Pages &pages = cache->pages;
    std::vector<uint32_t> refs(pages.blocks()), users(pages.blocks());
    int32_t open = 0;
    for (int32_t i = 0; i < cache->sequence_count; i++) {
        const Sequence &s = cache->sequences[i];
        if ((s.generation & 1) == 0) continue;
        open++;
        const bool in_memory = s.where == TESS_CACHE_MEMORY || s.where == TESS_CACHE_ARRIVING;
        if (s.entries != pages_of(cache, s.length + s.reserved)) return "a table has other pages than its tokens ask for";
        if (s.length < 0 || s.begin > s.length || s.keep > s.length) return "a length is not what it may be";
        for (int32_t e = 0; e < s.entries; e++) {
            const int32_t entry = table_of(cache, s)[e];
            if (entry == no_entry) {
                if (e < pages_of(cache, s.keep) || e >= s.begin / cache->page_tokens) return "a page is missing that was not pruned";
                continue;
            }
            const uint32_t block = block_of(cache, s, entry);
            if (block >= pages.blocks()) return "an entry names no page";
            refs[block]++;
            if (in_memory) users[block]++;
            // Whoever may write has the page alone.
            if (s.reserved > 0 && e >= s.length / cache->page_tokens && pages[block].refs != 1)
                return "a page is shared that may be written";
        }
        if (s.source != none) {
            if (s.reserved == 0 || !in_memory) return "a copy is open and nothing is reserved";
            refs[s.source]++, users[s.source]++;
        }
        if (s.pins > 0 && s.where != TESS_CACHE_MEMORY) return "a pinned sequence is not in memory";
    }
    if (open != cache->open) return "the count of open sequences is wrong";
    uint32_t frames = 0, slots = 0, moving = 0;
    std::map<uint32_t, uint32_t> of_frame, of_slot;
    for (uint32_t b = 0; b < pages.blocks(); b++) {
        const Block &block = pages[b];
        if (block.at == At::unused) {
            if (refs[b] != 0) return "a table names what is not there";
            continue;
        }
        const bool has_frame = block.at != At::outside, has_slot = block.at != At::memory;
        if (block.refs != refs[b]) return "a page's count is not that of the entries that name it";
        if (block.users != users[b]) return "a page's users are not those of the sequences in memory";
        if (block.refs == 0 && block.at != At::leaving) return "a page that nobody names is not free";
        if (block.users > 0 && block.at == At::outside) return "a sequence in memory names a page that is outside";
        if ((block.frame != none) != has_frame || (block.slot != none) != has_slot) return "a page is not where it says";
        if (has_frame && (pages.block_of(block.frame) != b || !of_frame.emplace(block.frame, b).second))
            return "two contents have one page";
        if (has_slot && !of_slot.emplace(block.slot, b).second) return "two contents have one place outside";
        frames += has_frame, slots += has_slot, moving += has_frame && has_slot;
    }
    if (moving != pages.moving()) return "the count of moving pages is wrong";
    if (frames + pages.free_frames() + pages.held() != pages.frames()) return "pages do not add up";
    if (slots + pages.free_slots() != pages.slots()) return "places outside do not add up";
    return "";
}

}  // namespace tessera::test_state
