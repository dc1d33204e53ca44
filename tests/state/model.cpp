// Random operations on a cache beside a model of maps and vectors, which knows what every call has to say and every page has to hold.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "tests/state/faults.h"
#include "tests/state/invariants.h"
#include "tests/state/model.h"
#include "tests/support/thorough.h"

namespace tessera::test_state {

namespace {

class Run {
public:
    Run(Home home, uint64_t seed) : random_(seed), memory_(page_count, page_tokens), hooks_{&memory_, &random_}, home_(home) {
        TessCacheConfig config = small_config(memory_, page_count, sequence_count, sequence_pages);
        config.steps = step_count, config.prefix_tokens = 14, config.outside_pages = outside_pages, config.no_thread = 1;
        outside_.resize(static_cast<size_t>(outside_pages) * memory_.page_bytes());
        if (home == Home::files) config.folder = folder_.path().c_str();
        else config.outside = outside_.data();
        if (home == Home::hooks) config.hooks = {&hooks_, Hooks::choose, Hooks::get, Hooks::put};
        REQUIRE(tess_cache_create(&config, &cache_, &error_) == TESS_STATE_OK);
    }
    ~Run() {
        faults = {};
        tess_cache_destroy(cache_);
    }

    void steps(size_t count) {
        for (size_t i = 0; i < count; i++) {
            step();
            const std::string broken = broken_invariant(cache_);
            if (!broken.empty()) FAIL("after operation " << i << " (" << last_ << "): " << broken);
            if (i % 64 == 0) check_everything();
        }
        check_everything();
        CHECK(memory_.gaps_are_whole());
    }
    uint64_t seen(const char *what) const { return seen_.count(what) ? seen_.at(what) : 0; }
    uint64_t failures() const { return home_ == Home::files ? faults.failed : hooks_.failures; }

private:
    std::mt19937_64 random_;
    Memory memory_;
    Hooks hooks_;
    Folder folder_;
    std::vector<unsigned char> outside_;
    Home home_;
    TessCache *cache_ = nullptr;
    TessStateError error_ = {};
    std::map<TessSequence, Model> open_;
    std::map<int, int> counts_;  // of each page, by the model
    std::vector<Snapshot> snapshots_;
    std::vector<TessSequence> closed_;
    std::map<std::string, uint64_t> seen_;
    std::string last_;
    int next_page_ = 0;
    uint64_t next_value_ = 1, next_key_ = 1;

    int64_t draw(int64_t least, int64_t most) { return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1)); }
    TessSequence any() {
        if (open_.empty()) return 0;
        auto it = open_.begin();
        std::advance(it, draw(0, static_cast<int64_t>(open_.size()) - 1));
        return it->first;
    }
    TessCacheInfo info(TessSequence id) {
        TessCacheInfo known;
        REQUIRE(tess_cache_info(cache_, id, &known, nullptr) == TESS_STATE_OK);
        return known;
    }
    TessCacheWhere where(TessSequence id) { return info(id).where; }
    TessCacheCounts counts() {
        TessCacheCounts c;
        tess_cache_counts(cache_, &c);
        return c;
    }
    // What a sequence that is not in memory says to whoever needs it there.
    static TessStateStatus elsewhere(TessCacheWhere where) {
        return where == TESS_CACHE_MEMORY    ? TESS_STATE_OK
               : where == TESS_CACHE_OUTSIDE ? TESS_STATE_OUT
               : where == TESS_CACHE_LOST    ? TESS_STATE_LOST
                                             : TESS_STATE_MOVING;
    }
    void expect(TessStateStatus got, TessStateStatus expected) {
        seen_[last_ + " " + tess_state_status_id(got)]++;
        if (got == expected) return;
        FAIL(last_ << ": expected " << tess_state_status_id(expected) << ", got " << tess_state_status_id(got) << ": " << error_.text);
    }
    int fresh_page() {
        counts_[next_page_] = 1;
        return next_page_++;
    }
    void drop(int page) {
        if (page >= 0 && --counts_[page] == 0) counts_.erase(page);
    }
    void drop_source(Model &m) { drop(m.source), m.source = -1; }
    // Whether a step reads the last page of a sequence for one that does not name it any more. The model does not know it; `release` looks
    // at what it is for.
    bool is_held(TessSequence id) const {
        const state::Sequence &s = cache_->sequences[id & UINT32_MAX];
        const int32_t entry = state::table_of(cache_, s)[s.length / page_tokens];
        return s.where == TESS_CACHE_MEMORY && cache_->pages.is_held(cache_->pages.block_of(static_cast<uint32_t>(entry)));
    }

