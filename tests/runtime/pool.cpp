#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_pool {

using namespace tessera::test;

namespace {

using Task = std::function<int(int32_t index, int32_t worker)>;

int parallel_for(const TessPool *pool, int32_t count, int32_t workers, Task task) {
    return pool->parallel_for(
        pool->state, [](void *closure, int32_t index, int32_t worker) { return (*static_cast<Task *>(closure))(index, worker); }, &task,
        count, workers);
}

struct Pool {
    explicit Pool(int32_t threads) : pool(tess_pool_create(threads)) { REQUIRE(pool != nullptr); }
    ~Pool() { tess_pool_destroy(pool); }
    operator const TessPool *() const { return pool; }
    TessPool *pool;
};

int run_body(const TessContext *context, TessBody body) {
    const auto spec = toy_spec({}, {});
    const TessContext own = telling(context);
    return tess_abi2_call(spec.data(), nullptr, body, nullptr, nullptr, &own);
}

}  // namespace

TEST_CASE("the number of processors is at least one") { CHECK(tess_cpu_count() >= 1); }

TEST_CASE("every index runs exactly once, and no worker twice at a time") {
    for (int32_t threads : {1, 2, 3, 8}) {
        const Pool pool(threads);
        for (int32_t workers : {0, 1, 2, 5, 100}) {
            for (int32_t count : {0, 1, 2, 3, 7, 1000}) {
                std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
                std::vector<std::atomic<int>> inside(100);
                std::atomic<int> wrong{0};
                const int status = parallel_for(pool, count, workers, [&](int32_t i, int32_t w) {
                    if (w < 0 || w >= std::max(workers, 1) || w >= threads) ++wrong;
                    if (inside[size_t(w)]++ != 0) ++wrong;
                    ++runs[size_t(i)];
                    --inside[size_t(w)];
                    return 0;
                });
                REQUIRE(status == 0);
                REQUIRE(wrong == 0);
                for (const auto &run : runs) REQUIRE(run == 1);
            }
        }
    }
}

TEST_CASE("many short jobs in a row") {
    const Pool pool(4);
    std::atomic<int64_t> sum{0};
    for (int job = 0; job < 5000; ++job) {
        parallel_for(pool, 1 + job % 6, 1 + job % 5, [&](int32_t index, int32_t) {
            sum += index + 1;
            return 0;
        });
        // Now and then long enough for the helpers to fall asleep.
        if (job % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    int64_t expected = 0;
    for (int job = 0; job < 5000; ++job) expected += (1 + job % 6) * (2 + job % 6) / 2;
    CHECK(sum == expected);
}

TEST_CASE("other threads take part") {
    const Pool pool(3);
    // The task on the caller waits for one on another thread, so this ends only if there is one.
    std::atomic<bool> helped{false};
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(pool, 2, 2, [&](int32_t, int32_t worker) {
        if (std::this_thread::get_id() == caller) {
            while (!helped) std::this_thread::yield();
            return worker;
        }
        helped = true;
        return 0;
    });
    CHECK(helped);
}

TEST_CASE("the caller sleeps until a long task of a helper ends") {
    const Pool pool(2);
    std::atomic<bool> started{false}, ended{false};
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(pool, 2, 2, [&](int32_t, int32_t) {
        if (std::this_thread::get_id() == caller) {
            while (!started) std::this_thread::yield();
            return 0;
        }
        started = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        ended = true;
        return 0;
    });
    CHECK(ended);
}

TEST_CASE("nested calls run on their caller") {
    const Pool pool(4);
    std::atomic<int> runs{0}, strayed{0};
    parallel_for(pool, 10, 4, [&](int32_t, int32_t) {
        const std::thread::id here = std::this_thread::get_id();
        return parallel_for(pool, 10, 4, [&](int32_t, int32_t worker) {
            ++runs;
            if (std::this_thread::get_id() != here || worker != 0) ++strayed;
            return 0;
        });
    });
    CHECK(runs == 100);
    CHECK(strayed == 0);
}

TEST_CASE("several threads may use one pool at once") {
    const Pool pool(3);
    std::vector<std::thread> callers;
    std::atomic<int64_t> runs{0};
    for (int caller = 0; caller < 4; ++caller) {
        callers.emplace_back([&] {
            for (int job = 0; job < 500; ++job) parallel_for(pool, 7, 3, [&](int32_t, int32_t) { return ++runs, 0; });
        });
    }
    for (std::thread &caller : callers) caller.join();
    CHECK(runs == 4 * 500 * 7);
}

TEST_CASE("a failing task stops the rest, and its status is returned") {
    const Pool pool(3);
    for (int32_t workers : {1, 3}) {
        std::atomic<int> runs{0};
        CHECK(parallel_for(pool, 1000000, workers, [&](int32_t index, int32_t) {
                  ++runs;
                  return index == 10 ? 42 : 0;
              }) == 42);
        CHECK(runs < 1000000);
    }
    CHECK(parallel_for(pool, 100, 3, [](int32_t, int32_t) { return 0; }) == 0);
}

TEST_CASE("a forked child works alone instead of waiting for threads that it lacks") {
    const Pool pool(4);
    parallel_for(pool, 100, 4, [](int32_t, int32_t) { return 0; });
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int runs = 0;
        const int status = parallel_for(pool, 100, 4, [&](int32_t, int32_t worker) {
            runs += worker == 0;
            return 0;
        });
        tess_pool_destroy(pool.pool);
        _exit(status == 0 && runs == 100 ? 0 : 1);
    }
    int ended = -1;
    REQUIRE(waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended));
    CHECK(WEXITSTATUS(ended) == 0);
    std::atomic<int> runs{0};
    parallel_for(pool, 100, 4, [&](int32_t, int32_t) { return ++runs, 0; });
    CHECK(runs == 100);
}

