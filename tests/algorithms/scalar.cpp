#include "algorithms/expr/scalar.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "support/text/error.h"

namespace tessera::test_scalar {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t i64_lowest = std::numeric_limits<int64_t>::min(), i64_highest = std::numeric_limits<int64_t>::max();
const DType every_type[] = {DType::f32,    DType::f64,        DType::bf16,      DType::f16,      DType::i8,       DType::u8,
                            DType::i32,    DType::i64,        DType::boolean,   DType::f8e4m3fn, DType::f8e4m3,   DType::f8e4m3fnuz,
                            DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0fnu, DType::f6e2m3fn, DType::f6e3m2fn, DType::f4e2m1fn};

Scalar f32(double v) { return Scalar::of_real(DType::f32, v); }
Scalar f64(double v) { return Scalar::of_real(DType::f64, v); }
Scalar i32(int64_t v) { return Scalar::of_integer(DType::i32, v); }
Scalar i64(int64_t v) { return Scalar::of_integer(DType::i64, v); }
Scalar truth(bool v) { return Scalar::of_integer(DType::boolean, v); }

Scalar run(Op op, std::vector<Scalar> operands) { return apply(op, operands.data()); }

// Round to nearest even in the top half of an f32's bits.
uint16_t bf16_bits(float v) {
    uint32_t bits = std::bit_cast<uint32_t>(v);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Floats of every magnitude, and the values near which formats change behaviour.
std::vector<float> many_floats() {
    std::vector<float> values;
    std::mt19937 random(7);
    for (int i = 0; i < 200000; i++) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    for (float edge : {0x1p-24f, 0x1p-25f, 0x1.8p-24f, 0x1p-14f, 65504.0f, 65520.0f, 0x1p-126f, 0x1p-133f, 0x1p-134f, 1.0f, 0.0f,
                       0x1.fep127f, 0x1.ffp127f})
        for (int step = -3; step <= 3; step++)
            for (uint32_t sign : {0u, 1u << 31})
                values.push_back(std::bit_cast<float>((std::bit_cast<uint32_t>(edge) + static_cast<uint32_t>(step)) ^ sign));
    return values;
}

}  // namespace

TEST_CASE("scalar: every bf16 is read and written back") {
    for (uint32_t code = 0; code < 65536; code++) {
        uint16_t bits = static_cast<uint16_t>(code);
        Scalar s = load_scalar(DType::bf16, &bits);
        float expected = std::bit_cast<float>(code << 16);
        if (std::isnan(expected)) {
            REQUIRE(std::isnan(s.real));
            const uint64_t written = stored_bits(s);
            REQUIRE((written & 0x7f80) == 0x7f80);
            REQUIRE((written & 0x7f) != 0);
        } else {
            REQUIRE(s.real == expected);
            REQUIRE(stored_bits(s) == bits);
        }
    }
}

TEST_CASE("scalar: conversion to bf16 rounds to nearest even") {
    for (float v : many_floats()) {
        if (std::isnan(v)) continue;
        REQUIRE(stored_bits(convert(DType::bf16, Rounding::nearest_even, false, f32(v))) == bf16_bits(v));
    }
    SECTION("ties") {
        for (uint32_t code = 0; code < 0x7f80; code++) {
            float tie = std::bit_cast<float>(code << 16 | 0x8000);
            REQUIRE(stored_bits(Scalar::of_real(DType::bf16, tie)) == code + (code & 1));
            REQUIRE(stored_bits(Scalar::of_real(DType::bf16, -tie)) == (0x8000 | (code + (code & 1))));
        }
    }
    SECTION("a double is rounded once, not by way of f32") {
        CHECK(Scalar::of_real(DType::bf16, 1 + 0x1p-8 + 0x1p-40).real == 1 + 0x1p-7);
        CHECK(Scalar::of_real(DType::bf16, 1 + 0x1p-8).real == 1);
    }
}

#ifdef __FLT16_MANT_DIG__
TEST_CASE("scalar: every f16 is read and written back") {
    for (uint32_t code = 0; code < 65536; code++) {
        uint16_t bits = static_cast<uint16_t>(code);
        Scalar s = load_scalar(DType::f16, &bits);
        double expected = static_cast<double>(std::bit_cast<_Float16>(bits));
        if (std::isnan(expected)) {
            REQUIRE(std::isnan(s.real));
            REQUIRE(std::isnan(static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(stored_bits(s))))));
        } else {
            REQUIRE(s.real == expected);
            REQUIRE(stored_bits(s) == bits);
        }
    }
}

