#include "algorithms/evaluate/tape.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "support/text/error.h"

namespace tessera::test_tape {

namespace {

// The value of an expression over input(i), which are `operands`.
Scalar evaluated(const Expr &e, const std::vector<Scalar> &operands, const std::vector<TensorView> &tensors = {}) {
    TapeResolver resolver;
    resolver.slot = [](const Expr &leaf) { return leaf->number; };
    resolver.tensor = [&](const std::string &name) {
        for (size_t i = 0; i < tensors.size(); i++)
            if (tensors[i].name == name) return static_cast<int>(i);
        return -1;
    };
    Tape tape({e}, resolver, static_cast<int>(operands.size()));
    std::vector<Register> frame(static_cast<size_t>(tape.end()));
    tape.prepare(frame.data());
    for (size_t i = 0; i < operands.size(); i++) frame[i] = to_register(operands[i]);
    tape.run(frame.data(), tensors.data());
    return tape.value(frame.data(), 0);
}

std::vector<Scalar> adversarial(DType type) {
    std::vector<Scalar> values;
    if (is_float(type)) {
        for (double v : {0.0,          1.0,
                         0.5,          1.5,
                         2.5,          3.7,
                         1e-3,         127.5,
                         128.0,        255.5,
                         65503.9,      65519.999,
                         65520.0,      1e10,
                         2147483647.0, 2147483648.0,
                         9.3e18,       1e30,
                         3.4e38,       3.5e38,
                         1e300,        1.00390625,
                         1.01171875,   1.0004882,
                         6e-8,         3e-8,
                         2.9e-8,       6.1e-5,
                         1e-40,        1.4e-45,
                         1e-310,       0.1,
                         1.0 / 3,      static_cast<double>(INFINITY)})
            for (double sign : {1.0, -1.0}) values.push_back(Scalar::of_real(type, sign * v));
        values.push_back(Scalar::of_real(type, NAN));
    } else {
        for (int64_t v : {0L,
                          1L,
                          2L,
                          3L,
                          7L,
                          8L,
                          31L,
                          32L,
                          33L,
                          63L,
                          64L,
                          65L,
                          127L,
                          128L,
                          255L,
                          256L,
                          1L << 24,
                          (1L << 24) + 1,
                          (1L << 31) - 1,
                          1L << 31,
                          (1L << 53) + 1,
                          INT64_MAX,
                          INT64_MAX - 513})
            for (int64_t w : {v, -v}) values.push_back(Scalar::of_integer(type, w));
        values.push_back(Scalar::of_integer(type, INT64_MIN));
    }
    return values;
}

constexpr DType all_types[] = {DType::f32,        DType::f64,    DType::bf16,       DType::f16,       DType::i8,       DType::u8,
                               DType::i32,        DType::i64,    DType::boolean,    DType::index,     DType::f8e4m3fn, DType::f8e4m3,
                               DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0fnu, DType::f6e2m3fn, DType::f6e3m2fn,
                               DType::f4e2m1fn,   DType::i4,     DType::u4};

}  // namespace

TEST_CASE("law: every operation equals apply() on adversarial values of every type") {
    std::mt19937 random(1);
    int operations = 0;
    for (int o = 0; o <= static_cast<int>(Op::select); o++)
        for (DType type : all_types) {
            Op op = static_cast<Op>(o);
            size_t n = static_cast<size_t>(arity(op));
            std::vector<Expr> operands;
            std::vector<std::vector<Scalar>> values;
            for (size_t i = 0; i < n; i++) {
                DType t = op == Op::select && i == 0 ? DType::boolean : type;
                operands.push_back(input(static_cast<int>(i), t));
                values.push_back(adversarial(t));
            }
            Expr e;
            try {
                e = operation(op, operands);
            } catch (const UserError &) { continue; }
            operations++;
            size_t total = 1;
            for (auto &v : values) total *= v.size();
            size_t step = total > 4000 ? 37 : 1;
            for (size_t k = 0; k < total; k += step) {
                std::vector<Scalar> x;
                size_t rest = k;
                for (auto &v : values) x.push_back(v[rest % v.size()]), rest /= v.size();
                Scalar expected = apply(op, x.data()), got = evaluated(e, x);
                if (got == expected) continue;
                FAIL(name_of(op) << " on " << name_of(type) << " " << to_string(constant(x[0])) << ": " << to_string(constant(got))
                                 << " not " << to_string(constant(expected)));
            }
        }
    CHECK(operations > 80);
}

TEST_CASE("law: every conversion equals convert() and every bitcast bitcast()") {
    for (DType from : all_types)
        for (DType to : all_types)
            for (Rounding rounding : roundings)
                for (bool saturate : {false, true})
                    for (const Scalar &x : adversarial(from)) {
                        const bool has_modes = !is_float(to) || is_narrow_float(to);
                        if (from == to || (!has_modes && (saturate || rounding != Rounding::nearest_even))) continue;
                        Scalar expected = convert(to, rounding, saturate, x);
                        Scalar got = evaluated(cast(to, input(0, from), rounding, saturate), {x});
                        if (got == expected) continue;
                        FAIL(name_of(from) << " " << to_string(constant(x)) << " to " << name_of(to) << ": " << to_string(constant(got))
                                           << " not " << to_string(constant(expected)));
                    }
    for (auto [from, to] :
         {std::pair(DType::f32, DType::i32), {DType::i32, DType::f32}, {DType::f64, DType::i64}, {DType::i64, DType::f64}})
        for (const Scalar &x : adversarial(from)) CHECK(evaluated(bitcast(to, input(0, from)), {x}) == bitcast(to, x));
    for (int code = 0; code < 256; code++) {
        const Scalar bits = Scalar::of_integer(DType::u8, code), value = bitcast(DType::f8e5m2, bits);
        CHECK(evaluated(bitcast(DType::f8e5m2, input(0, DType::u8)), {bits}) == value);
        CHECK(evaluated(bitcast(DType::u8, input(0, DType::f8e5m2)), {value}) == bitcast(DType::u8, value));
    }
}

TEST_CASE("law: random half-width conversions equal convert()") {
    std::mt19937_64 random(2);
    for (int n = 0; n < 20000; n++) {
        auto bits = static_cast<int32_t>(random());
        Scalar x = bitcast(DType::f32, Scalar::of_integer(DType::i32, bits));
        if (n % 2 && std::isnormal(x.real))
            x = Scalar::of_real(DType::f32, std::ldexp(x.real, -static_cast<int>(std::ilogb(x.real)) - n % 40 + 18));
        for (DType to : {DType::bf16, DType::f16})
            if (!(evaluated(cast(to, input(0, DType::f32)), {x}) == convert(to, Rounding::nearest_even, false, x)))
                FAIL(to_string(constant(x)) << " to " << name_of(to));
    }
}

TEST_CASE("law: memory round trips through registers for every stored type") {
    for (DType type : all_types) {
        if (type == DType::index) continue;
        for (const Scalar &x : adversarial(type)) {
            std::byte memory[8] = {}, again[8] = {};
            store_scalar(memory, x);
            CHECK(to_scalar(type, load_register(type, memory)) == load_scalar(type, memory));
            store_register(type, again, load_register(type, memory));
            CHECK(load_scalar(type, again) == load_scalar(type, memory));
        }
    }
}

TEST_CASE("loads check every axis and name the tensor") {
    std::vector<float> data{0, 1, 2, 3, 4, 5};
    TensorView x{"x", DType::f32, reinterpret_cast<std::byte *>(data.data()), {2, 3}, {3, 1}};
    auto at = [](int64_t i, int64_t j) {
        return std::vector<Scalar>{Scalar::of_integer(DType::index, i), Scalar::of_integer(DType::index, j)};
    };
    Expr i = input(0, DType::index), j = input(1, DType::index);
    CHECK(evaluated(load("x", DType::f32, {i, j}), at(1, 2), {x}).real == 5);
    CHECK_THROWS_WITH(evaluated(load("x", DType::f32, {i, j}), at(0, 3), {x}), Catch::Contains("x[0, 3] is outside of its extents (2, 3)"));
    CHECK_THROWS_AS(evaluated(load("x", DType::f32, {i, j}), at(-1, 0), {x}), InternalError);
    TensorView transposed{"x", DType::f32, x.data, {3, 2}, {1, 3}};
    CHECK(evaluated(load("x", DType::f32, {i, j}), at(2, 1), {transposed}).real == 5);
}

TEST_CASE("a guarded load evaluates its index only under the guard") {
    std::vector<int32_t> places{7, 1};
    std::vector<float> data{10, 11};
    TensorView p{"p", DType::i32, reinterpret_cast<std::byte *>(places.data()), {2}, {1}};
    TensorView x{"x", DType::f32, reinterpret_cast<std::byte *>(data.data()), {2}, {1}};
    Expr i = input(0, DType::index);
    Expr place = cast(DType::index, load("p", DType::i32, {i}));
    Expr fill = constant(DType::f32, -1);
    Expr e = load_or("x", DType::f32, {place}, i < 2 && Expr(0) < i, fill);
    auto run = [&](const Expr &value, int64_t at) { return evaluated(value, {Scalar::of_integer(DType::index, at)}, {p, x}).real; };
    CHECK(run(e, 1) == 11);
    CHECK(run(e, 0) == -1);
    CHECK(run(e, 5) == -1);
    Expr shared = e + load_or("x", DType::f32, {place - 6}, i < 1, fill);
    CHECK(run(shared, 0) == 10);
    CHECK(run(shared, 1) == 10);
}

TEST_CASE("bounded clamps, to its lower end where the range is empty") {
    Expr e = bounded(input(0, DType::index), 2, 5);
    auto run = [&](const Expr &value, int64_t x) { return evaluated(value, {Scalar::of_integer(DType::index, x)}).integer; };
    CHECK(run(e, 0) == 2);
    CHECK(run(e, 3) == 3);
    CHECK(run(e, 9) == 4);
    CHECK(run(bounded(input(0, DType::index), 0, 0), 9) == 0);
}

}  // namespace tessera::test_tape