    void step() {
        const TessSequence id = any();
        switch (draw(0, 19)) {
        case 0: open(); break;
        case 1: close(id); break;
        case 2: fork(id); break;
        case 3: truncate(id); break;
        case 4: prune(id); break;
        case 5: tables(); break;
        case 6: release(); break;
        case 7: offload(id); break;
        case 8: prefetch(id); break;
        case 9: wait(id); break;
        case 10: publish(id); break;
        case 11: prefix(id); break;
        case 12: closed(); break;
        case 13: commit(id, static_cast<int32_t>(draw(0, 3))); break;
        case 14: break_one(id); break;
        default: reserve(id); break;
        }
    }

    void open() {
        last_ = "open";
        TessSequence id = 0;
        const bool room = open_.size() < sequence_count;
        const uint64_t key = next_key_++;
        expect(tess_cache_open(cache_, key, &id, &error_), room ? TESS_STATE_OK : TESS_STATE_SEQUENCES);
        if (!room) return;
        CHECK(open_.count(id) == 0);
        open_[id].key = key;
    }

    void close(TessSequence id) {
        last_ = "close";
        if (id == 0 || draw(0, 2) == 0) return;
        expect(tess_cache_close(cache_, id, &error_), TESS_STATE_OK);
        for (const int page : open_[id].pages) drop(page);
        drop_source(open_[id]);
        open_.erase(id);
        closed_.push_back(id);
    }

    void closed() {
        last_ = "closed";
        if (closed_.empty()) return;
        const TessSequence id = closed_[static_cast<size_t>(draw(0, static_cast<int64_t>(closed_.size()) - 1))];
        TessPageCopy copy;
        expect(tess_cache_reserve(cache_, id, 1, 0, &copy, &error_), TESS_STATE_SEQUENCE);
        expect(tess_cache_offload(cache_, id, nullptr), TESS_STATE_SEQUENCE);
        expect(tess_cache_close(cache_, id, nullptr), TESS_STATE_SEQUENCE);
    }

    void fork(TessSequence id) {
        last_ = "fork";
        if (id == 0) return;
        const Model &m = open_[id];
        const auto at = static_cast<int32_t>(draw(-1, m.length() + 1));
        const int32_t pages = pages_for(std::max(at, 0));
        TessStateStatus expected = elsewhere(where(id));
        if (expected == TESS_STATE_OK) {
            if (at < 0 || at > m.length() || (at > m.keep && at < m.begin)) expected = TESS_STATE_LENGTH;
            else if (m.reserved > 0 && pages > m.length() / page_tokens) expected = TESS_STATE_RESERVED;
            else if (open_.size() == sequence_count) expected = TESS_STATE_SEQUENCES;
        }
        TessSequence child = 0;
        const uint64_t key = next_key_++;
        const int32_t free = counts().free;
        expect(tess_cache_fork(cache_, id, at, key, &child, &error_), expected);
        CHECK(counts().free == free);
        if (expected != TESS_STATE_OK) return;
        Model made;
        made.key = key;
        made.tokens.assign(m.tokens.begin(), m.tokens.begin() + at);
        made.pages.assign(m.pages.begin(), m.pages.begin() + pages);
        if (at > m.keep) made.begin = m.begin, made.keep = m.keep;
        for (const int page : made.pages)
            if (page >= 0) counts_[page]++;
        open_[child] = made;
    }

