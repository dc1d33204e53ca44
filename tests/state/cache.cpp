// The words of refusals, small cases that are read more easily than the model, and times.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "tests/state/faults.h"
#include "tests/state/invariants.h"
#include "tests/state/memory.h"

namespace tessera::test_state {

namespace {

struct Cache {
    TessCache *cache = nullptr;
    TessStateError error = {};
    explicit Cache(const TessCacheConfig &config) {
        const TessStateStatus status = tess_cache_create(&config, &cache, &error);
        INFO(error.text);
        REQUIRE(status == TESS_STATE_OK);
    }
    ~Cache() { tess_cache_destroy(cache); }
    Cache(const Cache &) = delete;

    TessSequence open(int32_t tokens, Memory *memory = nullptr, uint64_t first = 0) {
        TessSequence id = 0;
        REQUIRE(tess_cache_open(cache, first, &id, &error) == TESS_STATE_OK);
        append(id, tokens, memory, first);
        return id;
    }
    void append(TessSequence id, int32_t tokens, Memory *memory = nullptr, uint64_t first = 0) {
        std::vector<int32_t> table(64);
        int32_t length = 0;
        uint64_t step = 0;
        TessPageCopy copy;
        INFO(error.text);
        REQUIRE(tess_cache_reserve(cache, id, tokens, 0, &copy, &error) == TESS_STATE_OK);
        if (memory && copy.from >= 0) memory->copy(copy);
        REQUIRE(tess_cache_tables(cache, &id, 1, 64, table.data(), &length, nullptr, &step, &error) == TESS_STATE_OK);
        for (int32_t t = length; memory && t < length + tokens; t++)
            memory->write(table[static_cast<size_t>(t / memory->page_tokens())], t % memory->page_tokens(),
                          first * 1000 + static_cast<uint64_t>(t));
        REQUIRE(tess_cache_commit(cache, id, tokens, &error) == TESS_STATE_OK);
        REQUIRE(tess_cache_release(cache, step, &error) == TESS_STATE_OK);
        CHECK(broken_invariant(cache) == "");
    }
    bool holds(TessSequence id, Memory &memory, uint64_t first) {
        std::vector<int32_t> table(64);
        int32_t length = 0;
        uint64_t step = 0;
        if (tess_cache_tables(cache, &id, 1, 64, table.data(), &length, nullptr, &step, &error) != TESS_STATE_OK) return false;
        bool all = true;
        for (int32_t t = 0; t < length; t++)
            all = all && memory.holds(table[static_cast<size_t>(t / memory.page_tokens())], t % memory.page_tokens(),
                                      first * 1000 + static_cast<uint64_t>(t));
        return tess_cache_release(cache, step, &error) == TESS_STATE_OK && all;
    }
    void expect(TessStateStatus got, TessStateStatus expected, const char *words) {
        INFO(error.text);
        CHECK(std::string(tess_state_status_id(got)) == tess_state_status_id(expected));
        CHECK(std::string(error.text).find(words) != std::string::npos);
        CHECK(error.status == got);
        CHECK(broken_invariant(cache) == "");
    }
};

}  // namespace

TEST_CASE("every refusal of a cache says what was expected, what came and what to do") {
    Memory memory(4, 4);
    TessCacheConfig config = small_config(memory, 4, 2, 3);
    config.steps = 1;
    Cache c(config);
    const TessSequence a = c.open(6, &memory);
    TessSequence b = 0, other = 0;
    TessPageCopy copy;
    c.expect(tess_cache_reserve(c.cache, a, 7, 0, &copy, &c.error), TESS_STATE_LENGTH, "expected at most 12 tokens, got 6 and 7 more");
    c.expect(tess_cache_reserve(c.cache, a, -1, 0, &copy, &c.error), TESS_STATE_ARGUMENT, "expected a cache and 0 tokens or more");
    c.expect(tess_cache_commit(c.cache, a, 1, &c.error), TESS_STATE_LENGTH, "expected 0 ..= 0 tokens, which are reserved, got 1");
    c.expect(tess_cache_fork(c.cache, a, 7, 0, &b, &c.error), TESS_STATE_LENGTH, "at 7: expected 0 ..= 6");
    REQUIRE(tess_cache_reserve(c.cache, a, 1, 0, &copy, &c.error) == TESS_STATE_OK);
    c.expect(tess_cache_fork(c.cache, a, 5, 0, &b, &c.error), TESS_STATE_RESERVED, "or fork at 4 or less");
    c.expect(tess_cache_offload(c.cache, a, &c.error), TESS_STATE_RESERVED, "1 tokens of sequence");
    REQUIRE(tess_cache_truncate(c.cache, a, 6, &c.error) == TESS_STATE_OK);
    c.expect(tess_cache_offload(c.cache, a, &c.error), TESS_STATE_SPACE, "expected 2 free places outside, got 0 of 0");
    REQUIRE(tess_cache_fork(c.cache, a, 6, 0, &b, &c.error) == TESS_STATE_OK);
    c.expect(tess_cache_open(c.cache, 0, &other, &c.error), TESS_STATE_SEQUENCES, "at most 2 open sequences");
    // One sequence takes a page of its own and one for its copy; then two are missing for the other.
    REQUIRE(tess_cache_reserve(c.cache, b, 6, 0, &copy, &c.error) == TESS_STATE_OK);
    CHECK((copy.from == 1 && copy.to == 3));
    c.expect(tess_cache_reserve(c.cache, a, 6, 0, &copy, &c.error), TESS_STATE_FULL, "expected 2 free pages, got 0 of 4");
    CHECK((copy.from == -1 && copy.to == -1));
    c.expect(tess_cache_reserve(c.cache, a, 6, 1000, &copy, &c.error), TESS_STATE_FULL, "this cache has no pages outside");
    std::vector<int32_t> table(8);
    uint64_t step = 0, second = 0;
    c.expect(tess_cache_tables(c.cache, &a, 1, 1, table.data(), nullptr, nullptr, &step, &c.error), TESS_STATE_ARGUMENT,
             "has 2 pages; expected a width of at least that, got 1");
    REQUIRE(tess_cache_tables(c.cache, &a, 1, 3, table.data(), nullptr, nullptr, &step, &c.error) == TESS_STATE_OK);
    CHECK((table[0] == 0 && table[1] == 1 && table[2] == -1));
    c.expect(tess_cache_tables(c.cache, &b, 1, 3, table.data(), nullptr, nullptr, &second, &c.error), TESS_STATE_STEPS,
             "at most 1 running steps");
    c.expect(tess_cache_truncate(c.cache, a, 1, &c.error), TESS_STATE_PINNED, "step 2 reads sequence");
    c.expect(tess_cache_release(c.cache, 9, &c.error), TESS_STATE_ARGUMENT, "there is no step 9");
    REQUIRE(tess_cache_close(c.cache, a, &c.error) == TESS_STATE_OK);
    c.expect(tess_cache_close(c.cache, a, &c.error), TESS_STATE_SEQUENCE, "was closed");
    TessCacheCounts counts;
    tess_cache_counts(c.cache, &counts);
    CHECK((counts.free == 0 && counts.used == 4 && counts.held == 0));  // b still has the first, and the source of its copy
    REQUIRE(tess_cache_truncate(c.cache, b, 4, &c.error) == TESS_STATE_OK);
    tess_cache_counts(c.cache, &counts);
    CHECK((counts.free == 2 && counts.used == 1 && counts.held == 1));  // what the step reads
    REQUIRE(tess_cache_release(c.cache, step, &c.error) == TESS_STATE_OK);
    tess_cache_counts(c.cache, &counts);
    CHECK((counts.free == 3 && counts.used == 1 && counts.held == 0));
}

TEST_CASE("a config that contradicts itself is refused, field by field") {
    Memory memory(4, 4);
    const TessCacheConfig good = small_config(memory, 4, 2, 3);
    const auto refused = [&](auto change, const char *words) {
        TessCacheConfig config = good;
        change(config);
        TessCache *cache = nullptr;
        TessStateError error = {};
        CHECK(tess_cache_create(&config, &cache, &error) == TESS_STATE_ARGUMENT);
        INFO(error.text);
        CHECK(std::string(error.text).find(words) != std::string::npos);
        CHECK(cache == nullptr);
    };
    refused([](auto &c) { c.size = 8; }, "Begin with tess_cache_config()");
    refused([](auto &c) { c.pages = 0; }, "config.pages: expected 1 ..= 1073741824, got 0");
    refused([](auto &c) { c.sequence_pages = INT32_MAX / 4 + 1; }, "config.sequence_pages");
    refused([](auto &c) { c.outside_pages = 3; }, "got neither");
    refused([](auto &c) { c.outside_pages = 3, c.folder = "/", c.outside = &c; }, "got both");
    refused([](auto &c) { c.hooks.put = [](void *, int32_t, int32_t, const void *, uint64_t) { return 0; }; },
            "expected both of get and put");
    TessCachePiece narrow = {&memory, 8, 4};
    refused([&](auto &c) { c.piece = &narrow, c.pieces = 1; }, "a stride of at least that, got data, 8 and 4");
    TessCacheConfig config = good;
    config.outside_pages = 1, config.folder = "/nowhere at all";
    TessCache *cache = nullptr;
    TessStateError error = {};
    CHECK(tess_cache_create(&config, &cache, &error) == TESS_STATE_FILE);
    const Folder folder;
    config.folder = folder.path().c_str();
    Cache first(config);
    CHECK(tess_cache_create(&config, &cache, &error) == TESS_STATE_BUSY);
    CHECK(std::string(error.text).find("another cache uses it") != std::string::npos);
}

TEST_CASE("every status has a word and a sentence") {
    for (int s = TESS_STATE_OK; s <= TESS_STATE_MISMATCH; s++) {
        const auto status = static_cast<TessStateStatus>(s);
        CHECK(std::string(tess_state_status_id(status)) != "state.unknown");
        CHECK(std::string(tess_state_status_message(status)).back() == '.');
    }
    CHECK(std::string(tess_state_status_id(static_cast<TessStateStatus>(20))) == "state.unknown");
    CHECK(std::string(tess_state_status_id(static_cast<TessStateStatus>(-1))) == "state.unknown");
}

TEST_CASE("reserve sends away whom nobody used for longest, and prefetch brings it back") {
    Memory memory(6, 4);
    std::vector<unsigned char> outside(6 * memory.page_bytes());
    TessCacheConfig config = small_config(memory, 6, 4, 4);
    config.outside_pages = 6, config.outside = outside.data();
    Cache c(config);  // with a thread
    const TessSequence a = c.open(8, &memory, 1), b = c.open(8, &memory, 2), d = c.open(8, &memory, 3);
    c.append(a, 0);  // used after b
    TessPageCopy copy;
    REQUIRE(tess_cache_reserve(c.cache, d, 4, TESS_STATE_FOREVER, &copy, &c.error) == TESS_STATE_OK);
    TessCacheInfo info;
    REQUIRE(tess_cache_info(c.cache, b, &info, nullptr) == TESS_STATE_OK);
    CHECK(info.where == TESS_CACHE_OUTSIDE);
    CHECK(c.holds(a, memory, 1));
    CHECK(c.holds(d, memory, 3));
    uint64_t step = 0;
    std::vector<int32_t> table(8);
    c.expect(tess_cache_tables(c.cache, &b, 1, 4, table.data(), nullptr, nullptr, &step, &c.error), TESS_STATE_OUT,
             "Prefetch it, and wait");
    REQUIRE(tess_cache_prefetch(c.cache, b, TESS_STATE_FOREVER, &c.error) == TESS_STATE_OK);
    REQUIRE(tess_cache_wait(c.cache, b, TESS_STATE_FOREVER, &c.error) == TESS_STATE_OK);
    CHECK(c.holds(b, memory, 2));
    REQUIRE(tess_cache_info(c.cache, a, &info, nullptr) == TESS_STATE_OK);
    CHECK(info.where == TESS_CACHE_OUTSIDE);  // d has tokens reserved
    // What is spoiled outside is reported, and not served.
    for (unsigned char &byte : outside) byte ^= 1;
    REQUIRE(tess_cache_prefetch(c.cache, a, TESS_STATE_FOREVER, &c.error) == TESS_STATE_OK);
    c.expect(tess_cache_wait(c.cache, a, TESS_STATE_FOREVER, &c.error), TESS_STATE_LOST, "Its memory was written");
    c.expect(tess_cache_prefetch(c.cache, a, 0, &c.error), TESS_STATE_LOST, "compute its 8 tokens again");
    c.expect(tess_cache_tables(c.cache, &a, 1, 4, table.data(), nullptr, nullptr, &step, &c.error), TESS_STATE_LOST, "Close it");
    CHECK(tess_cache_close(c.cache, a, &c.error) == TESS_STATE_OK);
}

TEST_CASE("a full disk, a failing sync and a failing rename leave the sequence in memory") {
    Memory memory(6, 4);
    const Folder folder;
    TessCacheConfig config = small_config(memory, 6, 4, 4);
    config.outside_pages = 6, config.folder = folder.path().c_str(), config.no_thread = 1;
    Cache c(config);
    const TessSequence a = c.open(11, &memory, 1);
    int failures = 0;
    for (const int number : {ENOSPC, EIO})
        for (int which = 0; which < 3; which++)
            for (int countdown = 0; countdown < 20; countdown++) {
                REQUIRE(tess_cache_offload(c.cache, a, &c.error) == TESS_STATE_OK);
                faults = {};
                faults.number = number, faults.countdown = countdown, faults.is_short = true;
                (which == 0 ? faults.in_write : which == 1 ? faults.in_fsync : faults.in_rename) = true;
                const TessStateStatus got = tess_cache_wait(c.cache, a, TESS_STATE_FOREVER, &c.error);
                const bool failed = faults.failed > 0;
                faults = {};
                CHECK(broken_invariant(c.cache) == "");
                if (failed) {
                    failures++;
                    c.expect(got, number == ENOSPC ? TESS_STATE_SPACE : TESS_STATE_FILE, "file '");
                    CHECK((folder.files("page-").empty() && folder.files("sequence-").empty()));
                } else {
                    REQUIRE(got == TESS_STATE_OK);
                    CHECK((folder.files("page-").size() == 3 && folder.files("sequence-").size() == 1));
                    REQUIRE(tess_cache_prefetch(c.cache, a, 0, &c.error) == TESS_STATE_OK);
                    REQUIRE(tess_cache_wait(c.cache, a, TESS_STATE_FOREVER, &c.error) == TESS_STATE_OK);
                }
                REQUIRE(c.holds(a, memory, 1));
                if (!failed) break;
            }
    CHECK(failures >= 30);
    CHECK(folder.files("").size() == 1);  // the lock
}

// Prints, and judges nothing: docs/state.md has the figures.
TEST_CASE("the time of operations", "[.][state-time]") {
    TessCacheConfig config = tess_cache_config();
    config.pages = 20000, config.page_tokens = 16, config.sequences = 80, config.sequence_pages = 256, config.steps = 4;
    Cache c(config);
    std::vector<TessSequence> all(64);
    TessPageCopy copy;
    for (TessSequence &s : all) {
        REQUIRE(tess_cache_open(c.cache, 0, &s, nullptr) == TESS_STATE_OK);
        REQUIRE(tess_cache_reserve(c.cache, s, 4096, 0, &copy, nullptr) == TESS_STATE_OK);
        REQUIRE(tess_cache_commit(c.cache, s, 4000, nullptr) == TESS_STATE_OK);
        REQUIRE(tess_cache_truncate(c.cache, s, 4000, nullptr) == TESS_STATE_OK);
    }
    std::vector<int32_t> table(64 * 256), length(64), begin(64);
    std::vector<double> ns[6];
    const auto time = [&](int what, int calls, auto run) {
        const auto start = std::chrono::steady_clock::now();
        run();
        ns[what].push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
    };
    for (int round = 0; round < 301; round++) {
        time(0, 64, [&] {
            for (const TessSequence s : all) tess_cache_reserve(c.cache, s, 1, 0, &copy, nullptr);
        });
        time(1, 64, [&] {
            for (const TessSequence s : all) tess_cache_commit(c.cache, s, 1, nullptr);
        });
        uint64_t step = 0;
        time(2, 1, [&] { tess_cache_tables(c.cache, all.data(), 64, 256, table.data(), length.data(), begin.data(), &step, nullptr); });
        tess_cache_release(c.cache, step, nullptr);
        TessSequence child = 0;
        time(3, 1, [&] { tess_cache_fork(c.cache, all[static_cast<size_t>(round) % 64], 4000, 0, &child, nullptr); });
        time(4, 1, [&] { tess_cache_close(c.cache, child, nullptr); });
        if (round % 90 == 89)
            for (const TessSequence s : all) tess_cache_truncate(c.cache, s, 4000, nullptr);
    }
    TessSequence child = 0;
    REQUIRE(tess_cache_truncate(c.cache, all[0], 4000, nullptr) == TESS_STATE_OK);
    REQUIRE(tess_cache_reserve(c.cache, all[0], 96, 0, &copy, nullptr) == TESS_STATE_OK);
    REQUIRE(tess_cache_commit(c.cache, all[0], 96, nullptr) == TESS_STATE_OK);
    for (int round = 0; round < 301; round++) {
        time(5, 1, [&] { tess_cache_fork(c.cache, all[0], 4096, 0, &child, nullptr); });
        tess_cache_close(c.cache, child, nullptr);
    }
    const char *names[] = {"reserve of a token",  "commit of a token",  "tables of 64 x 256",
                           "fork of 4000 tokens", "close of that fork", "fork of 4096 tokens"};
    for (int i = 0; i < 6; i++) {
        std::sort(ns[i].begin(), ns[i].end());
        WARN(names[i] << ": least " << ns[i][0] << " ns, median " << ns[i][ns[i].size() / 2] << " ns");
    }
}

}  // namespace tessera::test_state
