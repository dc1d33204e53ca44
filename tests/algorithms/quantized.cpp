// Quantised tensors: the formula of reading them, the error of making them, and what is refused.
#include "algorithms/build/quantized.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_quantized {

namespace {

using Arrays = std::map<std::string, Array>;

std::vector<double> series(size_t n, double first, double step) {
    std::vector<double> values;
    for (size_t i = 0; i < n; i++) values.push_back(first + step * static_cast<double>(i));
    return values;
}

std::string refused(const Quantization &how, bool makes = false) {
    try {
        Builder f("refused");
        const std::vector<Dim> dims = {f.dim("N"), f.dim("K")};
        if (makes) quantize(f.input("x", dims), "q", how);
        else quantized(f, "w", dims, how);
    } catch (const UserError &e) { return e.id(); }
    return "";
}

}  // namespace

TEST_CASE("quantized: a value is scale * (code - zero), with the scale and the zero of its group") {
    Builder f("read");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Quantized w = quantized(f, "w", {N, K}, {.codes = DType::u8, .scales = DType::bf16, .group = 3, .zeros = DType::u8});
    CHECK(w.scales.dims() == std::vector<std::string>{"N", "K_groups_of_3"});
    const Algorithm a = f.output("y", dequantize(w)).build();  // (N, K)
    const size_t rows = 2, columns = 8, groups = 3;
    const std::vector<double> codes = series(rows * columns, 0, 17), scales = series(rows * groups, 0.5, 0.25),
                              zeros = series(rows * groups, 3, 40);
    const Arrays inputs = {{"w", Array(DType::u8, {2, 8}, codes)},
                           {"w_scales", Array(DType::bf16, {2, 3}, scales)},
                           {"w_zeros", Array(DType::u8, {2, 3}, zeros)}};
    const std::vector<double> y = evaluate(a, inputs).at("y").values();
    for (size_t n = 0; n < rows; n++)
        for (size_t k = 0; k < columns; k++) {
            const size_t group = n * groups + k / 3;
            CHECK(y[n * columns + k] == scales[group] * (codes[n * columns + k] - zeros[group]));
        }
}

TEST_CASE("quantized: a product of codes by scales of a whole row") {
    Builder f("product");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Quantized w = quantized(f, "w", {N, K}, {.codes = DType::f8e4m3fn, .scales = DType::f8e8m0fnu});
    CHECK(w.scales.dims() == std::vector<std::string>{"N"});
    const Algorithm a = f.output("y", dot(dequantize(w), f.input("x", {K}), {K})).build();
    const Arrays inputs = {{"w", Array(DType::f8e4m3fn, {2, 2}, {448, -1.5, 0.5, 3})},
                           {"w_scales", Array(DType::f8e8m0fnu, {2}, {0.25, 8})},
                           {"x", Array(DType::f32, {2}, {1, 2})}};
    CHECK(evaluate(a, inputs).at("y").values() == std::vector<double>{0.25 * (448 - 3), 8 * 6.5});
}

TEST_CASE("quantized: what is made is near, and no code is beyond its format") {
    const int64_t rows = 4, columns = 37;
    std::vector<double> x;
    for (int64_t i = 0; i < rows * columns; i++)
        x.push_back(i < columns ? 0 : std::sin(static_cast<double>(i * i)) * std::pow(10, i % 5 - 2));
    for (DType codes : {DType::i8, DType::f8e4m3fn, DType::f8e5m2, DType::f8e4m3fnuz})
        for (DType scales : {DType::f32, DType::bf16, DType::f16, DType::f8e8m0fnu})
            for (int64_t group : {0, 1, 16, 64}) {
                INFO(name_of(codes) << " by " << name_of(scales) << " in groups of " << group);
                Builder f("made");
                const Dim N = f.dim("N"), K = f.dim("K");
                const Tile tile = f.input("x", {N, K});
                const Quantized q = quantize(tile * 1.0, "q", {.codes = codes, .scales = scales, .group = group});
                f.output("codes", q.codes, codes);
                const Algorithm a = f.output("y", dequantize(q)).build();
                const Arrays made = evaluate(a, {{"x", Array(DType::f32, {rows, columns}, x)}});
                const std::vector<double> y = made.at("y").values();
                const int64_t together = group ? group : columns;
                for (int64_t i = 0; i < rows * columns; i++) {
                    const int64_t row = i / columns, first = i % columns / together * together, last = std::min(first + together, columns);
                    double most = 0;
                    for (int64_t k = first; k < last; k++) most = std::max(most, std::fabs(x[static_cast<size_t>(row * columns + k)]));
                    // Half a step of the code, where a scale that is a power of two may be twice as large as it has to be.
                    const double of_number = is_float(codes) ? std::ldexp(1, -traits_of(codes).mantissa - 1) : 0;
                    const double step =
                        most / (is_float(codes) ? highest_finite(traits_of(codes)) : 127) * (scales == DType::f8e8m0fnu ? 2 : 1.01);
                    const double error = std::fabs(y[static_cast<size_t>(i)] - x[static_cast<size_t>(i)]);
                    const double small = is_float(codes) ? 0x1p-7 : 0.5;  // of a step: between subnormal numbers, or integers
                    if (scales == DType::f16 && most < 1) continue;       // scales that f16 has few bits of
                    CHECK(error <= of_number * std::fabs(x[static_cast<size_t>(i)]) + small * step * 1.01);
                }
            }
}