    void reserve(TessSequence id) {
        last_ = "reserve";
        if (id == 0) return;
        Model &m = open_[id];
        const auto tokens = static_cast<int32_t>(draw(0, 6));
        const bool own_copy = home_ != Home::hooks && draw(0, 1) == 0, evicts = draw(0, 3) == 0;
        const int32_t pages = pages_for(m.length() + tokens), last = m.length() / page_tokens;
        const int ends_in = tokens > 0 && m.length() % page_tokens != 0 ? m.pages[static_cast<size_t>(last)] : -1;
        const bool copies = ends_in >= 0 && (counts_[ends_in] > 1 || is_held(id));
        const int32_t needed = std::max(0, pages - static_cast<int32_t>(m.pages.size())) + (copies ? 1 : 0);
        TessStateStatus expected = elsewhere(where(id));
        if (expected == TESS_STATE_OK) {
            if (m.length() + tokens > sequence_pages * page_tokens) expected = TESS_STATE_LENGTH;
            else if (needed > counts().free) expected = TESS_STATE_FULL;
        }
        std::map<TessSequence, TessCacheInfo> before;
        for (const auto &[other, model] : open_) before[other] = info(other);
        TessPageCopy copy = {-7, -7};
        const TessStateStatus got =
            tess_cache_reserve(cache_, id, tokens, evicts ? TESS_STATE_FOREVER : 0, own_copy ? nullptr : &copy, &error_);
        if (evicts && expected == TESS_STATE_FULL) {
            // Who left was neither pinned nor reserved; the others are as they were.
            seen_[std::string("evict ") + tess_state_status_id(got)]++;
            CHECK((got == TESS_STATE_OK || got == TESS_STATE_FULL || got == TESS_STATE_SPACE || got == TESS_STATE_FILE));
            for (const auto &[other, was] : before)
                if (was.where == TESS_CACHE_MEMORY && where(other) != TESS_CACHE_MEMORY)
                    CHECK((was.pins == 0 && was.reserved == 0 && other != id));
        } else {
            expect(got, expected);
        }
        if (got != TESS_STATE_OK) {
            const TessCacheInfo now = info(id), was = before[id];
            CHECK((now.reserved == was.reserved && now.pages == was.pages && now.length == was.length));
            return;
        }
        while (static_cast<int32_t>(m.pages.size()) < pages) m.pages.push_back(fresh_page());
        m.reserved = std::max(m.reserved, tokens);
        if (!own_copy) CHECK((copy.from >= 0) == copies);
        if (copies) {
            int &page = m.pages[static_cast<size_t>(last)];
            own_copy ? drop(page) : void(m.source = page);
            page = fresh_page();
            if (!own_copy && draw(0, 3) == 0) return;  // the copy is never made
            if (!own_copy)
                home_ == Home::hooks || draw(0, 1) == 0 ? memory_.copy(copy)
                                                        : expect(tess_cache_copy(cache_, copy, &error_), TESS_STATE_OK);
        }
        if (m.source >= 0 && !copies) return;  // an earlier copy was not made, so nothing may be committed
        if (draw(0, 4) != 0) commit(id, static_cast<int32_t>(draw(0, m.reserved)));
    }

    void commit(TessSequence id, int32_t tokens) {
        last_ = "commit";
        if (id == 0) return;
        Model &m = open_[id];
        const TessStateStatus there = elsewhere(where(id));
        if (there != TESS_STATE_OK) return expect(tess_cache_commit(cache_, id, tokens, &error_), there);
        if (tokens > m.reserved) return expect(tess_cache_commit(cache_, id, tokens, &error_), TESS_STATE_LENGTH);
        if (m.source >= 0 && last_copy_is_open(id)) return;
        std::vector<int32_t> table(sequence_pages);
        uint64_t step = 0;
        if (tess_cache_tables(cache_, &id, 1, sequence_pages, table.data(), nullptr, nullptr, &step, &error_) != TESS_STATE_OK) return;
        for (int32_t i = 0; i < tokens; i++) {
            const int32_t t = m.length();
            m.tokens.push_back(next_value_++);
            memory_.write(table[static_cast<size_t>(t / page_tokens)], t % page_tokens, m.tokens.back());
        }
        expect(tess_cache_commit(cache_, id, tokens, &error_), TESS_STATE_OK);
        expect(tess_cache_release(cache_, step, &error_), TESS_STATE_OK);
        m.reserved -= tokens;
        if (tokens > 0) drop_source(m);
    }
    // Whether the page that a copy is to fill does not hold the tokens yet.
    bool last_copy_is_open(TessSequence id) {
        const Model &m = open_[id];
        std::vector<int32_t> table(sequence_pages);
        uint64_t step = 0;
        if (tess_cache_tables(cache_, &id, 1, sequence_pages, table.data(), nullptr, nullptr, &step, nullptr) != TESS_STATE_OK) return true;
        bool is_open = false;
        for (int32_t t = m.length() / page_tokens * page_tokens; t < m.length(); t++)
            is_open =
                is_open || !memory_.holds(table[static_cast<size_t>(t / page_tokens)], t % page_tokens, m.tokens[static_cast<size_t>(t)]);
        REQUIRE(tess_cache_release(cache_, step, nullptr) == TESS_STATE_OK);
        return is_open;
    }

