#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_run {

using namespace tessera::test;

namespace {

// y(M) = sum over K of x(M, K), times a parameter; each worker keeps its sum in its workspace.
const std::vector<int64_t> row_sum = toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {0}}}, 1);

int32_t plan_row_sum(int64_t *frame) {
    frame[tess_frame_shared_bytes(row_sum.data())] = 10;
    frame[tess_frame_worker_bytes(row_sum.data())] = sizeof(float);
    return 0;
}

int32_t one_row(void *call, int32_t index, uint8_t *closure) {
    const int64_t *s = row_sum.data();
    const int64_t *frame = reinterpret_cast<int64_t *>(closure);
    const auto slot = [&](int64_t at) { return frame[at]; };
    const float *x = reinterpret_cast<float *>(slot(tess_frame_data(s, 0)));
    float *y = reinterpret_cast<float *>(slot(tess_frame_data(s, 1)));
    auto *sum = reinterpret_cast<float *>(slot(tess_frame_workspace(s)) + slot(tess_frame_shared_bytes(s)) +
                                          tess_abi2_worker(call) * slot(tess_frame_worker_bytes(s)));
    float factor;
    std::memcpy(&factor, frame + tess_frame_parameter(s, 0), sizeof factor);
    *sum = 0;
    for (int64_t k = 0; k < slot(tess_frame_dim(1)); ++k)
        *sum += x[index * slot(tess_frame_stride(s, 0, 0)) + k * slot(tess_frame_stride(s, 0, 1))];
    y[index * slot(tess_frame_stride(s, 1, 0))] = *sum * factor;
    return 0;
}

int32_t body_row_sum(void *call, int64_t *frame) {
    return tess_abi2_do_par_for(call, one_row, 0, int(frame[tess_frame_dim(0)]), reinterpret_cast<uint8_t *>(frame));
}

int run_row_sum(const std::vector<Tensor> &args, const TessContext *context, float factor = 1) {
    int64_t bits = 0;
    std::memcpy(&bits, &factor, sizeof factor);
    const TessContext own = telling(context);
    return tess_abi2_call(row_sum.data(), plan_row_sum, body_row_sum, pointers(args).data(), &bits, &own);
}

struct Workspace {
    alignas(64) unsigned char bytes[4096] = {};
};

TessContext context_of(Workspace &workspace, const TessPool *pool = nullptr, int32_t threads = 0) {
    TessContext context = tess_context();
    context.workspace = workspace.bytes;
    context.workspace_bytes = sizeof workspace.bytes;
    context.pool = pool;
    context.threads = threads;
    return context;
}

int64_t seen[64];

int32_t remember(void *call, int64_t *frame) {
    const auto *here = static_cast<TessCall *>(call);
    REQUIRE(here->worker == 0);
    REQUIRE(here->workers == 1);
    std::memcpy(seen, frame, size_t(tess_frame_size(row_sum.data())) * sizeof(int64_t));
    return 0;
}

int answer_of_body = 0, answer_of_plan = 0;
int64_t plan_shared = 0, plan_worker = 0;

int32_t body_answers(void *, int64_t *) { return answer_of_body; }

int32_t plan_answers(int64_t *frame) {
    const auto spec = toy_spec({}, {});
    frame[tess_frame_shared_bytes(spec.data())] = plan_shared;
    frame[tess_frame_worker_bytes(spec.data())] = plan_worker;
    return answer_of_plan;
}

}  // namespace

TEST_CASE("a kernel computes, with and without threads") {
    TessPool *pool = tess_pool_create(4);
    REQUIRE(pool != nullptr);
    std::vector<float> x(100 * 7), y(100);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 13);
    for (int32_t threads : {0, 1, 3, 4, 9}) {
        Workspace workspace;
        const TessContext context = context_of(workspace, pool, threads);
        std::fill(y.begin(), y.end(), -1.0f);
        REQUIRE(run_row_sum({dense(x.data(), {100, 7}), dense(y.data(), {100})}, &context, 2) == 0);
        for (size_t m = 0; m < 100; ++m) {
            float sum = 0;
            for (size_t k = 0; k < 7; ++k) sum += x[m * 7 + k];
            REQUIRE(y[m] == 2 * sum);
        }
    }
    tess_pool_destroy(pool);
}

TEST_CASE("the body runs on empty extents: an empty sum is zero") {
    float y[3] = {1, 2, 3};
    Workspace workspace;
    const TessContext context = context_of(workspace);
    REQUIRE(run_row_sum({dense(nullptr, {3, 0}), dense(y, {3})}, &context) == TESS_OK);
    CHECK(y[0] + y[1] + y[2] == 0);
    CHECK(run_row_sum({dense(nullptr, {0, 5}), dense(nullptr, {0})}, &context) == TESS_OK);
}

