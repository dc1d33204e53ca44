// Plans: what is fixed when one is made, what a run may change, and how a run refuses.
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_plan {

using namespace tessera::test;

namespace {

// y(M) = factor * sum over K of x(M, K) + the 4 bytes of workspace, in which body puts 1.
const std::vector<int64_t> spec = toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {0}}}, 1);

int32_t plan(int64_t *frame) {
    frame[tess_frame_shared_bytes(spec.data())] = 4;
    return 0;
}

int32_t body(void *, int64_t *frame) {
    const int64_t *s = spec.data();
    const auto *x = reinterpret_cast<const float *>(frame[tess_frame_data(s, 0)]);
    auto *y = reinterpret_cast<float *>(frame[tess_frame_data(s, 1)]);
    auto *one = reinterpret_cast<float *>(frame[tess_frame_workspace(s)]);
    *one = 1;
    for (int64_t m = 0; m < frame[0]; ++m) {
        float sum = 0;
        for (int64_t k = 0; k < frame[1]; ++k) sum += x[m * frame[tess_frame_stride(s, 0, 0)] + k];
        y[m * frame[tess_frame_stride(s, 1, 0)]] = sum * float(frame[tess_frame_parameter(s, 0)]) + *one;
    }
    return 0;
}

const TessKernel kernel = kernel_of(spec, plan, body);

struct alignas(64) Workspace {
    unsigned char bytes[64];
};

TessContext with(Workspace &workspace) {
    TessContext context = tess_context();
    context.workspace = workspace.bytes;
    context.workspace_bytes = sizeof workspace.bytes;
    return context;
}

// A kernel of n tensors of rank 0; the last is written. Its body counts calls.
std::vector<int64_t> many_tensors(size_t n) {
    std::vector<ToyTensor> tensors(n, {TESS_ROLE_INPUT, {}});
    tensors.back().role = TESS_ROLE_OUTPUT;
    return toy_spec({}, tensors);
}

}  // namespace

TEST_CASE("a plan is made once and run with other data") {
    float x[3][12], y[3][4];
    for (int i = 0; i < 36; ++i) x[i / 12][i % 12] = float(i);
    const int64_t factor = 2, other_factor = 10;
    Planned planned(kernel, {dense(nullptr, {4, 3}), dense(nullptr, {4})}, &factor);
    REQUIRE(planned.status == TESS_OK);
    uint64_t bytes = 0;
    CHECK(tess_plan_workspace(planned.plan(), &bytes) == TESS_OK);
    CHECK(bytes == 64);
    Workspace workspace;
    const TessContext context = with(workspace);
    for (int i = 0; i < 3; ++i) {
        REQUIRE(planned.run({x[i], y[i]}, nullptr, &context) == TESS_OK);
        for (int m = 0; m < 4; ++m) CHECK(y[i][m] == 2 * (x[i][3 * m] + x[i][3 * m + 1] + x[i][3 * m + 2]) + 1);
    }
    REQUIRE(planned.run({x[1], y[1]}, &other_factor, &context) == TESS_OK);
    CHECK(y[1][0] == 10 * (12 + 13 + 14) + 1);
    REQUIRE(planned.run({x[1], y[1]}, nullptr, &context) == TESS_OK);  // the plan's own again
    CHECK(y[1][0] == 2 * (12 + 13 + 14) + 1);
}