    void truncate(TessSequence id) {
        last_ = "truncate";
        if (id == 0) return;
        Model &m = open_[id];
        const auto length = static_cast<int32_t>(draw(0, 2) == 0 ? m.length() : draw(-1, m.length() + 1));
        TessStateStatus expected = elsewhere(where(id));
        if (expected == TESS_STATE_OK && m.pins > 0) expected = TESS_STATE_PINNED;
        else if (expected == TESS_STATE_OK && (length < 0 || length > m.length() || (length > 0 && length > m.keep && length < m.begin)))
            expected = TESS_STATE_LENGTH;
        expect(tess_cache_truncate(cache_, id, length, &error_), expected);
        if (expected != TESS_STATE_OK) return;
        if (m.source >= 0) {
            int &page = m.pages[static_cast<size_t>(m.length() / page_tokens)];
            drop(page);
            page = m.source, m.source = -1;
        }
        while (static_cast<int32_t>(m.pages.size()) > pages_for(length)) drop(m.pages.back()), m.pages.pop_back();
        m.tokens.resize(static_cast<size_t>(length));
        m.reserved = 0;
        if (length < static_cast<int32_t>(m.prompt.size())) m.prompt.clear();
        if (length <= m.keep) m.begin = m.keep = 0;
    }

    void prune(TessSequence id) {
        last_ = "prune";
        if (id == 0 || draw(0, 1) == 0) return;
        Model &m = open_[id];
        const auto window = static_cast<int32_t>(draw(-1, m.length() + 2)), keep = static_cast<int32_t>(draw(-1, 6));
        TessStateStatus expected = elsewhere(where(id));
        if (expected == TESS_STATE_OK && (window < 0 || keep < 0)) expected = TESS_STATE_LENGTH;
        expect(tess_cache_prune(cache_, id, window, keep, &error_), expected);
        if (expected != TESS_STATE_OK || window >= m.length()) return;
        const int32_t begin = m.length() - window, kept = m.begin > 0 ? std::min(m.keep, keep) : keep;
        if (begin <= kept || begin <= m.begin) return;
        for (int32_t p = pages_for(kept); p < begin / page_tokens; p++)
            if (int &page = m.pages[static_cast<size_t>(p)]; page >= 0) drop(page), page = -1, m.prompt.clear();
        m.begin = begin, m.keep = kept;
    }

    void tables() {
        last_ = "tables";
        Snapshot snapshot;
        TessStateStatus expected = snapshots_.size() == step_count ? TESS_STATE_STEPS : TESS_STATE_OK;
        for (int64_t i = draw(0, 3); i > 0 && !open_.empty(); i--) snapshot.sequences.push_back(any());
        const auto width = static_cast<int32_t>(draw(0, 9) == 0 ? draw(0, sequence_pages) : sequence_pages);
        for (const TessSequence id : snapshot.sequences) {
            if (expected == TESS_STATE_OK) expected = elsewhere(where(id));
            if (expected == TESS_STATE_OK && static_cast<int32_t>(open_[id].pages.size()) > width) expected = TESS_STATE_ARGUMENT;
        }
        const auto n = static_cast<int32_t>(snapshot.sequences.size());
        std::vector<int32_t> table(static_cast<size_t>(n * width) + 1, -5), length(static_cast<size_t>(n) + 1), begin(length);
        expect(tess_cache_tables(cache_, snapshot.sequences.data(), n, width, table.data(), length.data(), begin.data(), &snapshot.step,
                                 &error_),
               expected);
        if (expected != TESS_STATE_OK) return;
        for (int32_t i = 0; i < n; i++) {
            Model &m = open_[snapshot.sequences[static_cast<size_t>(i)]];
            m.pins++;
            CHECK((length[static_cast<size_t>(i)] == m.length() && begin[static_cast<size_t>(i)] == m.begin));
            Snapshot::Row row;
            row.table.assign(table.begin() + i * width, table.begin() + (i + 1) * width);
            for (int32_t e = 0; e < width; e++) {
                const bool is_there = e < static_cast<int32_t>(m.pages.size()) && m.pages[static_cast<size_t>(e)] >= 0;
                CHECK((row.table[static_cast<size_t>(e)] >= 0) == is_there);
            }
            if (m.source < 0)  // else its last page waits for a copy
                for (int32_t t = 0; t < m.length(); t++)
                    if (m.has(t)) row.tokens.push_back({t, m.tokens[static_cast<size_t>(t)]});
            snapshot.rows.push_back(row);
        }
        snapshots_.push_back(snapshot);
    }

