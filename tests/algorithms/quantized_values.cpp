// Codes and scales of known numbers. tests/oracle/quantization.py compares them with NumPy and ml_dtypes, bit by bit.
#include "algorithms/quantization/quantized_values.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "support/text/error.h"

namespace tessera::test_quantized_values {

static std::vector<float> normal(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<float> values(count);
    for (float &v : values) v = draw(random);
    return values;
}

TEST_CASE("code_format: rounding is that of convert, and codes are what a type stores") {
    for (DType type : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz}) {
        const CodeFormat &format = code_format(name_of(type));
        std::vector<float> inputs = {0.0f, -0.0f, 1e30f, -1e30f, 1e-30f, -1e-40f};
        for (int code = 0; code < 256; code++)
            if (const float v = format.numbers[static_cast<size_t>(code)]; std::isfinite(v))
                for (float factor : {1.0f, 0.999f, 1.001f, 1.0625f, 0.96875f, 1.125f, 1.5f}) inputs.push_back(v * factor);
        for (float v : inputs) {
            const Scalar expected = convert(type, Rounding::nearest_even, true, Scalar::of_real(DType::f32, static_cast<double>(v)));
            const float nearest = format.nearest(v);
            INFO(name_of(type) << " of " << v);
            CHECK(nearest == static_cast<float>(expected.real));
            CHECK(format.code_of(nearest) == stored_bits(expected));
            CHECK(format.number_of(format.code_of(nearest)) == nearest);
        }
    }
    const CodeFormat &four = code_format("f4e2m1fn");
    CHECK(four.largest() == 6);
    CHECK(four.nearest(2.5f) == 2);
    CHECK(four.nearest(5) == 4);
    CHECK(four.nearest(-7) == -6);
    CHECK(four.nearest(0.25f) == 0);
    CHECK(four.code_of(-6) == 15);
    CHECK(code_format("int8").nearest(2.5f) == 2);
    CHECK(code_format("int8").nearest(-1e30f) == -128);
    CHECK_THROWS_WITH(code_format("int9"), Catch::Contains("error[quantization.format]") && Catch::Contains("Did you mean 'int8'?"));
}

TEST_CASE("blocks: tensors, channels and groups") {
    CHECK(block_of_each({2, 3}, per_tensor(2)) == std::vector<uint32_t>(6, 0));
    CHECK(block_of_each({2, 3}, per_channel(2, 0)) == std::vector<uint32_t>{0, 0, 0, 1, 1, 1});
    CHECK(block_of_each({2, 3}, per_channel(2, -1)) == std::vector<uint32_t>{0, 1, 2, 0, 1, 2});
    CHECK(block_of_each({2, 3}, per_group(2, 1, 2)) == std::vector<uint32_t>{0, 0, 1, 2, 2, 3});
    CHECK(block_of_each({3, 2}, per_group(2, 0, 2)) == std::vector<uint32_t>{0, 1, 0, 1, 2, 3});
    CHECK(block_of_each({2, 2, 2}, {{1, 0, 1}}) == std::vector<uint32_t>{0, 1, 0, 1, 2, 3, 2, 3});
    CHECK(block_counts({2, 5, 3}, {{1, 0, 1}}) == std::vector<int64_t>{2, 3});
    CHECK(block_counts({2, 5}, per_group(2, 1, 2)) == std::vector<int64_t>{2, 3});
    CHECK(block_counts({2, 5}, per_tensor(2)) == std::vector<int64_t>{1});
    CHECK(block_counts({2, 5}, per_group(2, 1, INT64_MAX)) == std::vector<int64_t>{2, 1});
    CHECK(block_of_each({2, 2}, per_group(2, 1, INT64_MAX)) == std::vector<uint32_t>{0, 0, 1, 1});
    CHECK_THROWS_WITH(per_channel(2, 2), Catch::Contains("error[quantization.axis]"));
    CHECK_THROWS_WITH(per_group(2, 0, 0), Catch::Contains("error[quantization.group]"));
}

TEST_CASE("distribution: percentiles of few numbers are exact, of many within a bin, whatever the pieces") {
    Distribution few;
    few.add(std::vector<float>{3, 1, -2, 10});
    CHECK(few.percentile(50) == 2);
    CHECK(few.percentile(0) == -2);
    CHECK(few.percentile(100) == 10);
    CHECK(few.percentile(90) == Approx(7.9));
    CHECK(few.percentile_of_magnitudes(50) == 2.5);

    std::vector<float> all = normal(300000, 3);
    all[7] = 40;
    Distribution whole, pieces;
    whole.add(all);
    for (size_t first = 0; first < all.size(); first += 999)
        pieces.add(std::span(all).subspan(first, std::min<size_t>(999, all.size() - first)));
    CHECK(!whole.is_exact());
    CHECK(whole.weighted().values == pieces.weighted().values);
    CHECK(whole.weighted().weights == pieces.weighted().weights);
    std::vector<float> sorted = all, magnitudes = all;
    for (float &v : magnitudes) v = std::fabs(v);
    std::sort(sorted.begin(), sorted.end()), std::sort(magnitudes.begin(), magnitudes.end());
    const double width = (static_cast<double>(whole.highest()) - static_cast<double>(whole.lowest())) / (1 << 13);
    for (double p : {0.0, 0.1, 5.0, 50.0, 99.0, 99.9, 99.99, 100.0}) {
        INFO(p);
        const auto at = static_cast<size_t>(p / 100 * static_cast<double>(all.size() - 1));
        CHECK(std::fabs(whole.percentile(p) - static_cast<double>(sorted[at])) <= width);
        CHECK(std::fabs(whole.percentile_of_magnitudes(p) - static_cast<double>(magnitudes[at])) <= width);
    }
    CHECK_THROWS_WITH(few.add(std::vector<float>{1, NAN}), Catch::Contains("error[quantization.not-finite]"));
    CHECK_THROWS_WITH(few.add(std::vector<float>{INFINITY}), Catch::Contains("error[quantization.not-finite]"));
    CHECK(few.count() == 4);
    CHECK(Distribution().percentile(50) == 0);
}

