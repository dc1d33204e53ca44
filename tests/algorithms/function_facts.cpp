// What the table says of each standard function beside its definition: its derivative, its course and its bounds.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "algorithms/functions/functions.h"
#include "tests/algorithms/f32_blocks.h"

namespace tessera::test_function_facts {

namespace {

Operands inputs_of(const Function &f) {
    Operands x;
    for (int i = 0; i < f.arity; i++) x.push_back(input(i, DType::f64));
    return x;
}

double at(const Expr &e, double x, double y) { return evaluate(e, Scalar::of_real(DType::f64, x), Scalar::of_real(DType::f64, y)).real; }

// Where arguments are of interest. Every function has a value there.
struct Range {
    double lo, hi;
};
Range range_of(const std::string &name) {
    if (name.starts_with("log1p")) return {-0.9, 8};
    if (name.starts_with("log") || name.starts_with("rsqrt") || name == "pow") return {0.05, 8};
    if (name.starts_with("exp_nonpositive")) return {-8, -0.01};
    if (name == "gelu" || name == "gelu12") return {-8, 8};
    return {-6, 6};
}

}  // namespace

TEST_CASE("functions: derivatives are those of central differences") {
    std::mt19937_64 random(8);
    for (const FunctionRef &f : standard_functions()) {
        REQUIRE(f->facts.derivative.known());
        if (f->name == "stop_gradient" || f->name == "straight_through") continue;  // theirs are others on purpose
        const Operands x = inputs_of(*f);
        const Expr value = expand_functions(applied(f, x));
        const Range range = range_of(f->name);
        std::uniform_real_distribution<double> any(range.lo, range.hi);
        for (int of = 0; of < f->arity; of++) {
            const Expr derivative = expand_functions(derivative_of(applied(f, x), static_cast<size_t>(of)));
            for (int i = 0; i < 60; i++) {
                const double a = any(random), b = any(random), h = 1e-5;
                if (f->name == "relu" && std::fabs(a) < h) continue;
                const double up = of == 0 ? at(value, a + h, b) : at(value, a, b + h);
                const double down = of == 0 ? at(value, a - h, b) : at(value, a, b - h);
                const double difference = (up - down) / (2 * h), size = 1 + std::fabs(difference) + std::fabs(up);
                INFO(f->name << " by argument " << of << " at " << a << ", " << b);
                if (f->name == "atan2" && b < 0 && std::fabs(a) < 2 * h) continue;  // there it jumps
                CHECK(std::fabs(at(derivative, a, b) - difference) <= 2e-7 * size);
            }
        }
    }
}

TEST_CASE("functions: stop_gradient and straight_through give their argument's bits and a derivative of their own") {
    const Expr x = input(0, DType::f64), y = input(1, DType::f64);
    for (const double value : {-0.0, 3.5, static_cast<double>(INFINITY)}) {
        CHECK(std::bit_cast<uint64_t>(at(expand_functions(stop_gradient(x)), value, 7)) == std::bit_cast<uint64_t>(value));
        CHECK(std::bit_cast<uint64_t>(at(expand_functions(straight_through(x, y)), value, 7)) == std::bit_cast<uint64_t>(value));
    }
    CHECK(derivative_of(stop_gradient(x), 0).is_constant());
    CHECK(at(derivative_of(stop_gradient(x), 0), 2, 3) == 0);
    CHECK(at(derivative_of(straight_through(x, y), 0), 2, 3) == 0);
    CHECK(at(derivative_of(straight_through(x, y), 1), 2, 3) == 1);
}

// Beside what differences can see: gelu's falls to nothing on the negative side.
TEST_CASE("functions: gelu's derivative is right in its negative tail") {
    const FunctionRef gelu = *find_function("gelu");
    const Expr derivative = expand_functions(gelu->facts.derivative.in_f64[0]);
    for (double x : {-4.0, -8.0, -15.0, -30.0}) {
        const long double z = x;
        const long double bell = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0L));
        const long double want = std::erfc(-z / std::sqrt(2.0L)) / 2 + z * bell;
        CHECK(at(derivative, x, 0) == Approx(static_cast<double>(want)).epsilon(1e-12));
    }
}

TEST_CASE("functions: results stay within the bounds and keep the course") {
    std::mt19937_64 random(9);
    for (const FunctionRef &f : standard_functions()) {
        const Expr value = expand_functions(applied(f, inputs_of(*f)));
        const Range range = range_of(f->name);
        std::vector<double> points;
        for (int i = 0; i < 400; i++) points.push_back(std::uniform_real_distribution<double>(range.lo, range.hi)(random));
        std::sort(points.begin(), points.end());
        double before = NAN;
        for (double x : points) {
            const double y = at(value, x, range.hi);
            INFO(f->name << "(" << x << ") is " << y << " after " << before);
            CHECK(y >= f->facts.least - 1e-15 * std::fabs(f->facts.least));
            CHECK(y <= f->facts.most + 1e-15 * std::fabs(f->facts.most));
            const double unit = 4e-16 * std::fabs(y);
            if (f->facts.course == Course::rising && !std::isnan(before)) CHECK(y >= before - unit);
            if (f->facts.course == Course::falling && !std::isnan(before)) CHECK(y <= before + unit);
            before = y;
        }
    }
}

}  // namespace tessera::test_function_facts