    // What a step saw when it began it sees until its end, whatever was closed, pruned, forked or sent away meanwhile.
    void release() {
        last_ = "release";
        if (draw(0, 9) == 0) expect(tess_cache_release(cache_, draw(0, 1) == 0 ? 0 : 99999999, nullptr), TESS_STATE_ARGUMENT);
        if (snapshots_.empty()) return;
        const auto at = static_cast<size_t>(draw(0, static_cast<int64_t>(snapshots_.size()) - 1));
        const Snapshot &snapshot = snapshots_[at];
        for (const Snapshot::Row &row : snapshot.rows)
            for (const auto &[t, value] : row.tokens)
                if (!memory_.holds(row.table[static_cast<size_t>(t / page_tokens)], t % page_tokens, value))
                    FAIL("a page was written that step " << snapshot.step << " reads, at position " << t);
        for (const TessSequence id : snapshot.sequences)
            if (open_.count(id)) open_[id].pins--;
        expect(tess_cache_release(cache_, snapshot.step, &error_), TESS_STATE_OK);
        snapshots_.erase(snapshots_.begin() + static_cast<int64_t>(at));
    }

    void offload(TessSequence id) {
        last_ = "offload";
        if (id == 0) return;
        const Model &m = open_[id];
        const TessCacheWhere at = where(id);
        TessStateStatus expected = elsewhere(at);
        if (at == TESS_CACHE_OUTSIDE || at == TESS_CACHE_LEAVING) expected = TESS_STATE_OK;
        if (at == TESS_CACHE_MEMORY) expected = m.pins > 0 ? TESS_STATE_PINNED : m.reserved > 0 ? TESS_STATE_RESERVED : TESS_STATE_OK;
        const TessStateStatus got = tess_cache_offload(cache_, id, &error_);
        if (got == TESS_STATE_SPACE && expected == TESS_STATE_OK && at == TESS_CACHE_MEMORY) {
            seen_["offload state.space"]++;
            CHECK(outside_pages - counts().outside < static_cast<int32_t>(m.pages.size()));
            return;
        }
        expect(got, expected);
    }

    void prefetch(TessSequence id) {
        last_ = "prefetch";
        if (id == 0) return;
        const TessCacheWhere at = where(id);
        const TessStateStatus got = tess_cache_prefetch(cache_, id, draw(0, 3) == 0 ? TESS_STATE_FOREVER : 0, &error_);
        seen_[std::string("prefetch ") + tess_state_status_id(got)]++;
        if (at == TESS_CACHE_MEMORY || at == TESS_CACHE_ARRIVING) return expect(got, TESS_STATE_OK);
        if (at == TESS_CACHE_LEAVING) return expect(got, TESS_STATE_MOVING);
        if (at == TESS_CACHE_LOST) return expect(got, TESS_STATE_LOST);
        CHECK((got == TESS_STATE_OK || got == TESS_STATE_FULL || got == TESS_STATE_SPACE || got == TESS_STATE_FILE));
    }

    void wait(TessSequence id) {
        last_ = "wait";
        if (id == 0) return;
        const TessCacheWhere at = where(id);
        const TessStateStatus got = tess_cache_wait(cache_, id, TESS_STATE_FOREVER, &error_);
        seen_[std::string("wait ") + tess_state_status_id(got)]++;
        const TessCacheWhere now = where(id);
        CHECK((now == TESS_CACHE_MEMORY || now == TESS_CACHE_OUTSIDE || now == TESS_CACHE_LOST));
        if (now == TESS_CACHE_LOST) expect(got, TESS_STATE_LOST);
        if (at == TESS_CACHE_LEAVING && got == TESS_STATE_OK) CHECK(now == TESS_CACHE_OUTSIDE);
        if (at == TESS_CACHE_ARRIVING && got == TESS_STATE_OK) CHECK(now == TESS_CACHE_MEMORY);
        CHECK((got == TESS_STATE_OK || got == TESS_STATE_FILE || got == TESS_STATE_SPACE || got == TESS_STATE_LOST));
    }

