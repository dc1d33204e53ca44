// tessera-calls: what a call costs beside a function of C that is called by its address and does nothing. One thread.
#include <fmt/core.h>

#include <cstdlib>
#include <list>
#include <memory>
#include <new>
#include <random>

#include "bench/measure/paired_timing.h"

#include "fft_256.h"
#include "matmul.h"

// Memory as frameworks hand it out: from a cache line on. malloc's begins 16 bytes into one, and every wide load then touches two.
template <typename T>
struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <typename U>
    CacheAligned(const CacheAligned<U> &) {}
    T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), line)); }
    void deallocate(T *p, size_t) { ::operator delete(p, line); }
    bool operator==(const CacheAligned &) const { return true; }

    static constexpr std::align_val_t line{64};
};
using Floats = std::vector<float, CacheAligned<float>>;

static Floats random_floats(size_t n) {
    static std::mt19937 engine(1);
    std::uniform_real_distribution<float> values(-1, 1);
    Floats f(n);
    for (float &v : f) v = values(engine);
    return f;
}

// Its extents live as long as the program.
static TessTensor desc(Floats &data, const std::vector<int64_t> &extents) {
    static std::list<std::vector<int64_t>> shapes;
    return tess_dense(data.data(), TESS_F32, static_cast<int32_t>(extents.size()), shapes.emplace_back(extents).data());
}

static void check(int32_t status) {
    if (status == TESS_OK) return;
    char message[256];
    tess_status_message(status, nullptr, nullptr, message, sizeof message);
    fmt::print(stderr, "kernel failed: {}\n", message);
    std::exit(1);
}

// A context with the workspace that a query asks for.
struct Call {
    TessContext context = tess_context();
    std::unique_ptr<void, decltype(&std::free)> memory{nullptr, std::free};

    template <typename Query>
    Call(int threads, TessPool *pool, const Query &query) {
        context.threads = threads, context.pool = pool;
        uint64_t bytes = 0;
        check(query(&context, &bytes));
        context.workspace_bytes = (bytes + 63) / 64 * 64;
        memory.reset(std::aligned_alloc(64, context.workspace_bytes + 64));
        context.workspace = memory.get();
    }
};

static int32_t do_nothing(void *, int64_t *) { return 0; }

static int32_t (*volatile nothing)(void *, int64_t *) = do_nothing;

// A plan, and where the data of its tensors is.
struct Planned {
    std::vector<uint64_t> memory;
    std::vector<void *> data;

    Planned(const TessKernel &kernel, const std::vector<const TessTensor *> &tensors, const TessContext &context) {
        uint64_t bytes = 0;
        check(tess_plan_bytes(&kernel, &bytes));
        memory.resize(bytes / sizeof(uint64_t));
        check(tess_plan_make(&kernel, tensors.data(), nullptr, &context, memory.data(), bytes));
        for (const TessTensor *t : tensors) data.push_back(t->data);
    }
    void run(const TessContext &context) const {
        check(tess_plan_run(reinterpret_cast<const TessPlan *>(memory.data()), data.data(), nullptr, &context));
    }
};

// A kernel's arguments with a body that does nothing, and a whole kernel.
int main() {
    constexpr int64_t times = 100000;
    auto row = [&](const std::string &name, const Contest &r, size_t which) {
        fmt::print("{:<44}{:>8.1f} ns\n", name, r.seconds[which] / static_cast<double>(times) * 1e9);
    };
    {
        Floats a = random_floats(64 * 64), b = random_floats(64 * 64), c(64 * 64);
        TessTensor x = desc(a, {64, 64}), w = desc(b, {64, 64}), y = desc(c, {64, 64});
        const std::vector<const TessTensor *> tensors = {&x, &w, &y};
        TessKernel kernel = tess_kernel();
        check(matmul_describe(&kernel));
        kernel.plan = nullptr, kernel.body = do_nothing;
        const TessContext context = tess_context();
        const Planned plan(kernel, tensors, context);
        const Contest r = contest({[&] {
                                       for (int64_t i = 0; i < times; i++) check(nothing(nullptr, nullptr));
                                   },
                                   [&] {
                                       for (int64_t i = 0; i < times; i++) plan.run(context);
                                   },
                                   [&] {
                                       for (int64_t i = 0; i < times; i++) check(tess_call(&kernel, tensors.data(), nullptr, &context));
                                   }},
                                  30, 1);
        row("a function that does nothing", r, 0);
        row("a run of a plan of matmul, of an empty body", r, 1);
        row("a call of matmul, of an empty body", r, 2);
    }
    Floats a = random_floats(512), b(512);
    TessTensor x = desc(a, {1, 512}), y = desc(b, {1, 512});
    TessKernel kernel = tess_kernel();
    check(fft_256_describe(&kernel));
    Call call(1, nullptr, [&](const TessContext *context, uint64_t *bytes) { return fft_256_workspace(&x, &y, context, bytes); });
    const Planned plan(kernel, {&x, &y}, call.context);
    const Contest r = contest({[&] {
                                   for (int64_t i = 0; i < times; i++) plan.run(call.context);
                               },
                               [&] {
                                   for (int64_t i = 0; i < times; i++) check(fft_256(&x, &y, &call.context));
                               }},
                              30, 1);
    row("fft of 256 points, a run of a plan", r, 0);
    row("fft of 256 points, a call", r, 1);
}
