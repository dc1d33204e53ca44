// tessera-peers [products|attention|bandwidth|fft|calls|threads|large]...: every row prints this library's speed, the peer's, and the
// ratio of the two with its 95% interval. One thread unless the row says otherwise.
#include <cblas.h>
#include <fftw3.h>
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <random>
#include <set>

#include "bench/measure/bandwidth.h"
#include "bench/measure/paired_timing.h"
#include "bench/measure/peak.h"
#include "bench/measure/stable_timing.h"

#include "attention_128.h"
#include "attention_64.h"
#include "attention_80.h"
#include "attention_causal_64.h"
#include "elements.h"
#include "elements_large.h"
#include "fft_1000.h"
#include "fft_1024.h"
#include "fft_1500.h"
#include "fft_16384.h"
#include "fft_256.h"
#include "fft_4096.h"
#include "fft_65536.h"
#include "layernorm.h"
#include "matmul.h"
#include "matmul_512x3072x768.h"
#include "pages.h"
#include "pages_large.h"
#include "rows.h"
#include "rows_large.h"
#include "softmax.h"

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

// Of this thread, in the widest vectors there are.
static double peak_flops() {
    auto run = [](long rounds) {
        for (int bytes : {64, 32, 16})
            if (double flops = peak_run(PEAK_F32, bytes, rounds)) return flops;
        return 0.0;
    };
    const long rounds = repetitions([&](long n) { run(n); }, 0.005);
    return run(rounds) / steady(1, [&](int) { run(rounds); }).best_s;
}

struct Product {
    int64_t m, n, k;
};

static void products(double peak) {
    fmt::print("{:<22}{:>10}{:>10}{:>8}{:>8}  {}\n", "sgemm MxNxK", "GFLOP/s", "OpenBLAS", "% peak", "ratio", "95% interval");
    for (auto [m, n, k] : {Product{1344, 1536, 1024},
                           {1343, 1535, 1023},
                           {512, 3072, 768},
                           {512, 768, 3072},
                           {128, 768, 768},
                           {197, 192, 192},
                           {64, 64, 64}}) {
        Floats a = random_floats(m * k), b = random_floats(k * n), c(m * n), d(m * n);
        TessTensor x = desc(a, {m, k}), w = desc(b, {k, n}), y = desc(c, {m, n});
        Call call(1, nullptr, [&](const TessContext *context, uint64_t *bytes) { return matmul_workspace(&x, &w, &y, context, bytes); });
        std::vector<std::function<void()>> contestants = {
            [&] { check(matmul(&x, &w, &y, &call.context)); },
            [&] {
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
                            a.data(), static_cast<int>(k), b.data(), static_cast<int>(n), 0, d.data(), static_cast<int>(n));
            }};
        bool fixed = m == 512 && n == 3072;
        Call fixed_call(1, nullptr, [&](const TessContext *context, uint64_t *bytes) {
            return fixed ? matmul_512x3072x768_workspace(&x, &w, &y, context, bytes) : (*bytes = 0, 0);
        });
        if (fixed) contestants.push_back([&] { check(matmul_512x3072x768(&x, &w, &y, &fixed_call.context)); });
        Contest r = contest(contestants, 30, 2);
        double flops = 2.0 * m * n * k;
        auto row = [&](const std::string &name, double seconds, double ratio, double lower, double upper) {
            fmt::print("{:<22}{:>10.1f}{:>10.1f}{:>8.1f}{:>8.3f}  {:.3f}..{:.3f}\n", name, flops / seconds * 1e-9,
                       flops / r.seconds[1] * 1e-9, 100 * flops / seconds / peak, ratio, lower, upper);
        };
        row(fmt::format("{}x{}x{}", m, n, k), r.seconds[0], r.ratio[1], r.lower[1], r.upper[1]);
        if (fixed) {
            double to_fixed = r.ratio[1] / r.ratio[2];
            row("  the same, fixed", r.seconds[2], to_fixed, r.lower[1] / r.ratio[2], r.upper[1] / r.ratio[2]);
        }
    }
}

using AttentionKernel = int32_t (*)(const TessTensor *, const TessTensor *, const TessTensor *, const TessTensor *, const TessContext *);
using AttentionQuery = int32_t (*)(const TessTensor *, const TessTensor *, const TessTensor *, const TessTensor *, const TessContext *,
                                   uint64_t *);