    // Spoils what is outside: the sequences that name it have to be reported, and nobody else.
    void break_one(TessSequence id) {
        last_ = "break";
        if (id == 0 || draw(0, 9) != 0 || where(id) != TESS_CACHE_OUTSIDE) return;
        const state::Sequence &s = cache_->sequences[id & UINT32_MAX];
        for (int32_t e = 0; e < s.entries; e++) {
            const int32_t entry = state::table_of(cache_, s)[e];
            if (entry < 0) continue;
            const state::Block &b = cache_->pages[static_cast<uint32_t>(entry)];
            if (b.at != state::At::outside) continue;
            if (home_ == Home::files) {
                char name[64];
                std::snprintf(name, sizeof name, "/page-%016llx", static_cast<unsigned long long>(b.id));
                const std::string path = folder_.path() + name;
                if (draw(0, 2) == 0) std::filesystem::remove(path);
                else std::filesystem::resize_file(path, static_cast<uint64_t>(draw(0, 100)));
            } else {
                outside_[b.slot * memory_.page_bytes() + random_() % memory_.page_bytes()] ^= 0x40;
            }
            const TessStateStatus begun = tess_cache_prefetch(cache_, id, 0, &error_);
            if (begun != TESS_STATE_OK) {  // no room: it goes, so that nobody meets what was spoiled unawares
                REQUIRE(begun == TESS_STATE_FULL);
            } else {
                TessStateStatus got = TESS_STATE_FILE;
                while (got == TESS_STATE_FILE) {  // a hook failed before the page was looked at
                    got = tess_cache_wait(cache_, id, TESS_STATE_FOREVER, &error_);
                    if (got == TESS_STATE_FILE) REQUIRE(tess_cache_prefetch(cache_, id, TESS_STATE_FOREVER, &error_) == TESS_STATE_OK);
                }
                expect(got, TESS_STATE_LOST);
                CHECK(where(id) == TESS_CACHE_LOST);
            }
            // Everybody who names the page is closed.
            const int page = open_[id].pages[static_cast<size_t>(e)];
            std::vector<TessSequence> who;
            for (const auto &[other, m] : open_)
                if (std::find(m.pages.begin(), m.pages.end(), page) != m.pages.end()) who.push_back(other);
            for (const TessSequence other : who) {
                expect(tess_cache_close(cache_, other, &error_), TESS_STATE_OK);
                for (const int p : open_[other].pages) drop(p);
                open_.erase(other);
            }
            return;
        }
    }

    void publish(TessSequence id) {
        last_ = "publish";
        if (id == 0) return;
        Model &m = open_[id];
        std::vector<int32_t> prompt;
        for (int64_t i = draw(0, std::min(m.length() + 1, 15)); i > 0; i--) prompt.push_back(static_cast<int32_t>(draw(0, 5) == 0 ? 1 : 0));
        TessStateStatus expected = elsewhere(where(id));
        const auto count = static_cast<int32_t>(prompt.size());
        if (expected == TESS_STATE_OK && (count > m.length() || count > 14 || m.begin > 0)) expected = TESS_STATE_LENGTH;
        expect(tess_cache_publish(cache_, id, prompt.data(), count, &error_), expected);
        if (expected == TESS_STATE_OK) m.prompt = prompt;
    }

    void prefix(TessSequence id) {
        last_ = "prefix";
        std::vector<int32_t> prompt;
        if (id != 0 && draw(0, 1) == 0) prompt = open_[id].prompt;
        for (int64_t i = draw(0, 8); i > 0; i--) prompt.push_back(static_cast<int32_t>(draw(0, 5) == 0 ? 1 : 0));
        size_t best = 0;
        bool in_memory = false;
        for (const auto &[other, m] : open_) {
            if (where(other) == TESS_CACHE_LOST) continue;
            size_t same = 0;
            while (same < std::min(prompt.size(), m.prompt.size()) && prompt[same] == m.prompt[same]) same++;
            same = same / page_tokens * page_tokens;
            if (same > best) in_memory = false;
            best = std::max(best, same);
            if (same == best && same > 0) in_memory = in_memory || where(other) == TESS_CACHE_MEMORY;
        }
        TessSequence found = 7;
        int32_t matched = 7;
        expect(tess_cache_prefix(cache_, prompt.data(), static_cast<int32_t>(prompt.size()), &found, &matched, &error_), TESS_STATE_OK);
        CHECK(matched == static_cast<int32_t>(best));
        CHECK((found != 0) == (best > 0));
        if (best == 0) return;
        const Model &m = open_.at(found);
        CHECK(std::equal(prompt.begin(), prompt.begin() + matched, m.prompt.begin()));
        CHECK((where(found) == TESS_CACHE_MEMORY) == in_memory);
    }