TEST_CASE("the frame holds what the contract says") {
    const int64_t *s = row_sum.data();
    float x[32], y[4];
    const int64_t bits = 77;
    const std::vector<Tensor> args = {strided(x, {3, 5}, {8, 1}), strided(y, {3}, {1})};
    REQUIRE(tess_abi2_call(s, nullptr, remember, pointers(args).data(), &bits, nullptr) == 0);
    CHECK(seen[tess_frame_dim(0)] == 3);
    CHECK(seen[tess_frame_dim(1)] == 5);
    CHECK(seen[tess_frame_data(s, 0)] == reinterpret_cast<int64_t>(x));
    CHECK(seen[tess_frame_stride(s, 0, 0)] == 8);
    CHECK(seen[tess_frame_stride(s, 0, 1)] == 1);
    CHECK(seen[tess_frame_data(s, 1)] == reinterpret_cast<int64_t>(y));
    CHECK(seen[tess_frame_parameter(s, 0)] == 77);
    CHECK(seen[tess_frame_workspace(s)] == 0);
    CHECK(seen[tess_frame_shared_bytes(s)] == 0);
    CHECK(seen[tess_frame_worker_bytes(s)] == 0);
    CHECK(seen[tess_frame_workers(s)] == 1);

    // Strides that nobody steps along are put in order.
    const std::vector<Tensor> odd = {strided(x, {1, 1}, {INT64_MIN, INT64_MAX}), strided(y, {1}, {-9})};
    REQUIRE(tess_abi2_call(s, nullptr, remember, pointers(odd).data(), &bits, nullptr) == 0);
    CHECK(seen[tess_frame_stride(s, 0, 0)] == 0);
    CHECK(seen[tess_frame_stride(s, 0, 1)] == 1);
    CHECK(seen[tess_frame_stride(s, 1, 0)] == 1);
}

TEST_CASE("the workspace query answers from shapes alone") {
    uint64_t bytes = 99;
    const std::vector<Tensor> args = {dense(nullptr, {3, 5}), dense(nullptr, {3})};
    const auto query = [&](const TessContext *context) {
        return tess_abi2_workspace(row_sum.data(), plan_row_sum, body_row_sum, pointers(args).data(), context, &bytes);
    };
    CHECK(query(nullptr) == TESS_OK);
    CHECK(bytes == 128);
    TessPool *pool = tess_pool_create(2);
    TessContext context = tess_context();
    context.threads = 5;
    CHECK(query(&context) == TESS_OK);
    CHECK(bytes == 128);
    context.pool = pool;
    CHECK(query(&context) == TESS_OK);
    CHECK(bytes == 64 + 5 * 64);
    tess_pool_destroy(pool);

    CHECK(tess_abi2_workspace(row_sum.data(), nullptr, body_row_sum, pointers(args).data(), nullptr, &bytes) == TESS_OK);
    CHECK(bytes == 0);
    CHECK(words(tess_abi2_workspace(row_sum.data(), nullptr, body_row_sum, pointers(args).data(), nullptr, nullptr)) ==
          "a pointer to what is given or for a result is null");
    const std::vector<Tensor> bad = {dense(nullptr, {3, 5}), dense(nullptr, {4})};
    bytes = 99;
    CHECK(tess_status_code(tess_abi2_workspace(row_sum.data(), plan_row_sum, body_row_sum, pointers(bad).data(), nullptr, &bytes)) ==
          TESS_EXTENT_MISMATCH);
    CHECK(bytes == 0);
}

TEST_CASE("the workspace is checked") {
    float x[15], y[3];
    const std::vector<Tensor> args = {dense(x, {3, 5}), dense(y, {3})};
    Workspace workspace;
    TessContext context = context_of(workspace);
    const std::string missing =
        "the kernel needs a workspace, and the context has none; 128 bytes are enough; ask the "
        "kernel's workspace query, with the same arguments and context";
    CHECK(words(run_row_sum(args, nullptr)) == missing);
    context.workspace = nullptr;
    CHECK(words(run_row_sum(args, &context)) == missing);
    context = context_of(workspace);
    context.workspace_bytes = 127;
    CHECK(words(run_row_sum(args, &context)) ==
          "the workspace is too small; 128 bytes are enough, not 127; ask the kernel's workspace query, with "
          "the same arguments and context");
    context.workspace_bytes = 128;
    CHECK(run_row_sum(args, &context) == TESS_OK);
    context.workspace = workspace.bytes + 32;
    CHECK(words(run_row_sum(args, &context)) == "the workspace must be aligned to 64 bytes");
    context = context_of(workspace);
    CHECK(words(run_row_sum({dense(x, {3, 5}), dense(workspace.bytes + 64, {3})}, &context)) ==
          "argument 1: memory is shared with the workspace");
}

