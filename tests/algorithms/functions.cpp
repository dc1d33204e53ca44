// The elementary functions against libm one precision up: a strided sample of every f32 and all neighbourhoods of
// special values here, all 2^32 of them under [.exhaustive], random points in f64, and the special values by name.
#include "algorithms/functions.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>

#include "algorithms/error.h"
#include "tests/algorithms/f32_blocks.h"

using namespace tessera;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr double all = -std::numeric_limits<double>::infinity();

struct Case {
    const char *name;
    Expr (*build)(Expr);
    long double (*reference)(long double);
    double (*reference_f64)(double);
    double ulps;          // largest error, in units in the last place of the exact result, in f32
    double from = all;    // where that holds; below, the absolute error is at most:
    double absolute = 0;
    double ulps_f64 = 2;
};

template <typename T>
T linear(T x) {
    return 2 * std::sqrt(T(2) / std::acos(T(-1))) * x * (1 + T(0.044715L) * x * x);
}
template <typename T>
T sigmoid_of(T x) {
    return 1 / (1 + std::exp(-x));
}

#define BOTH(expression) [](long double x) -> long double { return expression; }, [](double x) -> double { return expression; }

const Case cases[] = {
    {"exp", exp, BOTH(std::exp(x)), 1},
    {"log", log, BOTH(std::log(x)), 1},
    {"erf", erf, BOTH(std::erf(x)), 1.5},
    {"tanh", tanh, BOTH(std::tanh(x)), 1.5},
    {"sigmoid", sigmoid, BOTH(sigmoid_of(x)), 2},
    {"rsqrt", rsqrt, BOTH(1 / std::sqrt(x)), 1.5},
    {"relu", relu, BOTH(x < 0 ? 0 : x), 0},
    {"gelu", gelu, BOTH(x * std::erfc(-x * 0.70710678118654752440L) / 2), 2.5, -5, 2e-8},
    {"gelu_tanh", gelu_tanh, BOTH(x * sigmoid_of(linear(x))), 2.5},
    {"silu", silu, BOTH(x * sigmoid_of(x)), 2.5},
};

struct Worst {
    double ulps = 0, absolute = 0;
    float at = 0, absolute_at = 0;
    uint64_t wrong_nan = 0;

    void merge(const Worst &o) {
        if (o.ulps > ulps) ulps = o.ulps, at = o.at;
        if (o.absolute > absolute) absolute = o.absolute, absolute_at = o.absolute_at;
        wrong_nan += o.wrong_nan;
    }
    void add(const Case &c, float x, float got) {
        double want = c.reference_f64(x);
        if (std::isnan(want) || std::isnan(got)) {
            wrong_nan += std::isnan(want) != std::isnan(got);
            return;
        }
        // Overflow is judged as if the next binade were there.
        double limit = 0x1p128;
        double g = std::fmax(-limit, std::fmin(limit, got)), w = std::fmax(-limit, std::fmin(limit, want));
        double error = std::fabs(g - w);
        if (x < c.from) {
            if (error > absolute) absolute = error, absolute_at = x;
            return;
        }
        int e = static_cast<int>(std::bit_cast<uint64_t>(w) >> 52 & 2047) - 1023;
        error *= std::bit_cast<double>(static_cast<uint64_t>(1023 + 23 - std::max(e, -126)) << 52);
        if (error > ulps) ulps = error, at = x;
    }
};

// Every f32 whose bits are first, first + stride, …
Worst sweep(const Case &c, const std::vector<uint32_t> &first, uint64_t count, uint64_t stride) {
    F32Blocks tape(c.build(input(0, DType::f32)));
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<Worst> found(threads);
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            F32Blocks mine = tape;
            float x[F32Blocks::lanes];
            for (uint32_t start : first)
                for (uint64_t i = t * F32Blocks::lanes; i < count; i += threads * F32Blocks::lanes) {
                    for (int lane = 0; lane < F32Blocks::lanes; lane++)
                        x[lane] = std::bit_cast<float>(static_cast<uint32_t>(start + (i + lane) * stride));
                    const float *y = mine.run(x);
                    for (int lane = 0; lane < F32Blocks::lanes; lane++)
                        if (!std::isinf(x[lane])) found[t].add(c, x[lane], y[lane]);
                }
        });
    for (std::thread &thread : pool) thread.join();
    Worst worst;
    for (const Worst &w : found) worst.merge(w);
    return worst;
}

void check(const Case &c, const Worst &worst) {
    INFO(c.name << ": " << worst.ulps << " ULP at " << worst.at << ", below " << c.from << " absolute " << worst.absolute
                << " at " << worst.absolute_at);
    CHECK(worst.wrong_nan == 0);
    CHECK(worst.ulps <= c.ulps);
    CHECK(worst.absolute <= c.absolute);
}

float at(Expr (*function)(Expr), float x) {
    return static_cast<float>(evaluate(function(input(0, DType::f32)), Scalar::of_real(DType::f32, x)).real);
}
double at64(Expr (*function)(Expr), double x) {
    return evaluate(function(input(0, DType::f64)), Scalar::of_real(DType::f64, x)).real;
}
bool minus_zero(double x) { return x == 0 && std::signbit(x); }
bool plus_zero(double x) { return x == 0 && !std::signbit(x); }

}  // namespace

TEST_CASE("functions: a sample of f32 is within the stated error") {
    for (const Case &c : cases) check(c, sweep(c, {0}, (uint64_t{1} << 32) / 2053, 2053));
}

TEST_CASE("functions: f32 around the special values is within the stated error") {
    std::vector<uint32_t> starts;
    for (float centre : {0.0f, 0x1p-126f, 0x1p-24f, 0.34657359f, 0.625f, 0.70710678f, 0.84f, 1.0f, 1.41421356f, 3.9f, 5.0f,
                         9.0f, 10.5f, 13.0f, 17.3f, 20.0f, 86.6f, 87.3f, 88.7228f, 103.97f, 0x1p127f, inf})
        for (uint32_t sign : {0u, 0x80000000u}) starts.push_back((std::bit_cast<uint32_t>(centre) | sign) - 2048);
    for (const Case &c : cases) check(c, sweep(c, starts, 4096, 1));
}

TEST_CASE("functions: every f32 is within the stated error", "[.exhaustive]") {
    for (const Case &c : cases) {
        Worst worst = sweep(c, {0}, uint64_t{1} << 32, 1);
        printf("%-10s %.4f ULP at %a", c.name, worst.ulps, worst.at);
        if (c.absolute > 0) printf(", and %.3g absolute at %g (below %g)", worst.absolute, worst.absolute_at, c.from);
        printf("\n");
        fflush(stdout);
        check(c, worst);
    }
}