TEST_CASE("pools that cannot be are null") {
    CHECK(tess_pool_create(0) == nullptr);
    CHECK(tess_pool_create(-3) == nullptr);
    CHECK(tess_pool_create(4097) == nullptr);
    tess_pool_destroy(nullptr);
}

namespace {

struct OwnPool {
    int calls = 0;
    int32_t shift = 0, workers = 0;
};

/// Runs backwards, on this thread, as if on several.
int32_t own_parallel_for(void *state, int32_t (*task)(void *, int32_t, int32_t), void *closure, int32_t count, int32_t workers) {
    auto *own = static_cast<OwnPool *>(state);
    ++own->calls;
    own->workers = workers;
    for (int32_t i = count - 1; i >= 0; --i)
        if (int status = task(closure, i, i % workers + own->shift)) return status;
    return 0;
}

std::vector<std::pair<int, int>> trace;  // index, worker

int32_t note(void *call, int32_t index, uint8_t *) {
    trace.emplace_back(index, tess_abi2_worker(call));
    return 0;
}

int32_t note_nested(void *call, int32_t index, uint8_t *) { return tess_abi2_do_par_for(call, note, index * 10, 2, nullptr); }

int32_t body_flat(void *call, int64_t *) { return tess_abi2_do_par_for(call, note, 5, 3, nullptr); }

int32_t body_nested(void *call, int64_t *) { return tess_abi2_do_par_for(call, note_nested, 1, 2, nullptr); }

int32_t body_empty(void *call, int64_t *) { return tess_abi2_do_par_for(call, note, 5, 0, nullptr); }

int32_t fail_at_6(void *, int32_t index, uint8_t *) { return index == 6 ? -9 : 0; }

int32_t body_fails(void *call, int64_t *) { return tess_abi2_do_par_for(call, fail_at_6, 0, 20, nullptr); }

}  // namespace

TEST_CASE("kernels use the application's pool, once per outer loop") {
    using Trace = std::vector<std::pair<int, int>>;
    OwnPool own;
    const TessPool pool = {sizeof(TessPool), 0, &own, own_parallel_for};
    TessContext context = tess_context();
    context.pool = &pool;
    context.threads = 2;

    trace.clear();
    REQUIRE(run_body(&context, body_flat) == TESS_OK);
    CHECK(trace == Trace{{7, 0}, {6, 1}, {5, 0}});
    CHECK(own.calls == 1);
    CHECK(own.workers == 2);

    // The inner loop keeps the worker of the outer one, whose memory it uses.
    trace.clear();
    REQUIRE(run_body(&context, body_nested) == TESS_OK);
    CHECK(trace == Trace{{20, 1}, {21, 1}, {10, 0}, {11, 0}});
    CHECK(own.calls == 2);

    context.threads = 1;
    trace.clear();
    REQUIRE(run_body(&context, body_flat) == TESS_OK);
    REQUIRE(run_body(nullptr, body_flat) == TESS_OK);
    CHECK(trace == Trace{{5, 0}, {6, 0}, {7, 0}, {5, 0}, {6, 0}, {7, 0}});
    trace.clear();
    REQUIRE(run_body(&context, body_empty) == TESS_OK);
    CHECK(trace.empty());
    CHECK(own.calls == 2);
}

TEST_CASE("a pool's workers must be those of the context") {
    OwnPool own;
    own.shift = 1;
    const TessPool pool = {sizeof(TessPool), 0, &own, own_parallel_for};
    TessContext context = tess_context();
    context.pool = &pool;
    context.threads = 2;
    trace.clear();
    CHECK(words(run_body(&context, body_flat)) == "the context has a pool that gave a worker outside [0, workers)");
}

TEST_CASE("a failing task of a kernel fails the run") {
    const Pool pool(3);
    TessContext context = tess_context();
    for (int32_t threads : {1, 3}) {
        context.pool = pool;
        context.threads = threads;
        CHECK(words(run_body(&context, body_fails)) == "the kernel's code or the pool failed with code -9");
    }
}

}  // namespace tessera::test_pool