static double attention_seconds(AttentionKernel kernel, AttentionQuery query, int64_t h, int64_t s, int64_t d, int threads,
                                TessPool *pool) {
    Floats q = random_floats(h * s * d), k = random_floats(h * s * d), v = random_floats(h * s * d), o(h * s * d);
    TessTensor dq = desc(q, {h, s, d}), dk = desc(k, {h, s, d}), dv = desc(v, {h, s, d}), out = desc(o, {h, s, d});
    Call call(threads, pool, [&](const TessContext *context, uint64_t *bytes) { return query(&dq, &dk, &dv, &out, context, bytes); });
    return contest({[&] { check(kernel(&dq, &dk, &dv, &out, &call.context)); }}, 10, 1).seconds[0];
}

static void attention(double peak) {
    fmt::print("\n{:<26}{:>10}{:>8}\n", "attention, 12 heads", "GFLOP/s", "% peak");
    struct Width {
        int64_t d;
        AttentionKernel kernel;
        AttentionQuery query;
    };
    for (Width w : {Width{64, attention_64, attention_64_workspace},
                    {80, attention_80, attention_80_workspace},
                    {128, attention_128, attention_128_workspace}})
        for (int64_t s : {17, 197, 1023, 1024}) {
            double seconds = attention_seconds(w.kernel, w.query, 12, s, w.d, 1, nullptr);
            double flops = 4.0 * 12 * s * s * w.d;
            fmt::print("S={:<6} D={:<16}{:>10.1f}{:>8.1f}\n", s, w.d, flops / seconds * 1e-9, 100 * flops / seconds / peak);
        }
    for (int64_t s : {1023, 1024}) {
        double full = attention_seconds(attention_64, attention_64_workspace, 12, s, 64, 1, nullptr);
        double causal = attention_seconds(attention_causal_64, attention_causal_64_workspace, 12, s, 64, 1, nullptr);
        fmt::print("S={:<6} D=64: causal is {:.2f} times faster than full\n", s, full / causal);
    }
}

// The peers of a memory-bound kernel copy as many bytes: memcpy, whose stores go past the cache, and a loop of vector loads and stores,
// which like the kernel reads each line of its result before it writes it.
static void bandwidth() {
    fmt::print("\n{:<22}{:>7}{:>9}{:>7}  {:<14}{:>7}{:>7}  {}\n", "bandwidth, GB/s", "", "memcpy", "ratio", "95% interval", "loop", "ratio",
               "95% interval");
    auto row = [](const std::string &name, double elements, const std::function<void()> &kernel, Floats &to, const Floats &from) {
        const double bytes = 8 * elements;
        const int vector_bytes = peak_run(PEAK_F32, 64, 1) > 0 ? 64 : peak_run(PEAK_F32, 32, 1) > 0 ? 32 : 16;
        Contest c = contest({kernel, [&] { std::memcpy(to.data(), from.data(), 4 * from.size()); },
                             [&] { bandwidth_copy(to.data(), from.data(), 4 * from.size(), vector_bytes, 1); }},
                            20, 3);
        fmt::print("{:<22}{:>7.1f}", name, bytes / c.seconds[0] * 1e-9);
        for (size_t peer : {1, 2})
            fmt::print("{:>{}.1f}{:>7.3f}  {:<14}", bytes / c.seconds[peer] * 1e-9, peer == 1 ? 9 : 7, c.ratio[peer],
                       fmt::format("{:.3f}..{:.3f}", c.lower[peer], c.upper[peer]));
        fmt::print("\n");
    };
    for (int64_t m : {1024, 16384}) {
        int64_t n = 4096;
        Floats x = random_floats(m * n), y(m * n), z(m * n);
        TessTensor dx = desc(x, {m, n}), dy = desc(y, {m, n});
        Call call(1, nullptr, [&](const TessContext *c, uint64_t *b) { return softmax_workspace(&dx, &dy, c, b); });
        row(
            fmt::format("softmax {}x{}", m, n), static_cast<double>(m * n), [&] { check(softmax(&dx, &dy, &call.context)); }, z, x);
    }
    for (int64_t m : {4096, 65536}) {
        int64_t n = 768;
        Floats x = random_floats(m * n), g = random_floats(n), b = random_floats(n), y(m * n), z(m * n);
        const layernorm_parameters parameters = {1e-5f};
        TessTensor dx = desc(x, {m, n}), dg = desc(g, {n}), db = desc(b, {n}), dy = desc(y, {m, n});
        Call call(1, nullptr, [&](const TessContext *c, uint64_t *bytes) { return layernorm_workspace(&dx, &dg, &db, &dy, c, bytes); });
        row(
            fmt::format("layernorm {}x{}", m, n), static_cast<double>(m * n),
            [&] { check(layernorm(&dx, &dg, &db, &dy, &parameters, &call.context)); }, z, x);
    }
}

