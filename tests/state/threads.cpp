// Eight threads on one cache, each with sequences of its own and forks of shared prompts. Built with the thread sanitizer; says nothing and
// ends with 0 where everything is right. The first argument is how many operations each thread makes.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/state/memory.h"

namespace tessera::test_state {

namespace {

constexpr int32_t page_tokens = 4, pages = 96, threads = 8, sequence_pages = 8, prompt_tokens = 10;
std::atomic<int> wrong{0};

void fail(const char *what, const TessStateError &error) {
    if (wrong++ < 10) std::fprintf(stderr, "%s: %s\n", what, error.text);
}

bool is_allowed(TessStateStatus status) {
    return status == TESS_STATE_OK || status == TESS_STATE_FULL || status == TESS_STATE_TIME || status == TESS_STATE_SPACE ||
           status == TESS_STATE_OUT || status == TESS_STATE_MOVING || status == TESS_STATE_PINNED || status == TESS_STATE_STEPS ||
           status == TESS_STATE_SEQUENCES || status == TESS_STATE_RESERVED;
}

struct Own {
    TessSequence id;
    std::vector<uint64_t> tokens;
};

class Worker {
public:
    Worker(TessCache *cache, Memory &memory, uint64_t seed, const std::vector<Own> &prompts)
        : cache_(cache), memory_(memory), random_(seed), next_(seed << 32), prompts_(prompts) {}

    void run(int operations) {
        for (int i = 0; i < operations; i++) {
            if (own_.size() < 3) open();
            if (own_.empty()) continue;
            Own &s = own_[random_() % own_.size()];
            switch (random_() % 8) {
            case 0: expect("offload", tess_cache_offload(cache_, s.id, &error_)); break;
            case 1:
                expect("prefetch", tess_cache_prefetch(cache_, s.id, random_() % 2 * 2000000, &error_));
                expect("wait", tess_cache_wait(cache_, s.id, TESS_STATE_FOREVER, &error_));
                break;
            case 2: close(s); break;
            case 3: branch(s); break;
            default: append(s); break;
            }
        }
        while (!own_.empty()) close(own_.back());
    }

private:
    TessCache *cache_;
    Memory &memory_;
    std::mt19937_64 random_;
    uint64_t next_;
    const std::vector<Own> &prompts_;
    std::vector<Own> own_;
    TessStateError error_ = {};

    bool expect(const char *what, TessStateStatus status) {
        if (!is_allowed(status)) fail(what, error_);
        return status == TESS_STATE_OK;
    }

    void open() {
        const Own &prompt = prompts_[random_() % prompts_.size()];
        Own made;
        if (random_() % 2 == 0) {
            if (!expect("open", tess_cache_open(cache_, 1, &made.id, &error_))) return;
        } else {
            const auto at = static_cast<int32_t>(random_() % (prompt.tokens.size() + 1));
            if (!expect("fork", tess_cache_fork(cache_, prompt.id, at, 2, &made.id, &error_))) return;
            made.tokens.assign(prompt.tokens.begin(), prompt.tokens.begin() + at);
        }
        own_.push_back(made);
    }

    void branch(const Own &s) {
        if (own_.size() > 4) return;
        Own made = s;
        if (expect("fork", tess_cache_fork(cache_, s.id, static_cast<int32_t>(s.tokens.size()), 3, &made.id, &error_)))
            own_.push_back(made);
    }

    void close(Own &s) {
        expect("close", tess_cache_close(cache_, s.id, &error_));
        std::swap(s, own_.back());
        own_.pop_back();
    }

