#include "algorithms/import/weights/weights_file.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "algorithms/expr/scalar.h"
#include "algorithms/import/weights/gguf_blocks.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "tests/support/gguf_writer.h"

namespace tessera::test_weights_file {

using namespace tessera::test;

static std::string half(float value) {
    std::string bytes(2, '\0');
    store_scalar(bytes.data(), Scalar::of_real(DType::f16, value));
    return bytes;
}

static const SafeTensor &named(const WeightsFile &file, const std::string &name) {
    for (const SafeTensor &t : file.tensors())
        if (t.name == name) return t;
    throw std::runtime_error("no tensor " + name);
}

static std::vector<double> numbers(const SafeTensor &t, DType type) {
    std::vector<double> all;
    for (size_t at = 0; at < t.bytes.size(); at += static_cast<size_t>(size_of(type)))
        all.push_back(load_scalar(type, t.bytes.data() + at).real);
    return all;
}

// Two rows of 64 codes -8 ..= 7 with a scale for each 32, as Q4_0 has them: of 16 bytes, byte j has codes j and j + 16.
struct Halves {
    std::vector<int> codes;
    std::vector<float> scales = {0.5F, -2, 0.25F, 3};
    std::string blocks;
    Halves() {
        for (int i = 0; i < 128; i++) codes.push_back(i * 7 % 16 - 8);
        for (size_t b = 0; b < 4; b++) {
            blocks += half(scales[b]);
            for (size_t j = 0; j < 16; j++) blocks += static_cast<char>((codes[32 * b + j] + 8) | (codes[32 * b + j + 16] + 8) << 4);
        }
    }
};

TEST_CASE("weights: blocks of GGUF become codes in their order, and scales") {
    const Halves q4;
    std::string q8;
    for (int b = 0; b < 2; b++) {
        q8 += half(static_cast<float>(b + 1) / 4);
        for (int j = 0; j < 32; j++) q8 += static_cast<char>(b * 32 + j - 50);
    }
    std::string fp4 = "\x7f";
    for (int j = 0; j < 16; j++) fp4 += static_cast<char>(j | (15 - j) << 4);
    const TemporaryFolder folder;
    const auto file = folder.path() / "model.gguf";
    GgufParts parts;
    parts.tensors = {
        {"q4", 2, {64, 2}, q4.blocks}, {"q8", 8, {32, 2}, q8}, {"fp4", 39, {32}, fp4}, {"f", 0, {1}, "abcd"}, {"i", 26, {1}, "abcd"}};
    write_into(file, parts.text());

    const WeightsFile read(file);
    CHECK(read.notes().empty());
    CHECK(read.as_stored() == nullptr);
    REQUIRE(read.tensors().size() == 8);
    CHECK(named(read, "q4").type == "U8");
    CHECK(named(read, "q4").extents == std::vector<int64_t>{2, 32});
    CHECK(named(read, "q4_scales").type == "F16");
    CHECK(named(read, "q4_scales").extents == std::vector<int64_t>{2, 2});
    CHECK(numbers(named(read, "q4_scales"), DType::f16) == std::vector<double>{0.5, -2, 0.25, 3});
    for (size_t i = 0; i < 128; i++) {
        const int byte = static_cast<unsigned char>(named(read, "q4").bytes[i / 2]);
        CHECK((byte >> (i % 2 ? 4 : 0) & 15) - 8 == q4.codes[i]);
    }
    CHECK(named(read, "q8").type == "I8");
    CHECK(named(read, "q8").extents == std::vector<int64_t>{2, 32});
    for (int i = 0; i < 64; i++) CHECK(static_cast<signed char>(named(read, "q8").bytes[static_cast<size_t>(i)]) == i - 50);
    CHECK(named(read, "q8_scales").extents == std::vector<int64_t>{2, 1});
    CHECK(named(read, "fp4_scales").type == "F8_E8M0");
    CHECK(named(read, "fp4_scales").bytes == "\x7f");
    CHECK(static_cast<unsigned char>(named(read, "fp4").bytes[0]) == 0x10);
    CHECK(static_cast<unsigned char>(named(read, "fp4").bytes[15]) == 0x01);
    CHECK(named(read, "f").bytes == "abcd");
    CHECK(named(read, "i").type == "I32");

    const WeightsFile floats(file, DType::f32);
    CHECK(floats.tensors().size() == 5);
    const std::vector<double> of_q4 = numbers(named(floats, "q4"), DType::f32);
    for (size_t i = 0; i < 128; i++) CHECK(of_q4[i] == q4.scales[i / 32] * static_cast<float>(q4.codes[i]));
    CHECK(numbers(named(floats, "fp4"), DType::f32)[3] == 1.5);
    CHECK(numbers(named(floats, "fp4"), DType::f32)[16] == -6);
    CHECK(named(floats, "i").type == "I32");
}

TEST_CASE("weights: floats are converted to one type, each to the nearest") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "w.safetensors";
    const float values[] = {1, 1.00390625F, -3e38F};
    std::string bytes(12, '\0');
    std::memcpy(bytes.data(), values, 12);
    const std::string codes = "abc";
    write_safetensors(file, {{"w", "F32", {3}, bytes}, {"codes", "I8", {3}, codes}}, {{"made", "here"}});
    const WeightsFile same(file);
    REQUIRE(same.as_stored() != nullptr);
    CHECK(same.metadata().at("made") == "here");
    const WeightsFile narrow(file, DType::bf16);
    CHECK(narrow.as_stored() == nullptr);
    CHECK(named(narrow, "w").type == "BF16");
    CHECK(numbers(named(narrow, "w"), DType::bf16)[1] == 1);  // the middle of two: the even one
    CHECK(named(narrow, "codes").bytes == codes);
    CHECK(numbers(named(WeightsFile(file, DType::f64), "w"), DType::f64)[1] == 1.00390625);
    CHECK_THROWS_WITH(WeightsFile(file, DType::i8), Catch::Contains("error[safetensors.type]") && Catch::Contains("got i8"));
    CHECK_THROWS_WITH(WeightsFile(folder.path() / "none"), Catch::Contains("error[weights.file]"));
}

TEST_CASE("weights: types whose numbers are not known, and names that meet, are refused") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "model.gguf";
    GgufParts parts;
    parts.tensors = {{"w", 10, {256}, std::string(84, 'x')}};
    write_into(file, parts.text());
    CHECK_THROWS_WITH(WeightsFile(file),
                      Catch::Contains("error[gguf.type]") && Catch::Contains("tensor 'w'") && Catch::Contains("got Q2_K"));
    parts.tensors = {{"w", 8, {32}, std::string(34, 'x')}, {"w_scales", 0, {1}, "abcd"}};
    write_into(file, parts.text());
    CHECK_THROWS_WITH(WeightsFile(file), Catch::Contains("error[gguf.name]") && Catch::Contains("'w_scales'"));
    parts.tensors = {{"w", 12, {256}, std::string(144, '\x11')}};
    write_into(file, parts.text());
    CHECK(WeightsFile(file).notes() == std::vector<std::string>{"tensor 'w' of Q4_K became bf16, rounded to the nearest"});
    CHECK(WeightsFile(file, DType::f32).notes().empty());
}

}  // namespace tessera::test_weights_file