TEST_CASE("strides and byte offsets are the plan's; null strides are row-major") {
    float x[64], y[8];
    for (int i = 0; i < 64; ++i) x[i] = float(i);
    const int64_t factor = 1;
    Workspace workspace;
    const TessContext context = with(workspace);
    for (bool strides : {false, true}) {
        Tensor a = strides ? strided(x, {2, 3}, {-20, 1}) : dense(x, {2, 3}), b = dense(y, {2});
        a.byte_offset = 160, b.byte_offset = 8;
        const auto data = data_of({a, b});
        const Planned planned(kernel, {a, b}, &factor);
        REQUIRE(planned.status == TESS_OK);
        std::memset(y, 0, sizeof y);
        REQUIRE(planned.run(data, nullptr, &context) == TESS_OK);
        CHECK((y[0] == 0 && y[1] == 0 && y[2] == 40 + 41 + 42 + 1 && y[3] == (strides ? 20 + 21 + 22 : 43 + 44 + 45) + 1));
        const TessContext own = telling(&context);
        std::memset(y, 0, sizeof y);
        CHECK(tess_call(&kernel, pointers({a, b}).data(), &factor, &own) == TESS_OK);
        CHECK((y[1] == 0 && y[2] == 40 + 41 + 42 + 1));
    }
    Tensor odd = dense(x, {2, 3});
    odd.byte_offset = 2;
    const Planned planned(kernel, {odd, dense(y, {2})}, &factor);
    REQUIRE(planned.status == TESS_OK);
    CHECK(words(planned.run({x, y}, nullptr, &context)) == "argument 0: data must be aligned to its element size in bytes, 4, not 2");
}

TEST_CASE("a run checks what a plan cannot know") {
    float x[12], y[8];
    const int64_t factor = 1;
    Workspace workspace;
    const TessContext context = with(workspace);
    const Planned planned(kernel, {dense(x, {4, 3}), dense(y, {4})}, &factor);
    REQUIRE(planned.status == TESS_OK);
    CHECK(words(planned.run({x, nullptr}, nullptr, &context)) == "argument 1: data is null, but the tensor has elements");
    CHECK(words(planned.run({reinterpret_cast<char *>(x) + 1, y}, nullptr, &context)).find("aligned") != std::string::npos);
    CHECK(words(planned.run({x, x + 11}, nullptr, &context), {"x", "y"}) ==
          "argument 1 ('y'): memory is shared with argument 0 ('x'); an output needs an address range of its own");
    CHECK(tess_status_code(planned.run({x, workspace.bytes + 48}, nullptr, &context)) == TESS_WORKSPACE_OVERLAP);
    CHECK(tess_status_code(planned.run({x, y})) == TESS_WORKSPACE_MISSING);
    TessContext small = context;
    small.workspace_bytes = 63;
    CHECK(tess_status_code(planned.run({x, y}, nullptr, &small)) == TESS_WORKSPACE_SMALL);
    CHECK(tess_status_code(tess_plan_run(planned.plan(), nullptr, nullptr, &context)) == TESS_NULL_ARGUMENT);
    const Planned later(kernel, {dense(x, {4, 3}), dense(y, {4})}, nullptr);
    REQUIRE(later.status == TESS_OK);
    CHECK(words(later.run({x, y}, nullptr, &context)) == "the kernel has parameters, and none are given");
    CHECK(later.run({x, y}, &factor, &context) == TESS_OK);
    TessContext newer = context;
    newer.flags = 2;
    CHECK(tess_status_code(planned.run({x, y}, nullptr, &newer)) == TESS_CONTEXT_NEWER);
}