TEST_CASE("quantized: what is refused") {
    CHECK(refused({}) == "");
    CHECK(refused({.codes = DType::f32}) == "quantized.type");
    CHECK(refused({.codes = DType::f8e8m0fnu}) == "quantized.type");
    CHECK(refused({.scales = DType::i32}) == "quantized.type");
    CHECK(refused({.codes = DType::f8e4m3fn, .zeros = DType::u8}) == "quantized.type");
    CHECK(refused({.zeros = DType::f32}) == "quantized.type");
    CHECK(refused({.group = -1}) == "quantized.group");
    CHECK(refused({.codes = DType::u8}, true) == "quantized.type");
    CHECK(refused({.zeros = DType::i8}, true) == "quantized.type");
}

TEST_CASE("quantized: dynamic codes are a u8, a step and a zero point of what is there") {
    const std::vector<std::vector<double>> rows = {
        {0, 2, -3, -2.5, 1.34, 0.5}, {1, 2.1, 1.3, 2.5, 3.34, 4}, {-1, -2, -1.5, -0.5, -3, -4}, {0, 0, 0, 0, 0, 0}};
    Builder f("dynamic");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Quantized q = quantize_dynamic(f.input("x", {M, N}), "q", {N});
    CHECK(q.scales.dims() == std::vector<std::string>{"M"});
    f.output("codes", q.codes, DType::u8).output("scales", q.scales).output("zeros", q.zeros, DType::i32).output("back", dequantize(q));
    std::vector<double> all;
    for (const auto &row : rows) all.insert(all.end(), row.begin(), row.end());
    const auto made = evaluate(f.build(), {{"x", Array(DType::f32, {4, 6}, all)}});
    for (size_t m = 0; m < rows.size(); m++) {
        float least = 0, most = 0;
        for (double v : rows[m]) least = std::min(least, static_cast<float>(v)), most = std::max(most, static_cast<float>(v));
        const float scale = (most == least ? 1.0f : most - least) / 255.0f;
        const double zero = std::nearbyint(std::min(std::max(-least / scale, 0.0f), 255.0f));
        CHECK(made.at("scales").values()[m] == static_cast<double>(scale));
        CHECK(made.at("zeros").values()[m] == zero);
        for (size_t n = 0; n < 6; n++) {
            const double code = std::nearbyint(static_cast<float>(rows[m][n]) / scale) + zero;
            CHECK(made.at("codes").values()[m * 6 + n] == std::min(std::max(code, 0.0), 255.0));
            CHECK(std::abs(made.at("back").values()[m * 6 + n] - rows[m][n]) <= static_cast<double>(scale));
        }
    }
}

TEST_CASE("quantized: codes are rounded to even, moved and saturated") {
    Builder f("codes");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), zero = f.scalar(DType::i32, 10);
    f.output("u", codes_of(x, zero, DType::u8), DType::u8).output("i", codes_of(x, {}, DType::i8), DType::i8);
    f.output("f", cast(DType::f32, codes_of(x, {}, DType::f8e4m3fn)));
    const auto made = evaluate(f.build(), {{"x", Array(DType::f32, {6}, {0.5, 1.5, -2.5, 1000, -1000, 2.4})}});
    CHECK(made.at("u").values() == std::vector<double>{10, 12, 8, 255, 0, 12});
    CHECK(made.at("i").values() == std::vector<double>{0, 2, -2, 127, -128, 2});
    CHECK(made.at("f").values() == std::vector<double>{0.5, 1.5, -2.5, 448, -448, 2.5});
    CHECK_THROWS_AS(codes_of(x, zero, DType::f8e4m3fn), UserError);
}

}  // namespace tessera::test_quantized