int64_t left_to_plan, left_to_body;
std::vector<int64_t> plain_spec;

int32_t note_in_plan(int64_t *frame) {
    left_to_plan = frame[tess_frame_features(plain_spec.data())];
    return 0;
}

int32_t note_in_body(void *, int64_t *frame) {
    left_to_body = frame[tess_frame_features(plain_spec.data())];
    return 0;
}

TEST_CASE("a call does without the features that its context turns off") {
    plain_spec = toy_spec({}, {});
    const uint64_t have = tess_cpu_features();
    for (uint64_t off : {uint64_t(0), uint64_t(1) << TESS_CPU_AVX2, ~uint64_t(0)}) {
        TessContext context = tess_context();
        context.features_off = off;
        uint64_t bytes = 0;
        CHECK(tess_abi2_workspace(plain_spec.data(), note_in_plan, note_in_body, nullptr, &context, &bytes) == TESS_OK);
        CHECK(uint64_t(left_to_plan) == (have & ~off));
        CHECK(tess_abi2_call(plain_spec.data(), note_in_plan, note_in_body, nullptr, nullptr, &context) == TESS_OK);
        CHECK(left_to_body == left_to_plan);
        if (have == 0) continue;
        const int status = check(toy_spec({}, {}, 0, have), {}, &context);
        CHECK((status == TESS_OK) == ((have & off) == 0));
        if (status != TESS_OK) CHECK(tess_status_code(status) == TESS_CPU);
    }
    CHECK(tess_abi2_call(plain_spec.data(), note_in_plan, note_in_body, nullptr, nullptr, nullptr) == TESS_OK);
    CHECK(uint64_t(left_to_body) == have);
}

TEST_CASE("a context that cannot be right is refused") {
    TessContext context = tess_context();
    const auto spec = toy_spec({}, {});
    CHECK(check(spec, {}, &context) == TESS_OK);
    for (uint32_t size : {0u, 8u, uint32_t(sizeof context) - 1}) {
        context.size = size;
        CHECK(words(check(spec, {}, &context)) == "the context has too small a 'size'; set it to sizeof(TessContext)");
    }
    CHECK(words(check(spec, {}, &context)) == "the context has too small a 'size'; set it to sizeof(TessContext)");
    context = tess_context();
    context.threads = -1;
    CHECK(words(check(spec, {}, &context)) == "the context has negative 'threads'; 0 or 1 means the caller only");
    context = tess_context();
    TessPool hollow = {sizeof(TessPool), 0, nullptr, nullptr};
    context.pool = &hollow;
    CHECK(words(check(spec, {}, &context)) == "the context has a pool without 'parallel_for'");
    hollow.flags = 1;
    CHECK(tess_status_code(check(spec, {}, &context)) == TESS_POOL_NEWER);
    hollow.size = 8;
    CHECK(tess_status_code(check(spec, {}, &context)) == TESS_POOL_SIZE);
    context = tess_context();
    TessFault small = tess_fault();
    small.size = 8;
    context.fault = &small;
    CHECK(tess_status_code(check(spec, {}, &context)) == TESS_FAULT_SIZE);
    CHECK(small.kind == 0);
    context = tess_context();
    context.device = {TESS_CUDA, 0};
    CHECK(words(check(spec, {}, &context)) == "the context's device must be one of the kernel's kind, on the host, not on a CUDA device");
    context.device = {TESS_HOST, 3};
    CHECK(check(spec, {}, &context) == TESS_OK);
}

TEST_CASE("flags and fields that this library does not know must be 0") {
    const auto spec = toy_spec({}, {});
    TessContext context = tess_context();
    context.flags = 1;
    CHECK(tess_status_code(check(spec, {}, &context)) == TESS_CONTEXT_NEWER);
    context = tess_context();
    context.reserved = 1;
    CHECK(tess_status_code(check(spec, {}, &context)) == TESS_CONTEXT_NEWER);
    struct {
        TessContext known;
        uint64_t more[4];
    } newer = {tess_context(), {}};
    newer.known.size = sizeof newer;
    const auto call = [&] { return tess_abi2_call(spec.data(), nullptr, succeed, nullptr, nullptr, &newer.known); };
    CHECK(call() == TESS_OK);
    newer.more[3] = 1;
    CHECK(tess_status_code(call()) == TESS_CONTEXT_NEWER);
    struct {
        TessPool known;
        uint64_t more;
    } pool = {*tess_pool_create(1), 0};
    pool.known.size = sizeof pool;
    newer.more[3] = 0;
    newer.known.pool = &pool.known;
    CHECK(call() == TESS_OK);
    pool.more = 1;
    CHECK(tess_status_code(call()) == TESS_POOL_NEWER);
}