TEST_CASE("what is no plan is refused") {
    float x[12], y[4];
    const int64_t factor = 1;
    Planned planned(kernel, {dense(x, {4, 3}), dense(y, {4})}, &factor);
    std::vector<uint64_t> moved = planned.memory;
    void *data[] = {x, y};
    uint64_t bytes = 1;
    CHECK(tess_status_code(tess_plan_run(reinterpret_cast<TessPlan *>(moved.data()), data, nullptr, nullptr)) == TESS_PLAN_INVALID);
    CHECK(tess_status_code(tess_plan_run(nullptr, data, nullptr, nullptr)) == TESS_PLAN_INVALID);
    CHECK(tess_status_code(tess_plan_workspace(reinterpret_cast<TessPlan *>(moved.data()), &bytes)) == TESS_PLAN_INVALID);
    CHECK(bytes == 0);
    // A plan that could not be made leaves none that was there before.
    const std::vector<Tensor> given = {dense(x, {4, 3}), dense(y, {4})};
    CHECK(tess_status_code(tess_plan_make(&kernel, pointers(given).data(), &factor, nullptr, planned.memory.data(),
                                          planned.memory.size() * sizeof(uint64_t) - 8)) == TESS_PLAN_SMALL);
    CHECK(tess_status_code(planned.run({x, y})) == TESS_PLAN_INVALID);
    const Planned wrong(kernel, {dense(x, {4, 3}), dense(y, {3})}, &factor);
    CHECK(words(wrong.status) == "argument 1, dimension 0: extent must equal that of argument 0, dimension 0, 4, not 3");
    CHECK(tess_status_code(wrong.run({x, y})) == TESS_PLAN_INVALID);

    const std::vector<Tensor> args = {dense(x, {4, 3}), dense(y, {4})};
    const TessContext context = telling();
    auto make = [&](void *memory, uint64_t n, const TessKernel *of = &kernel) {
        return tess_plan_make(of, pointers(args).data(), &factor, &context, memory, n);
    };
    CHECK(words(make(moved.data(), 8 * moved.size() - 1)) == "too few bytes for the plan; ask tess_plan_bytes; " +
                                                                 std::to_string(8 * moved.size()) + " are enough, not " +
                                                                 std::to_string(8 * moved.size() - 1));
    CHECK(tess_status_code(make(reinterpret_cast<char *>(moved.data()) + 4, 8 * moved.size())) == TESS_PLAN_MISALIGNED);
    CHECK(tess_status_code(make(nullptr, 8 * moved.size())) == TESS_NULL_ARGUMENT);
    CHECK(tess_status_code(make(moved.data(), 8 * moved.size(), nullptr)) == TESS_NULL_ARGUMENT);
    const TessKernel empty = tess_kernel();
    CHECK(tess_status_code(make(moved.data(), 8 * moved.size(), &empty)) == TESS_KERNEL);
    CHECK(tess_status_code(tess_plan_bytes(&kernel, nullptr)) == TESS_NULL_ARGUMENT);
}

TEST_CASE("threads run one plan at once") {
    const int64_t factor = 1;
    const Planned planned(kernel, {dense(nullptr, {4, 3}), dense(nullptr, {4})}, &factor);
    REQUIRE(planned.status == TESS_OK);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            float x[12], y[4];
            Workspace workspace;
            const TessContext context = with(workspace);
            for (int64_t repeat = 0; repeat < 500; ++repeat) {
                for (float &v : x) v = float(t);
                void *data[] = {x, y};
                wrong += tess_plan_run(planned.plan(), data, &repeat, &context) != TESS_OK;
                for (float v : y) wrong += v != float(3 * t * repeat + 1);
            }
        });
    for (std::thread &t : threads) t.join();
    CHECK(wrong == 0);
}

TEST_CASE("a plan runs on at most as many workers as it was made for") {
    static int32_t workers;
    auto look = [](void *call, int64_t *) -> int32_t {
        workers = static_cast<TessCall *>(call)->workers;
        return 0;
    };
    const std::vector<int64_t> none = toy_spec({}, {});
    TessPool *pool = tess_pool_create(4);
    TessContext made = tess_context(), run = tess_context();
    made.pool = pool, made.threads = 3;
    const TessKernel looking = kernel_of(none, nullptr, look);
    const Planned planned(looking, {}, nullptr, &made);
    for (int32_t threads : {0, 1, 2, 3, 4}) {
        run.pool = pool, run.threads = threads;
        REQUIRE(planned.run({}, nullptr, &run) == TESS_OK);
        CHECK(workers == std::max(1, std::min(threads, 3)));
    }
    run.pool = nullptr;
    REQUIRE(planned.run({}, nullptr, &run) == TESS_OK);
    CHECK(workers == 1);
    tess_pool_destroy(pool);
}

