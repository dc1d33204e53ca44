// pow and atan2: every pair of special values, pairs where a definition is most likely to be wrong, and 10^9 random ones under
// [.exhaustive]; powers that are whole numbers of the program.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "algorithms/functions/functions.h"
#include "support/text/error.h"
#include "tests/algorithms/f32_blocks.h"

namespace tessera::test_functions_of_two {

namespace {

struct Case {
    const char *name;
    Expr (*build)(Expr, Expr);
    double (*in_double)(double, double);
    long double (*in_long_double)(long double, long double);
    double ulps_f32, ulps_f64;
};

const Case cases[] = {{"pow", pow, std::pow, std::pow, 0.8, 1}, {"atan2", atan2, std::atan2, std::atan2, 1.6, 1.6}};

Expr applied_to_inputs(const Case &c, DType type) { return expand_functions(c.build(input(0, type), input(1, type))); }

// In units of the last place of what is exact; 0 where both are NaN or both overflow alike.
template <typename Exact>
double error_in_ulps(double got, Exact exact, DType type) {
    if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
    const int mantissa = traits_of(type).mantissa, least = type == DType::f32 ? -126 : -1022;
    const Exact limit = std::ldexp(Exact(1), 1 - least + 1);  // as if the next binade were there
    const Exact g = std::fmax(-limit, std::fmin(limit, Exact(got))), e = std::fmax(-limit, std::fmin(limit, exact));
    if (g == e) return 0;
    return static_cast<double>(std::fabs(std::ldexp(g - e, mantissa - std::max(least, e == 0 ? least : std::ilogb(e)))));
}

std::vector<double> special_values(DType type) {
    const bool single = type == DType::f32;
    const double epsilon = std::ldexp(1.0, -traits_of(type).mantissa);
    std::vector<double> all = {0,
                               1,
                               0.5,
                               1.5,
                               2,
                               2.5,
                               3,
                               4,
                               5,
                               1 / epsilon,
                               1 / epsilon - 1,
                               2 / epsilon - 1,
                               2 / epsilon,
                               4 / epsilon,
                               1 + epsilon,
                               1 - epsilon / 2,
                               INFINITY,
                               NAN,
                               single ? 0x1p-149 : 0x1p-1074,
                               single ? 0x1p-126 : 0x1p-1022,
                               single ? 0x1.fffffep127 : 0x1.fffffffffffffp1023};
    for (size_t i = all.size(); i-- > 0;) all.push_back(-all[i]);
    return all;
}

struct Random {
    std::mt19937_64 bits;
    double unit() { return std::ldexp(static_cast<double>(bits() >> 11), -53); }
    double between(double lo, double hi) { return lo + (hi - lo) * unit(); }
    double anything(DType type) {
        return type == DType::f32 ? std::bit_cast<float>(static_cast<uint32_t>(bits())) : std::bit_cast<double>(bits());
    }
    // Pairs near 1, near overflow and underflow, with whole powers of either sign, of exact results, or anything at all.
    std::pair<double, double> pair(DType type) {
        const double largest = type == DType::f32 ? 128 : 1024, x = std::fabs(anything(type));
        switch (bits() % 8) {
        case 0: return {1 + between(-0.5, 0.5) * std::exp2(between(-30, 0)), between(-100, 100)};
        case 1: return {1 + between(-0.5, 0.5) * std::exp2(between(-20, 0)), std::exp2(between(0, largest / 4))};
        case 2: return {x, largest / std::log2(x) * between(0.995, 1.005)};
        case 3: return {x, -largest / std::log2(x) * between(0.97, 1.17)};
        case 4: return {-x, std::floor(between(-20, 20))};
        case 5: return {std::floor(between(-20, 20)), std::floor(between(-12, 12))};
        case 6: return {std::exp2(between(-10, 10)), between(-6, 6)};
        default: return {anything(type), anything(type)};
        }
    }
};

struct Worst {
    double ulps = 0, x = 0, y = 0;
    void add(double error, double at_x, double at_y) {
        if (!(error <= ulps)) ulps = error, x = at_x, y = at_y;
    }
};

Worst sweep_f32(const Case &c, uint64_t count) {
    Random random{std::mt19937_64(6)};
    F32Blocks blocks(applied_to_inputs(c, DType::f32));
    Worst worst;
    float x[F32Blocks::lanes], y[F32Blocks::lanes];
    for (uint64_t i = 0; i < count; i += F32Blocks::lanes) {
        for (int lane = 0; lane < F32Blocks::lanes; lane++) {
            const auto [a, b] = random.pair(DType::f32);
            x[lane] = static_cast<float>(a), y[lane] = static_cast<float>(b);
        }
        const float *z = blocks.run(x, y);
        for (int lane = 0; lane < F32Blocks::lanes; lane++)
            worst.add(error_in_ulps(z[lane], c.in_double(x[lane], y[lane]), DType::f32), x[lane], y[lane]);
    }
    return worst;
}

}  // namespace

TEST_CASE("functions: pow and atan2 give what C says at every pair of special values") {
    for (const Case &c : cases)
        for (DType type : {DType::f32, DType::f64}) {
            const Expr e = applied_to_inputs(c, type);
            const double allowed = type == DType::f32 ? c.ulps_f32 : c.ulps_f64;
            for (double x : special_values(type))
                for (double y : special_values(type)) {
                    const Scalar a = Scalar::of_real(type, x), b = Scalar::of_real(type, y);
                    const double got = evaluate(e, a, b).real;
                    const long double want = c.in_long_double(a.real, b.real);
                    INFO(c.name << "(" << x << ", " << y << ") is " << got << " in " << name_of(type) << ", not " << want);
                    CHECK(error_in_ulps(got, want, type) <= allowed);
                    if (!std::isnan(want)) CHECK(std::signbit(got) == std::signbit(want));
                }
        }
}

TEST_CASE("functions: pow and atan2 in f32 are within the stated error") {
    for (const Case &c : cases) {
        const Worst worst = sweep_f32(c, 1 << 20);
        INFO(c.name << ": " << worst.ulps << " ULP at " << worst.x << ", " << worst.y);
        CHECK(worst.ulps <= c.ulps_f32);
    }
}

TEST_CASE("functions: pow and atan2 in f32 at 10^9 pairs are within the stated error", "[.exhaustive]") {
    for (const Case &c : cases) DYNAMIC_SECTION(c.name) {
            const Worst worst = sweep_f32(c, 1000000000);
            printf("%-10s %.4f ULP at %a, %a\n", c.name, worst.ulps, worst.x, worst.y);
            CHECK(worst.ulps <= c.ulps_f32);
        }
}

TEST_CASE("functions: pow and atan2 in f64 are within the stated error") {
    Random random{std::mt19937_64(7)};
    for (const Case &c : cases) {
        const Expr e = applied_to_inputs(c, DType::f64);
        Worst worst;
        for (int i = 0; i < 20000; i++) {
            const auto [x, y] = random.pair(DType::f64);
            const double got = evaluate(e, Scalar::of_real(DType::f64, x), Scalar::of_real(DType::f64, y)).real;
            worst.add(error_in_ulps(got, c.in_long_double(x, y), DType::f64), x, y);
        }
        INFO(c.name << ": " << worst.ulps << " ULP at " << worst.x << ", " << worst.y);
        CHECK(worst.ulps <= c.ulps_f64);
    }
}

TEST_CASE("functions: pow of exact results is exact") {
    auto power = [](DType type, double x, double y) { return pow(constant(type, x), constant(type, y))->value.real; };
    for (DType type : {DType::f32, DType::f64}) {
        for (int x = -15; x <= 15; x++)
            for (int y = 0; y <= 5; y++) CHECK(power(type, x, y) == std::pow(x, y));
        for (double x : {0.1, 1.7, 3e5, 1e-9}) {
            const double rounded = constant(type, x)->value.real;
            CHECK(power(type, rounded, 1) == rounded);
        }
    }
}

TEST_CASE("functions: a power of the program is made of products") {
    auto value_at = [](const Expr &e, double x) { return evaluate(e, constant(input(0, e.type()).type(), x)->value); };
    for (DType type : {DType::f32, DType::f64}) {
        CHECK(value_at(pow(input(0, type), 3), -3).real == -27);
        CHECK(value_at(pow(input(0, type), -2), -4).real == 0.0625);
        CHECK(pow(input(0, type), 0).is_constant());
    }
    const Expr x = input(0, DType::f32);
    CHECK(equal(pow(x, 2), x * x));
    CHECK(equal(pow(x, 3), (x * x) * x));
    CHECK(value_at(pow(input(0, DType::i32), 5), -2).integer == -32);
    CHECK_THROWS_WITH(
        pow(input(0, DType::i32), -1),
        "error[functions.type]: pow of i32 by -1: expected a power of at least 0, whose result is an integer. Cast to f32 or f64.");
}

}  // namespace tessera::test_functions_of_two