// FFTW with a plan that it has measured, which is no part of the time. Operations are counted as 5 n log2(n), as FFTW's authors do.
static void fft() {
    using Kernel = int32_t (*)(const TessTensor *, const TessTensor *, const TessContext *);
    using Query = int32_t (*)(const TessTensor *, const TessTensor *, const TessContext *, uint64_t *);
    struct Points {
        int64_t n;
        Kernel kernel;
        Query query;
    };
    fmt::print("\n{:<22}{:>10}{:>10}{:>10}{:>8}  {}\n", "fft points x batch", "us", "GFLOP/s", "FFTW", "ratio", "95% interval");
    for (const Points &p : {Points{256, fft_256, fft_256_workspace},
                            {1000, fft_1000, fft_1000_workspace},
                            {1024, fft_1024, fft_1024_workspace},
                            {1500, fft_1500, fft_1500_workspace},
                            {4096, fft_4096, fft_4096_workspace},
                            {16384, fft_16384, fft_16384_workspace},
                            {65536, fft_65536, fft_65536_workspace}})
        for (int64_t batch : {1, 8}) {
            const int n = static_cast<int>(p.n);
            auto aligned = [&] {
                return std::unique_ptr<float, decltype(&fftwf_free)>(fftwf_alloc_real(static_cast<size_t>(2 * p.n * batch)), fftwf_free);
            };
            const auto a = aligned(), b = aligned(), c = aligned();
            auto *in = reinterpret_cast<fftwf_complex *>(a.get()), *out = reinterpret_cast<fftwf_complex *>(c.get());
            fftwf_plan plan =
                fftwf_plan_many_dft(1, &n, static_cast<int>(batch), in, nullptr, 1, n, out, nullptr, 1, n, FFTW_FORWARD, FFTW_MEASURE);
            const Floats values = random_floats(static_cast<size_t>(2 * p.n * batch));
            std::copy(values.begin(), values.end(), a.get());
            const int64_t shape[] = {batch, 2 * p.n};
            const TessTensor x = tess_dense(a.get(), TESS_F32, 2, shape), y = tess_dense(b.get(), TESS_F32, 2, shape);
            Call call(1, nullptr, [&](const TessContext *context, uint64_t *bytes) { return p.query(&x, &y, context, bytes); });
            const int64_t times = std::max<int64_t>(1, 100000 / (p.n * batch));
            const Contest r = contest({[&] {
                                           for (int64_t i = 0; i < times; i++) check(p.kernel(&x, &y, &call.context));
                                       },
                                       [&] {
                                           for (int64_t i = 0; i < times; i++) fftwf_execute(plan);
                                       }},
                                      30, 1);
            fftwf_destroy_plan(plan);
            const double flops = 5.0 * static_cast<double>(p.n * batch) * std::log2(static_cast<double>(p.n)) * static_cast<double>(times);
            fmt::print("{:<22}{:>10.3f}{:>10.1f}{:>10.1f}{:>8.3f}  {:.3f}..{:.3f}\n", fmt::format("{} x {}", p.n, batch),
                       r.seconds[0] / static_cast<double>(times) * 1e6, flops / r.seconds[0] * 1e-9, flops / r.seconds[1] * 1e-9,
                       r.ratio[1], r.lower[1], r.upper[1]);
        }
}

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