TEST_CASE("scalar: conversion to f16 rounds to nearest even") {
    for (float v : many_floats()) {
        if (std::isnan(v)) continue;
        REQUIRE(stored_bits(convert(DType::f16, Rounding::nearest_even, false, f32(v))) ==
                std::bit_cast<uint16_t>(static_cast<_Float16>(v)));
    }
    for (uint32_t code = 0; code < 0x7bff; code++) {
        auto value = [](uint32_t c) { return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(c))); };
        double tie = (value(code) + value(code + 1)) / 2;
        REQUIRE(stored_bits(Scalar::of_real(DType::f16, tie)) == code + (code & 1));
    }
    CHECK(Scalar::of_real(DType::f16, 65519.996).real == 65504);
    CHECK(Scalar::of_real(DType::f16, 65520).real == inf);
    CHECK(Scalar::of_real(DType::f16, 1 + 0x1p-11 + 0x1p-40).real == 1 + 0x1p-10);
}
#endif

TEST_CASE("scalar: every type is stored and loaded unchanged") {
    std::mt19937_64 random(11);
    for (DType type : every_type) {
        for (int i = 0; i < 1000; i++) {
            Scalar s = is_float(type) ? Scalar::of_real(type, std::bit_cast<float>(static_cast<uint32_t>(random())))
                                      : Scalar::of_integer(type, static_cast<int64_t>(random()));
            unsigned char bytes[8];
            std::memset(bytes, 0xa5, sizeof bytes);
            store_scalar(bytes, s);
            REQUIRE(load_scalar(type, bytes) == s);
            for (int rest = size_of(type); rest < 8; rest++) REQUIRE(bytes[rest] == 0xa5);
        }
    }
    int64_t place = 0;
    CHECK_THROWS_AS(store_scalar(&place, Scalar::of_integer(DType::index, 1)), InternalError);
    CHECK_THROWS_AS(load_scalar(DType::index, &place), InternalError);
}

TEST_CASE("scalar: equality is by bits, with every NaN the same") {
    CHECK(f32(nan_value) == f32(-nan_value));
    CHECK_FALSE(f32(0.0) == f32(-0.0));
    CHECK_FALSE(f32(1) == f64(1));
    CHECK_FALSE(i32(1) == i64(1));
    CHECK_FALSE(f32(nan_value) == f32(1));
    CHECK(f32(0.1) == f32(0.1f));
}

TEST_CASE("scalar: integers wrap") {
    CHECK(run(Op::add, {i32(INT32_MAX), i32(1)}) == i32(INT32_MIN));
    CHECK(run(Op::sub, {i32(INT32_MIN), i32(1)}) == i32(INT32_MAX));
    CHECK(run(Op::mul, {i32(65536), i32(65536)}) == i32(0));
    CHECK(run(Op::neg, {i32(INT32_MIN)}) == i32(INT32_MIN));
    CHECK(run(Op::abs, {i32(INT32_MIN)}) == i32(INT32_MIN));
    CHECK(run(Op::abs, {i32(-5)}) == i32(5));
    CHECK(run(Op::add, {i64(i64_highest), i64(1)}) == i64(i64_lowest));
    CHECK(run(Op::mul, {i64(i64_highest), i64(2)}) == i64(-2));
    CHECK(run(Op::fma, {i32(1 << 20), i32(1 << 12), i32(3)}) == i32(3));
    CHECK(Scalar::of_integer(DType::i8, 200) == Scalar::of_integer(DType::i8, -56));
    CHECK(Scalar::of_integer(DType::u8, -1).integer == 255);
    CHECK(Scalar::of_integer(DType::boolean, 4).integer == 1);
}

