// States of training in files: what was saved comes back, and what is cut, damaged, foreign or of other tensors is refused in words.
#include "runtime/state/checkpoint.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/state/xxh64.h"
#include "tests/state/faults.h"
#include "tests/state/memory.h"

namespace tessera::test_state {

namespace {

std::string bytes_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Three tensors of three types, whose values follow from a number.
struct States {
    std::vector<float> w;
    std::vector<uint16_t> narrow;
    std::vector<int64_t> count;
    int64_t two[2] = {3, 5}, fifteen[1] = {15};

    explicit States(int seed) {
        for (int i = 0; i < 15; i++)
            w.push_back(static_cast<float>(seed) + static_cast<float>(i) / 8), narrow.push_back(static_cast<uint16_t>(seed * 100 + i));
        count.push_back(seed * INT64_C(1000000007));
    }
    std::vector<TessNamedTensor> tensors() {
        return {{"layer.0/\"w\"\n", tess_dense(w.data(), TESS_F32, 2, two)},
                {"narrow", tess_dense(narrow.data(), TESS_BF16, 1, fifteen)},
                {"count", tess_dense(count.data(), TESS_I64, 0, nullptr)},
                {"none", tess_dense(nullptr, TESS_F32, 1, nothing)}};
    }
    bool operator==(const States &other) const { return w == other.w && narrow == other.narrow && count == other.count; }
    int64_t nothing[1] = {0};
};

TessStateHead head_of(int64_t step) {
    TessStateHead head = {};
    std::strcpy(head.semantic_hash, "sha256:0123");
    head.step = step, head.seed = UINT64_MAX - 5;
    return head;
}

TessStateStatus save(const std::string &path, States &states, int64_t step, TessStateError *error = nullptr) {
    const TessStateHead head = head_of(step);
    const auto tensors = states.tensors();
    return tess_state_save(path.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), error);
}

TessStateStatus load(const std::string &path, States &states, TessStateHead *head, TessStateError *error) {
    const auto tensors = states.tensors();
    return tess_state_load(path.c_str(), head, tensors.data(), static_cast<int32_t>(tensors.size()), error);
}

void expect(TessStateStatus got, TessStateStatus expected, const TessStateError &error, const char *words) {
    INFO(error.text);
    CHECK(std::string(tess_state_status_id(got)) == tess_state_status_id(expected));
    CHECK(std::string(error.text).find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("the hash is XXH64 as its author publishes it") {
    const auto hash = [](const std::string &text, uint64_t seed = 0) { return state::xxh64(text.data(), text.size(), seed); };
    CHECK(hash("") == 0xef46db3751d8e999);
    CHECK(hash("a") == 0xd24ec4f1a98c6e5b);
    CHECK(hash("abc") == 0x44bc2cf5ad770999);
    const std::string text(1000, 'x');
    for (const size_t cut : {0, 1, 31, 32, 33, 500}) {
        state::Xxh64 parts(7);
        parts.add(text.data(), cut).add(text.data() + cut, text.size() - cut);
        CHECK(parts.value() == hash(text, 7));
    }
}

TEST_CASE("a state comes back from its file, with step, seed and hash") {
    const Folder folder;
    const std::string path = folder.path() + "/state.safetensors";
    States saved(3), loaded(4);
    TessStateError error = {};
    REQUIRE(save(path, saved, -12, &error) == TESS_STATE_OK);
    CHECK(folder.files("").size() == 1);
    TessStateHead head = {};
    REQUIRE(load(path, loaded, &head, &error) == TESS_STATE_OK);
    CHECK(loaded == saved);
    CHECK((head.step == -12 && head.seed == UINT64_MAX - 5 && std::string(head.semantic_hash) == "sha256:0123"));
    // As safetensors has it: data aligned, wide types first.
    const std::string file = bytes_of(path);
    uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    CHECK((header + 8) % 64 == 0);
    CHECK(file.size() == 8 + header + 8 + 60 + 30);
    CHECK(std::memcmp(file.data() + 8 + header, saved.count.data(), 8) == 0);
    std::vector<std::string> names;
    REQUIRE(tess_state_look(
                path.c_str(), &head,
                [](void *state, const TessStoredTensor *t) {
                    static_cast<std::vector<std::string> *>(state)->push_back(std::string(t->name) + " " + std::to_string(t->rank));
                    return 0;
                },
                &names, &error) == TESS_STATE_OK);
    CHECK(names == std::vector<std::string>{"count 0", "layer.0/\"w\"\n 2", "none 1", "narrow 1"});
}

TEST_CASE("a file that is cut or changed anywhere is refused, and the tensors stay as they were") {
    const Folder folder;
    const std::string path = folder.path() + "/state";
    States saved(3), loaded(4);
    const States before(4);
    TessStateError error = {};
    TessStateHead head = {};
    REQUIRE(save(path, saved, 1) == TESS_STATE_OK);
    const std::string file = bytes_of(path);
    for (size_t size = 0; size < file.size(); size++) {
        write(path, file.substr(0, size));
        const TessStateStatus got = load(path, loaded, &head, &error);
        CHECK((got == TESS_STATE_DAMAGED));
    }
    write(path, file + "x");
    expect(load(path, loaded, &head, &error), TESS_STATE_DAMAGED, error, "It is cut or damaged; use the one before it");
    for (size_t at = 0; at < file.size(); at++) {
        std::string changed = file;
        changed[at] ^= 1 << at % 8;
        write(path, changed);
        const TessStateStatus got = load(path, loaded, &head, &error);
        if (got != TESS_STATE_DAMAGED && got != TESS_STATE_FOREIGN)
            FAIL("byte " << at << ": " << tess_state_status_id(got) << ": " << error.text);
    }
    CHECK(loaded == before);
    CHECK(head.step == 0);
}

TEST_CASE("a foreign file and other tensors are refused in words") {
    const Folder folder;
    const std::string path = folder.path() + "/state";
    States saved(3);
    TessStateError error = {};
    TessStateHead head = {};
    expect(load(path, saved, &head, &error), TESS_STATE_FILE, error, "there is none");
    expect(load(folder.path(), saved, &head, &error), TESS_STATE_FOREIGN, error, "it is no regular file");
    write(path, "a text of somebody, which is longer than eight bytes");
    expect(load(path, saved, &head, &error), TESS_STATE_FOREIGN, error, "no safetensors header");
    write(path, std::string("\x02\0\0\0\0\0\0\0{}", 10));
    expect(load(path, saved, &head, &error), TESS_STATE_FOREIGN, error, "its metadata do not say so");
    write(path, std::string("\x02\0\0\0\0\0\0\0[]", 10));
    expect(load(path, saved, &head, &error), TESS_STATE_FOREIGN, error, "its header is no object");

    REQUIRE(save(path, saved, 1) == TESS_STATE_OK);
    std::strcpy(head.semantic_hash, "sha256:other");
    expect(load(path, saved, &head, &error), TESS_STATE_MISMATCH, error, "expected states of 'sha256:other', got states of 'sha256:0123'");
    head = {};
    const auto with = [&](auto change) {
        auto tensors = saved.tensors();
        change(tensors);
        return tess_state_load(path.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), &error);
    };
    expect(with([](auto &t) { t[1].name = "wide"; }), TESS_STATE_MISMATCH, error, "'narrow' is there, and was not asked for");
    expect(with([](auto &t) { t.push_back({"more", t[0].tensor}); }), TESS_STATE_MISMATCH, error, "expected 5 tensors");
    expect(with([](auto &t) { t[1].tensor.type = tess_type(TESS_F16); }), TESS_STATE_MISMATCH, error, "'narrow' has another type there");
    int64_t turned[2] = {5, 3};
    expect(with([&](auto &t) { t[0].tensor.extents = turned; }), TESS_STATE_MISMATCH, error, "has other extents there");
    expect(with([&](auto &t) { t[0].tensor.type = tess_type(TESS_I4); }), TESS_STATE_ARGUMENT, error, "safetensors has no name for type");
    int64_t strides[2] = {1, 3};
    expect(with([&](auto &t) { t[0].tensor.strides = strides; }), TESS_STATE_ARGUMENT, error, "row-major without gaps, got other strides");
    auto twice = saved.tensors();
    twice[1].name = "count";
    const TessStateHead given = head_of(1);
    expect(tess_state_save(path.c_str(), &given, twice.data(), 4, &error), TESS_STATE_ARGUMENT, error, "expected each name once");
    expect(tess_state_save((folder.path() + "/no/state").c_str(), &given, twice.data(), 1, &error), TESS_STATE_FILE, error,
           "its folder is not there");
}

TEST_CASE("whatever fails while a state is saved, the one before it is still there") {
    const Folder folder;
    const std::string path = folder.path() + "/state";
    States first(1), second(2), loaded(9);
    REQUIRE(save(path, first, 1) == TESS_STATE_OK);
    int failures = 0;
    for (const int number : {ENOSPC, EIO})
        for (int which = 0; which < 3; which++)
            for (int countdown = 0;; countdown++) {
                faults = {};
                faults.number = number, faults.countdown = countdown, faults.is_short = true;
                (which == 0 ? faults.in_write : which == 1 ? faults.in_fsync : faults.in_rename) = true;
                TessStateError error = {};
                const TessStateStatus got = save(path, second, 2, &error);
                const bool failed = faults.failed > 0, is_folder = which == 1 && countdown == 1;
                faults = {};
                TessStateHead head = {};
                REQUIRE(load(path, loaded, &head, &error) == TESS_STATE_OK);
                CHECK(folder.files("").size() == 1);
                if (!failed) {
                    CHECK((got == TESS_STATE_OK && loaded == second));
                    REQUIRE(save(path, first, 1) == TESS_STATE_OK);
                    break;
                }
                failures++;
                CHECK(got == (number == ENOSPC ? TESS_STATE_SPACE : TESS_STATE_FILE));
                if (!is_folder) CHECK(loaded == first);
                if (is_folder) REQUIRE(save(path, first, 1) == TESS_STATE_OK);
            }
    CHECK(failures >= 10);
    CHECK(loaded == second);
}

}  // namespace tessera::test_state
