// Processes that are killed while pages move: what is left is whole, or reported.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/state/invariants.h"
#include "tests/state/memory.h"
#include "tests/support/thorough.h"

namespace tessera::test_state {

namespace {

constexpr int32_t page_tokens = 4, pages = 64, sequence_pages = 8, kept = 3;

TessCacheConfig config_for(const Memory &memory, const std::string &folder) {
    TessCacheConfig config = small_config(memory, pages, 16, sequence_pages);
    config.outside_pages = 120, config.folder = folder.c_str();
    return config;
}

uint64_t value_of(uint64_t key, int32_t t) { return key * 1000 + static_cast<uint64_t>(t) + 1; }

bool append(TessCache *cache, Memory &memory, TessSequence id, uint64_t key, int32_t tokens) {
    int32_t table[sequence_pages], length = 0;
    uint64_t step = 0;
    if (tess_cache_reserve(cache, id, tokens, 0, nullptr, nullptr) != TESS_STATE_OK) return false;
    if (tess_cache_tables(cache, &id, 1, sequence_pages, table, &length, nullptr, &step, nullptr) != TESS_STATE_OK) return false;
    for (int32_t t = length; t < length + tokens; t++) memory.write(table[t / page_tokens], t % page_tokens, value_of(key, t));
    return tess_cache_commit(cache, id, tokens, nullptr) == TESS_STATE_OK && tess_cache_release(cache, step, nullptr) == TESS_STATE_OK;
}

// Sends three sequences away and says so; then sends others there and back until it is killed.
[[noreturn]] void churn(const std::string &folder, int said) {
    Memory memory(pages, page_tokens);
    const TessCacheConfig config = config_for(memory, folder);
    TessCache *cache = nullptr;
    if (tess_cache_create(&config, &cache, nullptr) != TESS_STATE_OK) _exit(3);
    TessSequence ids[8];
    for (uint64_t key = 0; key < 8; key++) {
        if (tess_cache_open(cache, key, &ids[key], nullptr) != TESS_STATE_OK ||
            !append(cache, memory, ids[key], key, static_cast<int32_t>(key) + 9))
            _exit(4);
        if (key < kept && tess_cache_offload(cache, ids[key], nullptr) != TESS_STATE_OK) _exit(5);
    }
    for (int i = 0; i < kept; i++)
        if (tess_cache_wait(cache, ids[i], TESS_STATE_FOREVER, nullptr) != TESS_STATE_OK) _exit(6);
    if (write(said, "x", 1) != 1) _exit(7);
    for (;;)
        for (uint64_t key = kept; key < 8; key++) {
            if (tess_cache_offload(cache, ids[key], nullptr) != TESS_STATE_OK) _exit(8);
            const uint64_t other = key == kept ? 7 : key - 1;
            tess_cache_prefetch(cache, ids[other], 0, nullptr);
            tess_cache_wait(cache, ids[other], TESS_STATE_FOREVER, nullptr);
            TessCacheInfo info;
            tess_cache_info(cache, ids[other], &info, nullptr);
            if (info.length < sequence_pages * page_tokens) append(cache, memory, ids[other], other, 1);
        }
}

// Opens what is left; gives the keys of sequences that came back whole, each with the right tokens.
std::set<uint64_t> recover(const std::string &folder, int32_t *lost, TessCacheCounts *counts) {
    Memory memory(pages, page_tokens);
    TessCacheConfig config = config_for(memory, folder);
    config.recover = 1;
    TessCache *cache = nullptr;
    TessStateError error = {};
    const TessStateStatus created = tess_cache_create(&config, &cache, &error);
    INFO(error.text);
    REQUIRE(created == TESS_STATE_OK);
    CHECK(broken_invariant(cache) == "");
    std::set<uint64_t> whole;
    TessCacheInfo known[16];
    const int32_t count = tess_cache_sequences(cache, known, 16);
    *lost = 0;
    for (int32_t i = 0; i < count; i++) {
        const TessCacheInfo &s = known[i];
        CHECK((s.where == TESS_CACHE_OUTSIDE || s.where == TESS_CACHE_LOST));
        const TessStateStatus begun = tess_cache_prefetch(cache, s.sequence, 0, &error);
        if (begun != TESS_STATE_OK || tess_cache_wait(cache, s.sequence, TESS_STATE_FOREVER, &error) != TESS_STATE_OK) {
            ++*lost;
            int32_t table[sequence_pages];
            uint64_t step = 0;
            CHECK(tess_cache_tables(cache, &s.sequence, 1, sequence_pages, table, nullptr, nullptr, &step, &error) == TESS_STATE_LOST);
            continue;
        }
        int32_t table[sequence_pages], length = 0;
        uint64_t step = 0;
        REQUIRE(tess_cache_tables(cache, &s.sequence, 1, sequence_pages, table, &length, nullptr, &step, &error) == TESS_STATE_OK);
        for (int32_t t = 0; t < length; t++)
            if (!memory.holds(table[t / page_tokens], t % page_tokens, value_of(s.key, t)))
                FAIL("sequence " << s.key << " was served with a wrong token " << t);
        whole.insert(s.key);
        tess_cache_release(cache, step, nullptr);
        REQUIRE(tess_cache_close(cache, s.sequence, &error) == TESS_STATE_OK);
    }
    tess_cache_counts(cache, counts);
    tess_cache_destroy(cache);
    return whole;
}

// Three sequences outside, of a cache that ended.
void leave(const std::string &folder) {
    Memory memory(pages, page_tokens);
    const TessCacheConfig config = config_for(memory, folder);
    TessCache *cache = nullptr;
    REQUIRE(tess_cache_create(&config, &cache, nullptr) == TESS_STATE_OK);
    for (uint64_t key = 0; key < 3; key++) {
        TessSequence id = 0;
        REQUIRE(tess_cache_open(cache, key, &id, nullptr) == TESS_STATE_OK);
        REQUIRE(append(cache, memory, id, key, 10));
        REQUIRE(tess_cache_offload(cache, id, nullptr) == TESS_STATE_OK);
    }
    tess_cache_destroy(cache);  // ends what was begun
}

}  // namespace

TEST_CASE("a process that is killed while pages move leaves sequences that are whole, or reported") {
    for (unsigned round = 0; round < 30 / test::every(5); round++) {
        const Folder folder;
        int pipes[2];
        REQUIRE(pipe(pipes) == 0);
        const pid_t child = fork();
        if (child == 0) churn(folder.path(), pipes[1]);
        close(pipes[1]);
        char said = 0;
        REQUIRE(read(pipes[0], &said, 1) == 1);
        close(pipes[0]);
        usleep(1000 + round * 7919 % 15000);
        kill(child, SIGKILL);
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
        int32_t lost = 0;
        TessCacheCounts counts;
        const std::set<uint64_t> whole = recover(folder.path(), &lost, &counts);
        for (uint64_t key = 0; key < kept; key++) CHECK(whole.count(key) == 1);
        CHECK(folder.files("page-").size() == static_cast<size_t>(counts.outside));
        for (const std::string &file : folder.files("")) CHECK(!file.ends_with(".new"));
    }
}

TEST_CASE("files that are damaged, cut, missing, foreign or half written count as absent") {
    int32_t lost = 0;
    TessCacheCounts counts;
    const auto with = [&](auto change) {
        const Folder folder;
        leave(folder.path());
        CHECK(folder.files("page-").size() == 9);
        change(folder);
        return recover(folder.path(), &lost, &counts);
    };
    const std::set<uint64_t> all = {0, 1, 2};
    CHECK(with([](const Folder &) {}) == all);
    CHECK((lost == 0 && counts.outside == 0 && counts.damaged == 0));
    const auto spoil = [](const std::string &path, int64_t at) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(at);
        const char was = static_cast<char>(file.get());
        file.seekp(at);
        file.put(static_cast<char>(was ^ 4));
    };
    for (const int64_t at : {0, 9, 20, 30, 47, 50, 90}) {
        CHECK(with([&](const Folder &f) { spoil(f.files("page-")[4], at); }).size() == 2);
        CHECK((lost == 1 && counts.damaged == 1));
    }
    CHECK(with([&](const Folder &f) { std::filesystem::resize_file(f.files("page-")[0], 60); }).size() == 2);
    CHECK(with([&](const Folder &f) { std::filesystem::remove(f.files("page-")[0]); }).size() == 2);
    CHECK(lost == 1);
    for (const int64_t at : {0, 20, 40, 60, 70}) {
        CHECK(with([&](const Folder &f) { spoil(f.files("sequence-")[0], at); }).size() == 2);
        CHECK((lost == 0 && counts.damaged == 1));
    }
    CHECK(with([&](const Folder &f) {
              std::ofstream(f.path() + "/page-00000000000000ff.new") << "half";
              std::ofstream(f.path() + "/page-ffffffffffffffff") << "foreign";
              std::ofstream(f.path() + "/notes.txt") << "mine";
          }) == all);
    {
        const Folder folder;
        leave(folder.path());
        std::ofstream(folder.path() + "/notes.txt") << "mine";
        leave(folder.path());  // without `recover`: what was there is removed
        CHECK((folder.files("page-").size() == 9 && folder.files("sequence-").size() == 3 && folder.files("notes").size() == 1));
    }
    {
        const Folder folder;
        leave(folder.path());
        Memory memory(pages, page_tokens);
        TessCacheConfig config = config_for(memory, folder.path());
        config.recover = 1, config.outside_pages = 8;
        TessCache *cache = nullptr;
        TessStateError error = {};
        CHECK(tess_cache_create(&config, &cache, &error) == TESS_STATE_SPACE);
        CHECK(std::string(error.text).find("more pages than config.outside_pages (8)") != std::string::npos);
        config.outside_pages = 9, config.sequences = 2;
        CHECK(tess_cache_create(&config, &cache, &error) == TESS_STATE_SEQUENCES);
        CHECK(folder.files("page-").size() == 9);
    }
}

}  // namespace tessera::test_state