TEST_CASE("scalar: div and mod round toward minus infinity") {
    std::vector<int64_t> values = {0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, INT32_MAX, INT32_MIN, INT32_MIN + 1};
    for (int64_t a : values)
        for (int64_t b : values) {
            int64_t q = run(Op::div, {i32(a), i32(b)}).integer, r = run(Op::mod, {i32(a), i32(b)}).integer;
            INFO(a << " by " << b);
            if (b == 0) {
                CHECK(q == 0);
                CHECK(r == 0);
                continue;
            }
            CHECK(i32(q) == i32(static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)))));
            CHECK(i32(q * b + r) == i32(a));
            CHECK((r == 0 || ((r < 0) == (b < 0) && std::abs(r) < std::abs(b))));
        }
    CHECK(run(Op::div, {i64(i64_lowest), i64(-1)}) == i64(i64_lowest));
    CHECK(run(Op::mod, {i64(i64_lowest), i64(-1)}) == i64(0));
}

TEST_CASE("scalar: min and max give NaN when either operand is, and the first of two zeros") {
    for (auto make : {f32, f64}) {
        for (Op op : {Op::min, Op::max}) {
            CHECK(run(op, {make(nan_value), make(1)}) == make(nan_value));
            CHECK(run(op, {make(1), make(nan_value)}) == make(nan_value));
            CHECK(run(op, {make(0.0), make(-0.0)}) == make(0.0));
            CHECK(run(op, {make(-0.0), make(0.0)}) == make(-0.0));
        }
        CHECK(run(Op::min, {make(1), make(2)}) == make(1));
        CHECK(run(Op::max, {make(1), make(2)}) == make(2));
    }
    CHECK(run(Op::min, {i32(-1), i32(2)}) == i32(-1));
    CHECK(run(Op::max, {i32(-1), i32(2)}) == i32(2));
}

TEST_CASE("scalar: shifts take their count modulo the width, and shr keeps the sign") {
    for (int64_t count : {0, 1, 5, 31, 32, 33, 63, 64, -1}) {
        int in32 = static_cast<int>(count & 31), in64 = static_cast<int>(count & 63);
        INFO(count);
        CHECK(run(Op::shl, {i32(-77), i32(count)}) == i32(static_cast<int32_t>(static_cast<uint32_t>(-77) << in32)));
        CHECK(run(Op::shr, {i32(-77), i32(count)}) == i32(-77 >> in32));
        CHECK(run(Op::shl, {i64(-77), i64(count)}) == i64(static_cast<int64_t>(static_cast<uint64_t>(-77) << in64)));
        CHECK(run(Op::shr, {i64(-77), i64(count)}) == i64(int64_t{-77} >> in64));
    }
    CHECK(run(Op::bit_and, {i32(12), i32(10)}) == i32(8));
    CHECK(run(Op::bit_or, {i32(12), i32(10)}) == i32(14));
    CHECK(run(Op::bit_xor, {i32(12), i32(10)}) == i32(6));
    CHECK(run(Op::logical_not, {i32(12)}) == i32(-13));
    CHECK(run(Op::logical_not, {truth(true)}) == truth(false));
}

TEST_CASE("scalar: rounding operations") {
    struct Row {
        double x, round, floor, ceil, trunc;
    };
    for (Row r : {Row{0.5, 0, 0, 1, 0},
                  {1.5, 2, 1, 2, 1},
                  {2.5, 2, 2, 3, 2},
                  {-0.5, -0.0, -1, -0.0, -0.0},
                  {-2.5, -2, -3, -2, -2},
                  {-0.0, -0.0, -0.0, -0.0, -0.0},
                  {inf, inf, inf, inf, inf},
                  {8388609, 8388609, 8388609, 8388609, 8388609}})
        for (auto make : {f32, f64}) {
            CHECK(run(Op::round, {make(r.x)}) == make(r.round));
            CHECK(run(Op::floor, {make(r.x)}) == make(r.floor));
            CHECK(run(Op::ceil, {make(r.x)}) == make(r.ceil));
            CHECK(run(Op::trunc, {make(r.x)}) == make(r.trunc));
        }
}