TEST_CASE("what body and plan return is passed on, foreign codes as task failures") {
    const auto spec = toy_spec({}, {});
    const TessContext context = telling();
    const auto run = [&] { return tess_abi2_call(spec.data(), plan_answers, body_answers, nullptr, nullptr, &context); };
    plan_shared = plan_worker = answer_of_plan = 0;
    answer_of_body = tess_abi2_status(TESS_MISALIGNED, 3);
    CHECK(run() == answer_of_body);
    answer_of_body = -12;
    CHECK(words(run()) == "the kernel's code or the pool failed with code -12");
    answer_of_body = 5;
    CHECK(words(run()) == "the kernel's code or the pool failed with code 5");
    answer_of_body = INT32_MIN;
    CHECK(words(run()) == "the kernel's code or the pool failed with code -2147483648");
    answer_of_body = 0;
    answer_of_plan = 3;
    CHECK(words(run()) == "the kernel's code or the pool failed with code 3");
    answer_of_plan = 0;
    plan_shared = -1;
    CHECK(tess_status_code(run()) == TESS_KERNEL);
    plan_shared = TESS_MAX_WORKSPACE_BYTES * 2;
    CHECK(words(run()) == "a buffer of the workspace would have more than 2147418111 elements; compute a part at a time");
    plan_shared = 0;
    plan_worker = INT64_MAX;
    CHECK(tess_status_code(run()) == TESS_WORKSPACE_LARGE);
    plan_worker = 0;
    CHECK(run() == TESS_OK);
}

TEST_CASE("kernels run at once on contexts of their own") {
    TessPool *pool = tess_pool_create(3);
    std::vector<std::thread> callers;
    std::vector<int> wrong(4, 0);
    for (size_t caller = 0; caller < wrong.size(); ++caller) {
        callers.emplace_back([&, caller] {
            Workspace workspace;
            const TessContext context = context_of(workspace, pool, 3);
            std::vector<float> x(40 * 5, float(caller)), y(40);
            for (int repeat = 0; repeat < 200; ++repeat) {
                std::fill(y.begin(), y.end(), -1.0f);
                const int status = run_row_sum({dense(x.data(), {40, 5}), dense(y.data(), {40})}, &context);
                wrong[caller] += status != 0;
                for (float value : y) wrong[caller] += value != 5 * float(caller);
            }
        });
    }
    for (std::thread &caller : callers) caller.join();
    CHECK(wrong == std::vector<int>(4, 0));
    tess_pool_destroy(pool);
}

#if defined(__SSE__)
namespace {

constexpr unsigned flags_mask = 0x3f, plain = 0x1f80;
unsigned body_saw = 0;
int tasks_wrong = 0;

int32_t look_at_floats(void *, int32_t, uint8_t *) {
    if ((_mm_getcsr() & ~flags_mask) != plain) __atomic_add_fetch(&tasks_wrong, 1, __ATOMIC_RELAXED);
    _mm_setcsr(0xffc0);
    return 0;
}

int32_t body_looks(void *call, int64_t *) {
    body_saw = _mm_getcsr();
    const int status = tess_abi2_do_par_for(call, look_at_floats, 0, 50, nullptr);
    _mm_setcsr(0xffff);
    return status;
}

}  // namespace

TEST_CASE("the body has plain floats, and the caller gets its state back") {
    const auto spec = toy_spec({}, {});
    TessPool *pool = tess_pool_create(3);
    TessContext context = tess_context();
    context.pool = pool;
    context.threads = 3;
    const unsigned before = _mm_getcsr();
    // FTZ and DAZ; round down and up with flags raised; exceptions unmasked.
    for (unsigned state : {0x1f80u, 0x9fc0u, 0x3fbfu, 0x5f80u, 0x0000u | 0x1e80u}) {
        _mm_setcsr(state);
        const int status = tess_abi2_call(spec.data(), nullptr, body_looks, nullptr, nullptr, &context);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        CHECK(status == TESS_OK);
        CHECK(after == state);
        CHECK((body_saw & ~flags_mask) == plain);
    }
    CHECK(tasks_wrong == 0);
    tess_pool_destroy(pool);
}
#endif

}  // namespace tessera::test_run