TEST_CASE("plan chooses the body that runs") {
    static int ran;
    static const std::vector<int64_t> two = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}}});
    static TessBody first = [](void *, int64_t *) -> int32_t { return ran = 1, 0; };
    auto last = [](void *, int64_t *) -> int32_t { return ran = 2, 0; };
    auto choose = [](int64_t *frame) -> int32_t {
        if (frame[0] <= 16) frame[tess_frame_body(two.data())] = int64_t(reinterpret_cast<uintptr_t>(first));
        return 0;
    };
    float x[32];
    const TessKernel both = kernel_of(two, choose, last);
    for (int64_t n : {16, 17}) {
        const Planned planned(both, {dense(x, {n})});
        for (int repeat = 0; repeat < 2; ++repeat) {
            ran = 0;
            CHECK(planned.run({x}) == TESS_OK);
            CHECK(ran == (n <= 16 ? 1 : 2));
        }
        ran = 0;
        CHECK(tess_call(&both, pointers({dense(x, {n})}).data(), nullptr, nullptr) == TESS_OK);
        CHECK(ran == (n <= 16 ? 1 : 2));
    }
}

TEST_CASE("plan says which extent it refuses") {
    static const std::vector<int64_t> one = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}}});
    auto refuse = [](int64_t *frame) -> int32_t {
        frame[tess_frame_dimension(one.data())] = 0;
        frame[tess_frame_expected(one.data())] = 151936;
        return tess_abi2_status(TESS_EXTENT_FIXED, 0);
    };
    float x[3];
    CHECK(words(check(one, {dense(x, {3})}, nullptr, refuse)) == "argument 0, dimension 0: extent must be 151936, not 3");
}

TEST_CASE("any number of tensors") {
    static int calls;
    auto count = [](void *, int64_t *) -> int32_t { return ++calls, 0; };
    alignas(64) static float memory[2000];
    for (size_t n : {1u, 16u, 40u, 90u, 300u, 1900u}) {
        const auto many = many_tensors(n);
        const TessKernel counting = kernel_of(many, nullptr, count);
        std::vector<Tensor> args;
        for (size_t i = 0; i < n; ++i) args.push_back(dense(memory + i, {}));
        calls = 0;
        const TessContext context = telling();
        const int32_t status = tess_call(&counting, pointers(args).data(), nullptr, &context);
        if (n <= 300) {
            CHECK(status == TESS_OK);
        } else {
            CHECK(words(status) == "the kernel has too many arguments for a call; make a plan and run it");
        }
        const Planned planned(counting, args);
        REQUIRE(planned.status == TESS_OK);
        CHECK(planned.run(data_of(args)) == TESS_OK);
        CHECK(planned.run(data_of(args)) == TESS_OK);
        CHECK(calls == (n <= 300 ? 3 : 2));
        if (n < 2) continue;
        // The output meets each input in turn.
        for (size_t meets : {size_t(0), n / 2, n - 2}) {
            std::vector<void *> data = data_of(args);
            data.back() = data[meets];
            const int32_t refused = planned.run(data);
            CHECK(tess_status_code(refused) == TESS_OVERLAP);
            CHECK(tess_status_argument(refused) == int32_t(n) - 1);
            CHECK(last_fault.other_argument == int32_t(meets));
        }
    }
}

TEST_CASE("a plan with a large frame runs once at a time, and is whole after a run that fails") {
    static const Planned *inside;
    static std::vector<void *> data;
    static int32_t nested;
    auto again = [](void *, int64_t *) -> int32_t { return nested = inside->run(data), 0; };
    alignas(64) static float memory[300];
    std::vector<Tensor> args;
    for (float &v : memory) args.push_back(dense(&v, {}));
    const auto many = many_tensors(args.size());
    const Planned planned(kernel_of(many, nullptr, again), args);
    inside = &planned, data = data_of(args);
    std::vector<void *> wrong = data;
    wrong[3] = nullptr;
    CHECK(tess_status_code(planned.run(wrong)) == TESS_NULL_DATA);
    CHECK(planned.run(data) == TESS_OK);
    CHECK(words(nested) == "the plan runs already, and its frame is too large for two runs at once; make one for each thread");
}

