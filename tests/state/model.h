// What the model of a cache knows.
#pragma once
#include <random>
#include <vector>

#include "tests/state/memory.h"

namespace tessera::test_state {

constexpr int32_t page_tokens = 4, page_count = 24, sequence_count = 8, sequence_pages = 9, outside_pages = 20, step_count = 3;

enum class Home { host, hooks, files };

struct Hooks {
    Memory *memory;
    std::mt19937_64 *random;
    uint64_t failures = 0;
    static int32_t fails(void *state) {
        auto &self = *static_cast<Hooks *>(state);
        if ((*self.random)() % 40 != 0) return 0;
        self.failures++;
        return 1;
    }
    static int32_t get(void *state, int32_t piece, int32_t page, void *host, uint64_t bytes) {
        if (fails(state)) return 1;
        std::memcpy(host, static_cast<Hooks *>(state)->memory->at(piece, page), bytes);
        return 0;
    }
    static int32_t put(void *state, int32_t piece, int32_t page, const void *host, uint64_t bytes) {
        if (fails(state)) return 1;
        std::memcpy(static_cast<Hooks *>(state)->memory->at(piece, page), host, bytes);
        return 0;
    }
    // Any of them, and some that are none.
    static int32_t choose(void *state, int32_t, const TessCacheCandidate *candidates, int32_t count, TessSequence *chosen) {
        auto &self = *static_cast<Hooks *>(state);
        int32_t written = 0;
        for (int32_t i = 0; i < count; i++)
            if ((*self.random)() % 3 != 0) chosen[written++] = (*self.random)() % 8 == 0 ? 12345 : candidates[i].sequence;
        return written;
    }
};

// One sequence as the model knows it. A page is a number that two sequences share where they share the page.
struct Model {
    std::vector<uint64_t> tokens;
    std::vector<int> pages;  // -1: pruned
    int32_t begin = 0, keep = 0, reserved = 0, pins = 0;
    int source = -1;  // a page that a copy still reads
    std::vector<int32_t> prompt;
    uint64_t key = 0;
    int32_t length() const { return static_cast<int32_t>(tokens.size()); }
    bool has(int32_t t) const { return t < keep || t >= begin; }
};

struct Snapshot {
    uint64_t step;
    std::vector<TessSequence> sequences;
    struct Row {
        std::vector<int32_t> table;
        std::vector<std::pair<int32_t, uint64_t>> tokens;  // position, value
    };
    std::vector<Row> rows;
};

inline int32_t pages_for(int32_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

}  // namespace tessera::test_state
