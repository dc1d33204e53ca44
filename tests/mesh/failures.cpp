#include <dirent.h>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <string>

#include "tests/mesh/ranks.h"

namespace tessera::test_mesh {

namespace {

using Clock = std::chrono::steady_clock;

int threads_of_this_process() {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    if (folder == nullptr) return -1;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
}

/// One of a sequence of collectives that alternate, on `mesh`.
int32_t operation(TessMesh *mesh, int i, TessFault *fault) {
    static thread_local std::vector<float> in(20'000, 1), out(80'000);
    TessCollective c = tess_collective(i % 3 == 0 ? TESS_ALL_REDUCE : i % 3 == 1 ? TESS_ALL_GATHER : TESS_ALL_TO_ALL);
    c.dtype = TESS_F32;
    if (i % 3 == 0) c.monoid = TESS_SUM;
    c.count = i % 2 == 0 ? 1 : 5000;
    c.input = in.data(), c.result = out.data();
    return tess_mesh_collective(mesh, &c, fault);
}

struct Outcome {
    int32_t status = 0, again = 0;
    TessFault fault = tess_fault();
    int failed_at = -1;
    double late_ms = 0;  // how long the call took that failed
};

enum class Way { late, stopped, closed, slow };

/// `ranks` ranks run operations; the last one fails at operation `at` in this way.
std::vector<Outcome> fail_at(int ranks, int at, Way way, int timeout_ms) {
    std::vector<Outcome> outcomes(size_t(ranks), Outcome{});
    std::atomic<int> still = ranks - 1;
    on_ranks(
        ranks,
        [&](TessMesh *mesh, int r) {
            Outcome &mine = outcomes[size_t(r)];
            const bool culprit = r == ranks - 1;
            for (int i = 0; i < at + 4; ++i) {
                if (culprit && i == at) {
                    if (way == Way::closed) return;  // its mesh is destroyed
                    if (way == Way::slow) std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms / 3));
                    if (way == Way::late) std::this_thread::sleep_for(std::chrono::milliseconds(2 * timeout_ms));
                    if (way == Way::stopped) {  // until all others have returned
                        while (still > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        return;
                    }
                }
                const auto begin = Clock::now();
                mine.status = operation(mesh, i, &mine.fault);
                mine.late_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
                if (mine.status != TESS_OK) {
                    mine.failed_at = i;
                    mine.again = operation(mesh, i, nullptr);
                    break;
                }
            }
            if (!culprit) --still;
        },
        uint64_t(timeout_ms) * 1'000'000);
    return outcomes;
}

}  // namespace

TEST_CASE("whatever happens to one rank, the others return in time and say whom they waited for") {
    const int before = threads_of_this_process();
    for (const int ranks : {2, 4})
        for (const Way way : {Way::late, Way::stopped, Way::closed})
            for (int at = 0; at < 64; at += way == Way::closed ? 1 : at < 3 ? 1 : 29) {
                const int timeout = way == Way::closed ? 20'000 : 250;  // who is closed is known at once, however busy the machine
                INFO("ranks " << ranks << " way " << int(way) << " at " << at);
                const std::vector<Outcome> outcomes = fail_at(ranks, at, way, timeout);
                for (int r = 0; r < ranks - 1; ++r) {
                    const Outcome &mine = outcomes[size_t(r)];
                    INFO("rank " << r << " " << tess_status_kind(mine.status) << " at " << mine.failed_at << ", rank " << mine.fault.got);
                    CHECK((mine.status == TESS_MESH_LATE || mine.status == TESS_MESH_LOST));
                    CHECK(mine.again == TESS_MESH_BROKEN);
                    // One that runs ahead may be told in the next operation by another that was late.
                    CHECK(mine.fault.expected == mine.failed_at);
                    CHECK(mine.failed_at >= (ranks == 2 ? at : at - 1));  // of more, one that is behind may be told by another
                    CHECK(mine.failed_at <= at + 1);
                    CHECK(mine.late_ms < timeout + 5000);  // it would hang otherwise; a busy machine may keep a rank waiting
                    CHECK(mine.fault.got >= 0);
                    if (ranks == 2) CHECK(mine.fault.got == 1);
                    if (ranks == 2) CHECK(mine.status == (way == Way::closed ? TESS_MESH_LOST : TESS_MESH_LATE));
                }
            }
    CHECK(threads_of_this_process() == before);
}

TEST_CASE("a rank that is slow, and not too slow, changes nothing") {
    for (const int at : {0, 1, 5}) {
        for (const Outcome &outcome : fail_at(3, at, Way::slow, 1500)) CHECK(outcome.status == TESS_OK);
    }
}