TEST_CASE("a packed operand is looked at in each run") {
    constexpr uint64_t hash = 77;
    const std::vector<ToyLayout> layouts = {{0, hash, {0, 0}}};
    const auto packing = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}}, {TESS_ROLE_OUTPUT, {0}, TESS_F32, TESS_FLAG_PACKED}}, 0, 0, layouts);
    const auto using_it = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}, TESS_F32, TESS_FLAG_PACKED}}, 0, 0, layouts);
    alignas(64) static unsigned char a[128 + 12], b[192], c[192];
    float x[4] = {};
    auto pack = [&](void *to, int64_t n) {
        const Planned planned(kernel_of(packing, nullptr, succeed), {dense(x, {n}), packed_operand(to, 128 + 4 * uint64_t(n))});
        REQUIRE(planned.status == TESS_OK);
        std::memset(to, 1, 128);
        REQUIRE(planned.run({x, to}) == TESS_OK);
    };
    pack(a, 3), pack(b, 3), pack(c, 4);
    const Planned planned(kernel_of(using_it, nullptr, succeed), {packed_operand(a, sizeof a)});
    REQUIRE(planned.status == TESS_OK);
    CHECK(planned.run({a}) == TESS_OK);
    CHECK(planned.run({b}) == TESS_OK);
    CHECK(tess_status_code(planned.run({c})) == TESS_PACKED_EXTENT);
    CHECK(tess_status_code(planned.run({b + 32})) == TESS_PACKED_MISALIGNED);
    CHECK(tess_status_code(planned.run({nullptr})) == TESS_NULL_DATA);
    b[16] ^= 1;
    CHECK(tess_status_code(planned.run({b})) == TESS_PACKED_LAYOUT);
    b[0] = 0;
    CHECK(tess_status_code(planned.run({b})) == TESS_PACKED_MAGIC);
}

TEST_CASE("a completion is called once for a call that returns 0, before it returns") {
    struct Seen {
        int calls = 0;
        int32_t status = -1;
    } seen;
    TessContext context = telling();
    context.done = [](void *state, int32_t status) {
        ++static_cast<Seen *>(state)->calls;
        static_cast<Seen *>(state)->status = status;
    };
    context.done_state = &seen;
    const auto one = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}}});
    float x[3];
    CHECK(check(one, {dense(x, {3})}, &context) == TESS_OK);
    CHECK((seen.calls == 1 && seen.status == 0));
    CHECK(check(one, {dense(nullptr, {3})}, &context) != TESS_OK);
    CHECK(seen.calls == 1);
    const Planned planned(kernel_of(one, nullptr, succeed), {dense(x, {3})}, nullptr, &context);
    CHECK(seen.calls == 1);
    CHECK(planned.run({x}, nullptr, &context) == TESS_OK);
    CHECK(seen.calls == 2);
    const Planned failing(kernel_of(one, nullptr, [](void *, int64_t *) -> int32_t { return -7; }), {dense(x, {3})});
    CHECK(words(failing.run({x}, nullptr, &context)) == "the kernel's code or the pool failed with code -7");
    CHECK(seen.calls == 2);
}

TEST_CASE("a fault is written when a call fails, and only then") {
    const auto one = toy_spec({{-1, 0, -1, 16}}, {{TESS_ROLE_INPUT, {0}}});
    float x[40];
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    context.fault = &fault;
    CHECK(check(one, {dense(x, {32})}, &context) == TESS_OK);
    CHECK(fault.kind == 0);
    CHECK(check(one, {dense(x, {40})}, &context) == tess_abi2_status(TESS_EXTENT_MULTIPLE, 0));
    CHECK((fault.size == sizeof fault && fault.kind == TESS_EXTENT_MULTIPLE && fault.argument == 0 && fault.dimension == 0));
    CHECK((fault.expected == 16 && fault.got == 40 && fault.other_argument == -1 && fault.other_dimension == -1));
    struct {
        TessFault known;
        uint64_t more;
    } newer = {tess_fault(), 5};
    newer.known.size = sizeof newer;
    context.fault = &newer.known;
    CHECK(check(one, {dense(x, {40})}, &context) != TESS_OK);
    CHECK((newer.known.got == 40 && newer.known.size == sizeof newer && newer.more == 5));
}