// What a call costs beside a function of C that is called by its address and does nothing: a kernel's arguments, with such a body.
static void calls() {
    constexpr int64_t times = 100000;
    auto row = [&](const std::string &name, const Contest &r, size_t which) {
        fmt::print("{:<44}{:>8.1f} ns\n", name, r.seconds[which] / static_cast<double>(times) * 1e9);
    };
    fmt::print("\ncalls\n");
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

static void threads() {
    std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(tess_pool_create(2), tess_pool_destroy);
    fmt::print("\ntwo threads, times one\n");
    for (auto [m, n, k] : {Product{1344, 1536, 1024}, {512, 3072, 768}, {512, 768, 3072}}) {
        Floats a = random_floats(m * k), b = random_floats(k * n), c(m * n);
        TessTensor x = desc(a, {m, k}), w = desc(b, {k, n}), y = desc(c, {m, n});
        auto query = [&](const TessContext *context, uint64_t *bytes) { return matmul_workspace(&x, &w, &y, context, bytes); };
        Call one(1, nullptr, query), two(2, pool.get(), query);
        Contest r = contest({[&] { check(matmul(&x, &w, &y, &two.context)); }, [&] { check(matmul(&x, &w, &y, &one.context)); }}, 20, 2);
        fmt::print("sgemm {}x{}x{}: {:.2f} ({:.2f}..{:.2f})\n", m, n, k, r.ratio[1], r.lower[1], r.upper[1]);
    }
    double one = attention_seconds(attention_64, attention_64_workspace, 12, 1024, 64, 1, nullptr);
    double two = attention_seconds(attention_64, attention_64_workspace, 12, 1024, 64, 2, pool.get());
    fmt::print("attention S=1024 D=64: {:.2f}\n", one / two);
}

// Kernels whose `pool` is declared large, beside the same where it is not. All that they touch is in the second cache.
static void large() {
    fmt::print("\n{:<44}{:>10}{:>12}{:>8}  {}\n", "a large tensor", "large", "not large", "ratio", "95% interval");
    auto row = [](const std::string &name, const std::function<int32_t()> &with, const std::function<int32_t()> &without) {
        const Contest r = contest({[&] { check(with()); }, [&] { check(without()); }}, 200, 2);
        fmt::print("{:<44}{:>7.2f} us{:>9.2f} us{:>8.3f}  {:.3f}..{:.3f}\n", name, r.seconds[0] * 1e6, r.seconds[1] * 1e6, r.ratio[1],
                   r.lower[1], r.upper[1]);
    };
    auto numbers = [](int64_t count, int32_t below) {
        static std::mt19937 engine(1);
        std::vector<int32_t> all(static_cast<size_t>(count));
        for (int32_t &n : all) n = static_cast<int32_t>(engine() % static_cast<uint32_t>(below));
        return all;
    };
    auto ids = [](std::vector<int32_t> &data, int64_t *extents, int32_t rank) { return tess_dense(data.data(), TESS_I32, rank, extents); };
    Floats memory = random_floats(65536), to(65536);
    for (int64_t d : {16, 256}) {
        const int64_t p = 65536 / (16 * d);
        std::vector<int32_t> table = numbers(p, static_cast<int32_t>(p));
        int64_t extents[] = {1, p};
        TessTensor pool = desc(memory, {p, 16, d}), t = ids(table, extents, 2), y = desc(to, {1, p, 16, d});
        row(
            fmt::format("gather of {} pages of 16x{}", p, d), [&] { return pages_large(&pool, &t, &y, nullptr); },
            [&] { return pages(&pool, &t, &y, nullptr); });
    }
    for (int64_t d : {16, 256}) {
        const int64_t p = 65536 / d;
        TessTensor pool = desc(memory, {p, d}), y = desc(to, {p, d});
        row(
            fmt::format("copy of {} rows of {}", p, d), [&] { return rows_large(&pool, &y, nullptr); },
            [&] { return rows(&pool, &y, nullptr); });
    }
    std::vector<int32_t> at = numbers(65536, 256), column = numbers(65536, 256);
    int64_t extents[] = {65536};
    TessTensor pool = desc(memory, {256, 256}), r = ids(at, extents, 1), c = ids(column, extents, 1), y = desc(to, {65536});
    row(
        "gather of 65536 single elements", [&] { return elements_large(&pool, &r, &c, &y, nullptr); },
        [&] { return elements(&pool, &r, &c, &y, nullptr); });
}

int main(int argc, char **argv) {
    std::set<std::string> wanted(argv + 1, argv + argc);
    auto want = [&](const char *part) { return wanted.empty() || wanted.count(part); };
    openblas_set_num_threads(1);
    double peak = peak_flops();
    fmt::print("FMA peak of one core: {:.1f} GFLOP/s\n\n", peak * 1e-9);
    if (want("products")) products(peak);
    if (want("attention")) attention(peak);
    if (want("bandwidth")) bandwidth();
    if (want("fft")) fft();
    if (want("calls")) calls();
    if (want("threads")) threads();
    if (want("large")) large();
}