TEST_CASE("a rank that is done, and gone, is not lost to those that still read what it sent") {
    std::atomic<int> failed = 0;
    for (int round = 0; round < 300; ++round)
        on_ranks(2, [&](TessMesh *mesh, int) {
            std::vector<float> in(6 * 5, 1), out(5);
            TessCollective c = tess_collective(TESS_ALL_REDUCE);  // two subtrees a rank, so two messages behind a head
            c.dtype = TESS_F32, c.monoid = TESS_SUM, c.chunks = 12, c.count = 5, c.input = in.data(), c.result = out.data();
            if (tess_mesh_collective(mesh, &c, nullptr) != TESS_OK) ++failed;
        });
    CHECK(failed == 0);
}

TEST_CASE("a rank that runs another program is found by its first message") {
    for (const int ranks : {2, 3}) {
        std::vector<int32_t> statuses(size_t(ranks), -1);
        std::vector<int64_t> culprits(size_t(ranks), -1);
        on_ranks(
            ranks,
            [&](TessMesh *mesh, int r) {
                TessFault fault = tess_fault();
                statuses[size_t(r)] = operation(mesh, 0, &fault);
                culprits[size_t(r)] = fault.got;
            },
            5'000'000'000, [&](int r) { return uint64_t(r == ranks - 1 ? 9 : 7); });
        bool found = false;
        for (int r = 0; r < ranks; ++r) {
            CHECK((statuses[size_t(r)] == TESS_MESH_ORDER || statuses[size_t(r)] == TESS_MESH_LOST));
            found = found || statuses[size_t(r)] == TESS_MESH_ORDER;
        }
        CHECK(found);
        if (ranks == 2) CHECK(culprits[0] == 1);
    }
}

TEST_CASE("a rank that starts another collective gives order, whatever differs") {
    for (int what = 0; what < 8; ++what) {
        std::vector<int32_t> statuses(2, -1);
        on_ranks(
            2,
            [&](TessMesh *mesh, int r) {
                std::vector<int32_t> in(4000), out(8000);
                TessCollective c = tess_collective(TESS_ALL_REDUCE);
                c.dtype = TESS_I32, c.monoid = TESS_SUM, c.chunks = 2, c.count = 1000, c.id = 3;
                if (r == 1) {
                    if (what == 0) c.kind = TESS_REDUCE_SCATTER;
                    if (what == 1) c.dtype = TESS_F32;
                    if (what == 2) c.monoid = TESS_MAX;
                    if (what == 3) c.chunks = 4;
                    if (what == 4) c.count = 999;
                    if (what == 5) c.id = 4;
                    if (what == 6) c.kind = TESS_SHIFT, c.distance = 1, c.monoid = c.chunks = 0;
                    if (what == 7) c.count = 2, c.id = 4;
                }
                c.input = in.data(), c.result = out.data();
                statuses[size_t(r)] = tess_mesh_collective(mesh, &c, nullptr);
            },
            5'000'000'000);
        INFO(what);
        CHECK((statuses[0] == TESS_MESH_ORDER || statuses[1] == TESS_MESH_ORDER));
        CHECK(statuses[0] != TESS_OK);
    }
}

TEST_CASE("a mesh that is destroyed with work in flight gives it up") {
    on_ranks(2, [&](TessMesh *mesh, int r) {
        std::vector<float> in(100'000), out(100'000);
        TessCollective c = tess_collective(TESS_ALL_REDUCE);
        int64_t started = -1;
        c.dtype = TESS_F32, c.monoid = TESS_SUM, c.count = 100'000, c.input = in.data(), c.result = out.data();
        if (r == 0) tess_mesh_start(mesh, &c, &started, nullptr);
    });
}

TEST_CASE("what cannot be done is refused and leaves the mesh as it was") {
    on_ranks(2, [&](TessMesh *mesh, int r) {
        static std::mutex one;  // Catch's assertions are for one thread at a time
        alignas(8) unsigned char in[64] = {}, out[64] = {};
        TessCollective good = tess_collective(TESS_ALL_REDUCE);
        good.dtype = TESS_F32, good.monoid = TESS_SUM, good.count = 4, good.input = in, good.result = out;
        {
            const std::lock_guard lock(one);
            TessFault fault = tess_fault();
            const auto refused = [&](int32_t status, const std::function<void(TessCollective &)> &change) {
                TessCollective c = good;
                int64_t started = 0;
                change(c);
                CHECK(tess_status_code(tess_mesh_start(mesh, &c, &started, &fault)) == status);
                CHECK(started == -1);
                CHECK(fault.kind == status);
            };
            refused(TESS_STRUCT_SIZE, [](TessCollective &c) { c.size = 8; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.kind = 0; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.kind = 10; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.monoid = 5; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.flags = 64; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.flags = TESS_COLLECTIVE_OPEN; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.distance = 1; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.peer = 1; });
            refused(TESS_MESH_COLLECTIVE, [](TessCollective &c) { c.kind = TESS_SHIFT; });
            refused(TESS_MESH_GROUP, [](TessCollective &c) { c.group = 1; });
            refused(TESS_MESH_GROUP, [](TessCollective &c) { c.group = -1; });
            refused(TESS_DTYPE, [](TessCollective &c) { c.dtype = TESS_U8; });
            refused(TESS_DTYPE, [](TessCollective &c) { c.dtype = 12345; });
            refused(TESS_MESH_CHUNKS, [](TessCollective &c) { c.chunks = 3; });
            CHECK(fault.expected == 3);
            CHECK(fault.got == 2);
            refused(TESS_MESH_CHUNKS, [](TessCollective &c) { c.chunks = -2; });
            refused(TESS_MESH_CHUNKS, [](TessCollective &c) { c.chunks = 65538; });
            refused(TESS_MESH_COUNT, [](TessCollective &c) { c.count = -1; });
            refused(TESS_MESH_COUNT, [](TessCollective &c) { c.count = INT64_MAX; });
            refused(TESS_NULL_DATA, [](TessCollective &c) { c.input = nullptr; });
            refused(TESS_NULL_DATA, [](TessCollective &c) { c.result = nullptr; });
            refused(TESS_MISALIGNED, [&](TessCollective &c) { c.input = in + 2; });
            refused(TESS_OVERLAP, [&](TessCollective &c) { c.result = in + 4; });
            refused(TESS_OVERLAP, [&](TessCollective &c) { c.chunks = 4, c.result = in; });
            refused(TESS_MESH_RANK, [&](TessCollective &c) { c.kind = TESS_BROADCAST, c.monoid = 0, c.peer = 2; });
            refused(TESS_MESH_RANK, [&](TessCollective &c) { c.kind = TESS_SEND, c.monoid = 0, c.peer = r; });
            int32_t done = 0, group = 0, twice[] = {0, 0}, absent[] = {0, 2}, other[] = {1 - r};
            CHECK(tess_mesh_wait(mesh, 0, &fault) == TESS_MESH_OPERATION);
            CHECK(tess_mesh_test(mesh, -1, &done, &fault) == TESS_MESH_OPERATION);
            CHECK(tess_mesh_group(mesh, twice, 2, &group, &fault) == TESS_MESH_RANK);
            CHECK(tess_mesh_group(mesh, absent, 2, &group, &fault) == TESS_MESH_RANK);
            CHECK(tess_mesh_group(mesh, other, 1, &group, &fault) == TESS_MESH_RANK);
            CHECK(tess_mesh_axes(mesh, twice, 2, absent, &fault) == TESS_MESH_RANK);
            fault.size = 4;
            CHECK(tess_mesh_collective(mesh, &good, &fault) == TESS_FAULT_SIZE);
        }
        const int32_t status = tess_mesh_collective(mesh, &good, nullptr);
        const std::lock_guard lock(one);
        CHECK(status == TESS_OK);
    });
    TessThreads *threads = nullptr;
    CHECK(tess_threads_create(0, &threads) == TESS_MESH_RANK);
    CHECK(tess_threads_create(257, &threads) == TESS_MESH_RANK);
    REQUIRE(tess_threads_create(1, &threads) == TESS_OK);
    TessEngine engine, second;
    TessMesh *mesh = nullptr;
    REQUIRE(tess_threads_engine(threads, 0, &engine) == TESS_OK);
    CHECK(tess_threads_engine(threads, 0, &second) == TESS_MESH_RANK);
    CHECK(tess_threads_engine(threads, 1, &second) == TESS_MESH_RANK);
    second = engine;
    second.send = nullptr;
    CHECK(tess_mesh_create(&second, nullptr, &mesh, nullptr) == TESS_MESH_ENGINE);
    TessMeshOptions options = tess_mesh_options();
    options.flags = 1;
    CHECK(tess_mesh_create(&engine, &options, &mesh, nullptr) == TESS_CONTEXT_NEWER);
    engine.close(engine.state);
    tess_threads_destroy(threads);
    tess_threads_destroy(nullptr);
    tess_mesh_destroy(nullptr);
}

}  // namespace tessera::test_mesh