TEST_CASE("a parameter outside of its range gives a status that names it, in a call and in a run") {
    const auto bits = [](float value) { return int64_t(std::bit_cast<int32_t>(value)); };
    const auto wide = [](double value) { return std::bit_cast<int64_t>(value); };
    const int64_t both = TESS_RANGE_DECLARED | TESS_RANGE_LEAST | TESS_RANGE_MOST;
    const std::vector<int64_t> of =
        ranged_spec({{TESS_F32, both | TESS_RANGE_BELOW, bits(-0.5F), bits(1)},
                     {TESS_F64, TESS_RANGE_DECLARED | TESS_RANGE_LEAST | TESS_RANGE_ABOVE, wide(-0.0), wide(DBL_MAX)},
                     {TESS_I64, both, -3, INT64_MAX - 1},
                     {TESS_I32, TESS_RANGE_DECLARED, INT32_MIN, INT32_MAX},
                     {TESS_F32, TESS_RANGE_DECLARED, bits(-FLT_MAX), bits(FLT_MAX)},
                     {TESS_F32, 0, 0, 0}});
    const TessKernel ranged = kernel_of(of, nullptr, succeed);
    const std::vector<int64_t> good = {bits(0), wide(1), 0, 0, bits(0), bits(NAN)};
    const Planned planned(ranged, {}, good.data());
    REQUIRE(planned.status == TESS_OK);
    const TessContext context = telling();
    // `words_of` "" where the value is in the range.
    const auto gives = [&](size_t parameter, int64_t value, const std::string &words_of) {
        std::vector<int64_t> all = good;
        all[parameter] = value;
        const std::string said = words_of.empty() ? "" : "argument " + std::to_string(parameter) + ": parameter must be " + words_of;
        for (const int32_t status : {tess_call(&ranged, nullptr, all.data(), &context), planned.run({}, all.data())})
            CHECK((status == TESS_OK ? "" : words(status)) == said);
    };
    for (float in : {-0.5F, -0.0F, 0.0F, FLT_TRUE_MIN, std::nextafter(1.0F, 0.0F)}) gives(0, bits(in), "");
    gives(0, bits(1), "below 1, not 1");
    gives(0, bits(INFINITY), "below 1, not inf");
    gives(0, bits(std::nextafter(-0.5F, -1.0F)), "at least -0.5, not -0.50000006");
    gives(0, bits(NAN), "at least -0.5, not nan");
    gives(0, bits(-NAN), "at least -0.5, not nan");
    gives(1, wide(DBL_TRUE_MIN), ""), gives(1, wide(DBL_MAX), "");
    gives(1, wide(0), "above -0, not 0"), gives(1, wide(-0.0), "above -0, not -0");
    gives(1, wide(INFINITY), "finite, not inf"), gives(1, wide(NAN), "above -0, not nan");
    gives(2, -3, ""), gives(2, INT64_MAX - 1, "");
    gives(2, -4, "at least -3, not -4"), gives(2, INT64_MIN, "at least -3, not -9223372036854775808");
    gives(2, INT64_MAX, "at most 9223372036854775806, not 9223372036854775807");
    gives(3, INT32_MIN, ""), gives(3, INT32_MAX, "");
    gives(4, bits(FLT_MAX), ""), gives(4, bits(NAN), "finite, not nan"), gives(4, bits(-INFINITY), "finite, not -inf");
    for (float any : {-INFINITY, 0.0F, NAN}) gives(5, bits(any), "");
    TessParameterInfo info;
    info.size = sizeof info;
    REQUIRE(tess_kernel_parameter(&ranged, 2, &info) == TESS_OK);
    CHECK((info.range == both && info.least == -3 && info.most == INT64_MAX - 1));
}

}  // namespace tessera::test_plan
