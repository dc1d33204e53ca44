// tessera-calls: what a call costs beside a function of C that is called by its address and does nothing. One thread.
#include <fmt/core.h>

#include <cstdlib>
#include <memory>

#include "bench/measure/paired_timing.h"
#include "bench/peers/arguments.h"

#include "fft_256.h"
#include "matmul.h"

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