TEST_CASE("observer: batches of activations give the scales of all of them at once") {
    const std::vector<float> x = normal(64 * 6, 5);
    Observer whole(per_channel(2, 1)), batches(per_channel(2, 1));
    whole.observe(x, {64, 6});
    batches.observe(std::span(x).first(10 * 6), {10, 6});
    batches.observe(std::span(x).subspan(10 * 6), {54, 6});
    for (Fit fit : {Fit::min_max, Fit::percentile, Fit::mse}) {
        const ScaleRule rule{.fit = fit, .percent = 99};
        CHECK(choose_scales(whole, code_format("int8"), rule).scales == choose_scales(batches, code_format("int8"), rule).scales);
    }
    CHECK_THROWS_WITH(batches.observe(std::span(x).first(10), {2, 5}), Catch::Contains("error[quantization.pieces]"));
    CHECK_THROWS_WITH(batches.observe(std::span(x).first(6), {6}), Catch::Contains("error[quantization.pieces]"));
}

TEST_CASE("quantize: errors stay within half a step, and the least error is no more than that of extremes") {
    const std::vector<float> x = normal(48 * 64, 11);
    for (const std::string &name : code_format_names())
        for (const Blocks &blocks : {per_tensor(2), per_channel(2, 0), per_group(2, 1, 32), per_group(2, 1, 10)}) {
            const CodeFormat &format = code_format(name);
            ScaleRule rule{.zero_points = name == "uint8"};
            const QuantizedValues q = quantize(x, {48, 64}, blocks, format, rule);
            const std::vector<float> back = dequantize(q);
            const std::vector<uint32_t> block = block_of_each({48, 64}, blocks);
            for (size_t i = 0; format.is_integer && i < x.size(); i++)
                REQUIRE(std::fabs(x[i] - back[i]) <= q.scales.number(block[i]) * (rule.zero_points ? 1.001f : 0.5001f));
            rule.fit = Fit::mse;
            CHECK(error_of(quantize(x, {48, 64}, blocks, format, rule), x).relative <= error_of(q, x).relative * 1.0001);
        }
    CHECK(
        error_of(quantize_per_tensor(std::vector<float>{1, 2, 127}, {3}, code_format("int8")), std::vector<float>{1, 2, 127}).decibels() ==
        INFINITY);
    CHECK_THROWS_WITH(quantize_per_tensor(x, {48, 64}, code_format("uint8")), Catch::Contains("error[quantization.rule]"));
    CHECK_THROWS_WITH(quantize_per_tensor(x, {48, 64}, code_format("f8e5m2"), {.zero_points = true}),
                      Catch::Contains("error[quantization.rule]"));
}

TEST_CASE("quantize: no code of what is finite stands for infinity") {
    const float most = std::numeric_limits<float>::max();
    const std::vector<float> x = {most, -most, most / 3, 1};
    for (const std::string &name : code_format_names())
        for (DType scales : {DType::f32, DType::bf16, DType::f8e8m0fnu, DType::f8e4m3fn}) {
            INFO(name << " " << name_of(scales));
            const QuantizedValues q =
                quantize_per_tensor(x, {4}, code_format(name), {.zero_points = name == "uint8" || name == "uint4", .scales = scales});
            for (float made : dequantize(q)) CHECK(std::isfinite(made));
            CHECK(error_of(q, x).relative < (scales == DType::f8e8m0fnu ? 0.75 : 0.2));
        }
    CHECK_THROWS_WITH(quantize_per_tensor(x, {4}, code_format("int8"), {.scales = DType::f16}),
                      Catch::Contains("error[quantization.rule]") && Catch::Contains("f16 ends at 65504"));
    const StoredTensor stored = stored_floats("x", DType::f16, {1}, {70000});
    CHECK(load_scalar(DType::f16, stored.bytes.data()).real == 65504);
}

TEST_CASE("stored_tensors: the layouts that products take") {
    const std::vector<float> x = {1, -7, 3, 4, 5, 6, 7, -2};
    const QuantizedValues q = quantize_per_channel(x, {2, 4}, 0, code_format("int4"));
    const std::vector<StoredTensor> stored = stored_tensors(q, "w");
    REQUIRE(stored.size() == 2);
    CHECK(stored[0].extents == std::vector<int64_t>{2, 2});
    CHECK(stored[0].bytes == std::string("\x19\xcb\xed\x6f"));  // code + 8, the first in the low half
    CHECK(stored[1].name == "w_scales");
    CHECK(stored[1].extents == std::vector<int64_t>{2});
    const std::vector<StoredTensor> turned = stored_tensors(quantize_per_group(x, {2, 4}, 1, 2, code_format("int8")), "w", true);
    CHECK(turned[0].extents == std::vector<int64_t>{4, 2});
    CHECK(turned[1].extents == std::vector<int64_t>{2, 2});
    CHECK_THROWS_WITH(stored_tensors(quantize_per_tensor(std::vector<float>{1, 2, 3}, {3}, code_format("int4")), "w"),
                      Catch::Contains("error[quantization.packing]"));
    CHECK_THROWS_WITH(stored_tensors(quantize_per_tensor(std::vector<float>{1, 2}, {2}, code_format("int8")), "w", true),
                      Catch::Contains("error[quantization.transpose]"));
}

}  // namespace tessera::test_quantized_values