TEST_CASE("scalar: f32 arithmetic equals the processor's") {
    std::mt19937 random(3);
    auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
    auto near_one = [&] { return std::bit_cast<float>(0x3f000000u + static_cast<uint32_t>(random() >> 8)); };
    for (int i = 0; i < 100000; i++) {
        volatile float a = i % 2 ? any() : near_one(), b = i % 2 ? any() : near_one(), c = i % 2 ? any() : near_one();
        volatile float sum = a + b, difference = a - b, product = a * b, quotient = a / b;
        REQUIRE(run(Op::add, {f32(a), f32(b)}) == f32(sum));
        REQUIRE(run(Op::sub, {f32(a), f32(b)}) == f32(difference));
        REQUIRE(run(Op::mul, {f32(a), f32(b)}) == f32(product));
        REQUIRE(run(Op::div, {f32(a), f32(b)}) == f32(quotient));
        REQUIRE(run(Op::sqrt, {f32(a)}) == f32(std::sqrt(static_cast<float>(a))));
        REQUIRE(run(Op::fma, {f32(a), f32(b), f32(c)}) == f32(std::fma(float(a), float(b), float(c))));
        REQUIRE(run(Op::lt, {f32(a), f32(b)}) == truth(a < b));
        REQUIRE(run(Op::le, {f32(a), f32(b)}) == truth(a <= b));
        REQUIRE(run(Op::eq, {f32(a), f32(b)}) == truth(a == b));
        REQUIRE(run(Op::ne, {f32(a), f32(b)}) == truth(a != b));
    }
}

TEST_CASE("scalar: fma rounds once") {
    // The exact result lies just above a tie; rounding to double first lands on the tie and then goes to even, below.
    float a = 1 + 0x1p-12f, c = 0x1p-80f;
    double expected = 1 + 0x1p-11 + 0x1p-23;
    CHECK(run(Op::fma, {f32(a), f32(a), f32(c)}) == f32(expected));
    CHECK(static_cast<float>(double(a) * double(a) + double(c)) != static_cast<float>(expected));
    double x = 1 + 0x1p-30;
    CHECK(run(Op::fma, {f64(x), f64(x), f64(-1 - 0x1p-29)}) == f64(0x1p-60));
    CHECK(run(Op::sub, {run(Op::mul, {f64(x), f64(x)}), f64(1 + 0x1p-29)}) == f64(0));
}

TEST_CASE("scalar: comparisons and select with NaN") {
    CHECK(run(Op::eq, {f32(nan_value), f32(nan_value)}) == truth(false));
    CHECK(run(Op::ne, {f32(nan_value), f32(nan_value)}) == truth(true));
    CHECK(run(Op::lt, {f32(nan_value), f32(1)}) == truth(false));
    CHECK(run(Op::le, {f32(nan_value), f32(1)}) == truth(false));
    CHECK(run(Op::eq, {f32(0.0), f32(-0.0)}) == truth(true));
    CHECK(run(Op::select, {truth(true), f32(nan_value), f32(1)}) == f32(nan_value));
    CHECK(run(Op::select, {truth(false), f32(nan_value), f32(1)}) == f32(1));
}