    // Every sequence in memory holds its own tokens; two share a page where the model says so, and nowhere else.
    void check_everything() {
        last_ = "check";
        std::map<int32_t, int> page_of_frame;
        for (auto &[id, m] : open_) {
            const TessCacheInfo known = info(id);
            CHECK((known.key == m.key && known.length == m.length() && known.begin == m.begin && known.keep == m.keep));
            CHECK((known.reserved == m.reserved && known.pins == m.pins && known.pages == static_cast<int32_t>(m.pages.size())));
            if (known.where != TESS_CACHE_MEMORY) continue;
            std::vector<int32_t> table(sequence_pages);
            uint64_t step = 0;
            if (tess_cache_tables(cache_, &id, 1, sequence_pages, table.data(), nullptr, nullptr, &step, nullptr) != TESS_STATE_OK) return;
            for (size_t p = 0; p < m.pages.size(); p++)
                if (m.pages[p] >= 0) CHECK(page_of_frame.emplace(table[p], m.pages[p]).first->second == m.pages[p]);
            for (int32_t t = 0; t < m.length(); t++)
                if (m.has(t) && (m.source < 0 || t / page_tokens < m.length() / page_tokens) &&
                    !memory_.holds(table[static_cast<size_t>(t / page_tokens)], t % page_tokens, m.tokens[static_cast<size_t>(t)]))
                    FAIL("sequence " << id << " does not hold its token " << t);
            REQUIRE(tess_cache_release(cache_, step, nullptr) == TESS_STATE_OK);
        }
        std::set<int> pages;
        for (const auto &[frame, page] : page_of_frame) CHECK(pages.insert(page).second);
        const TessCacheCounts c = counts();
        CHECK(c.free + c.used + c.moving + c.held == page_count);
    }
};

void expect_seen(const Run &run, std::initializer_list<const char *> all) {
    for (const char *what : all) {
        INFO(what);
        CHECK(run.seen(what) > 0);
    }
}

// 10^6 operations in all; ten times as many in a thorough run.
std::vector<uint64_t> seeds() {
    std::vector<uint64_t> all;
    for (uint64_t seed = 11; all.size() < 10 / test::every(10); seed++) all.push_back(seed);
    return all;
}

}  // namespace

TEST_CASE("a cache does what a model of maps and vectors does, outside in the host's memory", "[model]") {
    for (const uint64_t seed : seeds()) {
        Run run(Home::host, seed);
        run.steps(600000);
        expect_seen(run, {"open state.sequences",
                          "fork ok",
                          "fork state.length",
                          "fork state.reserved",
                          "fork state.out",
                          "reserve state.full",
                          "reserve state.length",
                          "reserve state.moving",
                          "truncate state.pinned",
                          "tables state.steps",
                          "tables state.out",
                          "offload state.pinned",
                          "offload state.reserved",
                          "offload state.space",
                          "prefetch state.full",
                          "break state.lost",
                          "evict ok",
                          "evict state.full",
                          "publish state.length",
                          "closed state.sequence"});
    }
}

TEST_CASE("a cache does what the model does where its hooks move pages and fail at times", "[model]") {
    for (const uint64_t seed : seeds()) {
        Run run(Home::hooks, seed);
        run.steps(395000);
        CHECK(run.failures() > 0);
        expect_seen(run, {"wait state.file", "evict ok", "evict state.file", "prefetch ok"});
    }
}

TEST_CASE("a cache does what the model does where its pages are files and the system fails at times", "[model]") {
    for (const uint64_t seed : seeds()) {
        Run run(Home::files, seed);
        faults = {};
        faults.in_write = faults.in_fsync = faults.in_rename = true;
        faults.number = ENOSPC, faults.one_in = 60, faults.is_short = true, faults.random = seed;
        run.steps(5000);
        CHECK(run.failures() > 0);
        expect_seen(run, {"wait state.space", "wait ok", "prefetch ok"});
    }
}

}  // namespace tessera::test_state