    // A step: every token is written once and read whole.
    void append(Own &s) {
        const auto tokens = static_cast<int32_t>(random_() % 4);
        if (s.tokens.size() + static_cast<size_t>(tokens) > sequence_pages * page_tokens) return;
        TessPageCopy copy;
        const bool own_copy = random_() % 2 == 0;
        if (!expect("reserve", tess_cache_reserve(cache_, s.id, tokens, random_() % 3 * 1000000, own_copy ? nullptr : &copy, &error_)))
            return;
        if (!own_copy) expect("copy", tess_cache_copy(cache_, copy, &error_));
        int32_t table[sequence_pages], length;
        uint64_t step;
        if (!expect("tables", tess_cache_tables(cache_, &s.id, 1, sequence_pages, table, &length, nullptr, &step, &error_))) {
            // Too many steps run: what was reserved and copied stays.
            if (!own_copy) expect("truncate", tess_cache_truncate(cache_, s.id, static_cast<int32_t>(s.tokens.size()), &error_));
            return;
        }
        if (static_cast<size_t>(length) != s.tokens.size()) fail("length", error_);
        for (int32_t i = 0; i < tokens; i++) {
            const auto t = static_cast<int32_t>(s.tokens.size());
            memory_.write(table[t / page_tokens], t % page_tokens, next_);
            s.tokens.push_back(next_++);
        }
        for (size_t t = 0; t < s.tokens.size(); t++)
            if (!memory_.holds(table[t / page_tokens], static_cast<int32_t>(t % page_tokens), s.tokens[t]))
                fail("a token is not what was written", error_);
        expect("commit", tess_cache_commit(cache_, s.id, tokens, &error_));
        expect("release", tess_cache_release(cache_, step, &error_));
    }
};

int run(int operations, bool files) {
    Memory memory(pages, page_tokens);
    Folder folder;
    std::vector<unsigned char> outside(256 * memory.page_bytes());
    TessCacheConfig config = small_config(memory, pages, 48, sequence_pages);
    config.outside_pages = 256, config.steps = 6, config.no_sync = 1;
    files ? void(config.folder = folder.path().c_str()) : void(config.outside = outside.data());
    TessCache *cache = nullptr;
    TessStateError error = {};
    if (tess_cache_create(&config, &cache, &error) != TESS_STATE_OK) return std::fprintf(stderr, "%s\n", error.text), 1;
    std::vector<Own> prompts(2);
    for (Own &prompt : prompts) {  // shared by all threads, and sent away by all
        int32_t table[sequence_pages];
        uint64_t step;
        tess_cache_open(cache, 9, &prompt.id, &error);
        tess_cache_reserve(cache, prompt.id, prompt_tokens, 0, nullptr, &error);
        tess_cache_tables(cache, &prompt.id, 1, sequence_pages, table, nullptr, nullptr, &step, &error);
        for (int32_t t = 0; t < prompt_tokens; t++) {
            prompt.tokens.push_back(static_cast<uint64_t>(t) + 77);
            memory.write(table[t / page_tokens], t % page_tokens, prompt.tokens.back());
        }
        tess_cache_commit(cache, prompt.id, prompt_tokens, &error);
        tess_cache_release(cache, step, &error);
    }
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back([&, i] { Worker(cache, memory, static_cast<uint64_t>(i) + 1, prompts).run(operations); });
    all.emplace_back([&] {
        for (int i = 0; i < operations / 8; i++) {
            TessStateError ignored;
            const TessSequence id = prompts[static_cast<size_t>(i) % 2].id;
            TessCacheCounts counts;
            tess_cache_counts(cache, &counts);
            if (counts.free + counts.used + counts.moving + counts.held != pages) fail("pages do not add up", ignored);
            tess_cache_offload(cache, id, &ignored);
            tess_cache_prefetch(cache, id, 1000000, &ignored);
            tess_cache_wait(cache, id, TESS_STATE_FOREVER, &ignored);
        }
    });
    for (std::thread &thread : all) thread.join();
    for (const Own &prompt : prompts) tess_cache_close(cache, prompt.id, &error);
    TessCacheCounts counts;
    for (int i = 0; i < 1000; i++) {  // what nobody names any more may still be on its way
        tess_cache_counts(cache, &counts);
        if (counts.free == pages) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (counts.free != pages || counts.outside != 0)
        std::snprintf(error.text, sizeof error.text, "%d free, %d outside", counts.free, counts.outside), fail("pages are left", error);
    tess_cache_destroy(cache);
    if (!memory.gaps_are_whole()) fail("bytes between pages were written", error);
    if (files && !folder.files("page-").empty()) fail("files are left", error);
    return wrong;
}

}  // namespace

}  // namespace tessera::test_state

int main(int count, char **arguments) {
    const int operations = count > 1 ? std::atoi(arguments[1]) : 1000;
    return tessera::test_state::run(operations, false) + tessera::test_state::run(operations / 10, true) == 0 ? 0 : 1;
}