TEST_CASE("scalar: float to integer rounds, then saturates") {
    auto nearest = Rounding::nearest_even, zero = Rounding::toward_zero;
    CHECK(convert(DType::i32, nearest, false, f32(2.5)) == i32(2));
    CHECK(convert(DType::i32, nearest, false, f32(3.5)) == i32(4));
    CHECK(convert(DType::i32, zero, false, f32(-3.9)) == i32(-3));
    struct Row {
        DType type;
        double value;
        int64_t saturated, plain;
    };
    for (Row r : {Row{DType::i8, 127.5, 127, -128},
                  {DType::i8, 127.4, 127, 127},
                  {DType::i8, -128.5, -128, -128},
                  {DType::i8, -300, -128, -128},
                  {DType::u8, -1, 0, 0},
                  {DType::u8, 256, 255, 0},
                  {DType::u8, 255.4, 255, 255},
                  {DType::i32, 2147483648.0, INT32_MAX, INT32_MIN},
                  {DType::i32, 2147483647.0, INT32_MAX, INT32_MAX},
                  {DType::i32, -inf, INT32_MIN, INT32_MIN},
                  {DType::i32, inf, INT32_MAX, INT32_MIN},
                  {DType::i64, 0x1p63, i64_highest, i64_lowest},
                  {DType::i64, 0x1.fffffffffffffp62, 0x7ffffffffffffc00, 0x7ffffffffffffc00},
                  {DType::i64, -0x1p63, i64_lowest, i64_lowest}}) {
        INFO(name_of(r.type) << " of " << r.value);
        CHECK(convert(r.type, nearest, true, f64(r.value)).integer == r.saturated);
        CHECK(convert(r.type, nearest, false, f64(r.value)).integer == r.plain);
    }
    CHECK(convert(DType::i8, nearest, true, f32(nan_value)).integer == 0);
    CHECK(convert(DType::u8, nearest, true, f64(nan_value)).integer == 0);
    CHECK(convert(DType::i32, nearest, false, f32(nan_value)).integer == INT32_MIN);
}

TEST_CASE("scalar: other conversions") {
    auto to = [](DType type, bool saturate, const Scalar &s) { return convert(type, Rounding::nearest_even, saturate, s); };
    CHECK(to(DType::i8, true, i32(1000)).integer == 127);
    CHECK(to(DType::i8, false, i32(1000)).integer == -24);
    CHECK(to(DType::u8, true, i32(-5)).integer == 0);
    CHECK(to(DType::u8, false, i32(-5)).integer == 251);
    CHECK(to(DType::i32, true, i64(i64_highest)) == i32(INT32_MAX));
    CHECK(to(DType::boolean, false, f32(0.25)) == truth(true));
    CHECK(to(DType::boolean, false, f32(-0.0)) == truth(false));
    CHECK(to(DType::boolean, false, i32(7)) == truth(true));
    CHECK(to(DType::f32, false, truth(true)) == f32(1));
    CHECK(to(DType::f64, false, f32(0.1)) == f64(0.1f));
    CHECK(to(DType::f32, false, f64(1e300)) == f32(inf));
    // Rounding an i64 to double and then to f32 would give 2^60.
    CHECK(to(DType::f32, false, i64((int64_t{1} << 60) + (int64_t{1} << 36) + 1)) == f32(0x1p60 + 0x1p37));
    for (DType type : every_type) {
        if (is_float(type)) CHECK(std::isnan(to(type, false, f32(nan_value)).real) == (traits_of(type).specials != Specials::none));
        if (is_float(type)) CHECK(to(type, false, f32(-0.0)) == Scalar::of_real(type, -0.0));
    }
}

TEST_CASE("scalar: bitcast") {
    CHECK(bitcast(DType::i32, f32(1)) == i32(0x3f800000));
    CHECK(bitcast(DType::f32, i32(INT32_MIN)) == f32(-0.0));
    CHECK(bitcast(DType::i64, f64(-2)) == i64(static_cast<int64_t>(0xc000000000000000)));
    std::mt19937_64 random(5);
    for (int i = 0; i < 10000; i++) {
        int64_t bits = static_cast<int64_t>(random());
        if (!std::isnan(bitcast(DType::f64, i64(bits)).real)) REQUIRE(bitcast(DType::i64, bitcast(DType::f64, i64(bits))) == i64(bits));
        if (!std::isnan(bitcast(DType::f32, i32(bits)).real)) REQUIRE(bitcast(DType::i32, bitcast(DType::f32, i32(bits))) == i32(bits));
    }
}

TEST_CASE("scalar: a combination that has no meaning is our own error") {
    CHECK_THROWS_AS(run(Op::shl, {f32(1), f32(1)}), InternalError);
    CHECK_THROWS_AS(run(Op::sqrt, {i32(1)}), InternalError);
    CHECK_THROWS_AS(Scalar::of_real(DType::i32, 1), InternalError);
    CHECK_THROWS_AS(Scalar::of_integer(DType::f32, 1), InternalError);
}

}  // namespace tessera::test_scalar
