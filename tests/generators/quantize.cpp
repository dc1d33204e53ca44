// The command quantize: what it writes, prints and refuses. tests/oracle/quantization.py compares its codes with NumPy's.
#include "generators/commands/quantize.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "support/files/safetensors.h"
#include "tests/generators/harness.h"

namespace tessera::test_quantize {

using namespace tessera::test;

static std::string floats(const std::vector<float> &values) {
    std::string bytes(values.size() * 4, '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

TEST_CASE("quantize writes codes with scales, copies the rest and says how") {
    const TemporaryFolder folder;
    const std::string in = folder.path() / "in", out = folder.path() / "out";
    const std::string w = floats({127, -1, 2, 254, 2, 4}), b = floats({1, 2});
    write_safetensors(in, {{"w", "F32", {2, 3}, w}, {"b", "F32", {2}, b}, {"ids", "I64", {1, 1}, "12345678"}}, {{"format", "pt"}});
    const Outcome text = generator({"quantize", in, "--out", out});
    CHECK(text.err == "");
    CHECK_THAT(text.out, Catch::StartsWith("int8, per channel, axis 0, minmax, scales f32\n") &&
                             Catch::Contains("w                24           14   0.00e+00  0.00e+00      inf\n") &&
                             Catch::Contains("copied as they are: 16 bytes"));
    const Safetensors made{std::filesystem::path(out)};
    CHECK(made.tensor("w").bytes == std::string("\x7f\xff\x02\x7f\x01\x02"));
    CHECK(made.tensor("w_scales").bytes == floats({1, 2}));
    CHECK(made.tensor("b").bytes == b);
    CHECK(made.tensor("ids").type == "I64");
    CHECK(made.metadata().at("format") == "pt");
    const auto about = nlohmann::json::parse(made.metadata().at("tessera.quantization"));
    CHECK(about["tensors"]["w"]["format"] == "int8");
    CHECK(about["tensors"]["w"]["shape"] == std::vector<int>{2, 3});

    CHECK(generator({"quantize", in, "--out", out, "--transpose"}).code == 0);
    CHECK(Safetensors(std::filesystem::path(out)).tensor("w").bytes == std::string("\x7f\x7f\xff\x01\x02\x02"));
    CHECK(generator({"quantize", in, "--out", out, "--simulate"}).code == 0);
    CHECK(Safetensors(std::filesystem::path(out)).tensor("w").bytes == w);
    const Outcome json =
        generator({"quantize", in, "--out", out, "--json", "--format", "f8e4m3fn", "--per", "tensor", "--tensors", "re:[wb]"});
    REQUIRE(json.code == 0);
    CHECK(nlohmann::json::parse(json.out)["tensors"].size() == 2);
}

TEST_CASE("quantize keeps what a file says of codes that it has, and leaves what has no elements") {
    const TemporaryFolder folder;
    const std::string in = folder.path() / "in", once = folder.path() / "once", twice = folder.path() / "twice";
    write_safetensors(
        in, {{"a", "F32", {1, 2}, floats({1, 2})}, {"b", "F32", {1, 2}, floats({3, 4})}, {"none", "F32", {1000000000, 0}, ""}}, {});
    REQUIRE(generator({"quantize", in, "-o", once, "--tensors", "a", "--format", "int4"}).code == 0);
    REQUIRE(generator({"quantize", once, "-o", twice}).code == 0);
    const Safetensors made{std::filesystem::path(twice)};
    const auto about = nlohmann::json::parse(made.metadata().at("tessera.quantization"))["tensors"];
    CHECK(about.size() == 2);
    CHECK(about["a"]["format"] == "int4");
    CHECK(about["b"]["format"] == "int8");
    CHECK(made.tensor("none").type == "F32");
    write_safetensors(in, {{"a", "F32", {1, 2}, floats({1, 2})}}, {{"tessera.quantization", R"({"format": "other", "version": 1})"}});
    check_refused({"quantize", in, "-o", once}, {"error[quantization.metadata]"});
}

TEST_CASE("quantize says how far off is what it writes") {
    const TemporaryFolder folder;
    const std::string in = folder.path() / "in", out = folder.path() / "out";
    std::string halves(4, '\0');
    for (int i = 0; i < 2; i++) store_scalar(halves.data() + 2 * i, Scalar::of_real(DType::f16, i ? -65504 : 65504));
    write_safetensors(in, {{"w", "F16", {1, 2}, halves}}, {});
    const Outcome outcome = generator({"quantize", in, "-o", out, "--simulate", "--scales", "bf16", "--json"});
    REQUIRE(outcome.code == 0);
    CHECK(Safetensors(std::filesystem::path(out)).tensor("w").bytes == halves);
    CHECK(nlohmann::json::parse(outcome.out)["tensors"][0]["largest_error"] == 0);
}

TEST_CASE("quantize says why each tensor of a file stays as it is") {
    const TemporaryFolder folder;
    const std::string in = folder.path() / "in", out = folder.path() / "out";
    write_safetensors(in, {{"t", "F32", {0, 5}, ""}, {"b", "F32", {2}, floats({1, 2})}, {"i", "I32", {1, 1}, floats({0})}}, {});
    check_refused({"quantize", in, "-o", out},
                  {"error[quantization.pattern]", "expected floats with elements, of two axes or more; there is nothing to quantize",
                   "t (F32 [0, 5]: no elements)", "b (F32 [2]: fewer than two axes)", "i (I32 [1, 1]: no floats of 16 bits or more)"});
}

TEST_CASE("quantize refuses what it cannot do") {
    const TemporaryFolder folder;
    const std::string in = folder.path() / "in", out = folder.path() / "out";
    write_safetensors(in,
                      {{"w", "F32", {2, 3}, floats({1, 2, 3, 4, 5, 6})},
                       {"bad", "F32", {1, 2}, floats({1, NAN})},
                       {"w2_scales", "F32", {1}, floats({1})},
                       {"w2", "F32", {1, 2}, floats({1, 2})}},
                      {});
    check_refused({"quantize", in, "-o", out}, {"error[quantization.not-finite]: tensor 'bad'", "--keep leaves a tensor as it is"});
    check_refused({"quantize", in, "-o", out, "--tensors", "x*"},
                  {"error[quantization.pattern]", "'x*'", "bad (F32 [1, 2]: another name), w (F32 [2, 3]: another name)"});
    check_refused({"quantize", in, "-o", out, "--tensors", "re:("}, {"error[quantization.pattern]"});
    check_refused({"quantize", in, "-o", out, "--tensors", "w", "--format", "int4"}, {"error[quantization.packing]", "has 3"});
    check_refused({"quantize", in, "-o", out, "--tensors", "w", "--axis", "2"}, {"error[quantization.axis]", "-2 to 1"});
    check_refused({"quantize", in, "-o", out, "--tensors", "w", "--format", "uint8"}, {"error[quantization.rule]"});
    check_refused({"quantize", in, "-o", out, "--tensors", "w2"}, {"error[safetensors.repeated]", "w2_scales"});
    check_refused({"quantize", in, "-o", out, "--format", "int3"}, {"error[command.arguments]", "int4"});
    check_refused({"quantize", in, "-o", out, "--format", "nvfp4", "--group", "32"}, {"--group: --format nvfp4 says it already"});
    check_refused({"quantize", in, "-o", out, "--group", "32"}, {"error[command.arguments]", "--per group"});
    check_refused({"quantize", in, "-o", out, "--percentile", "99"}, {"error[command.arguments]", "--scale percentile"});
    check_refused({"quantize", in, "-o", out, "--simulate", "--transpose"}, {"error[command.arguments]"});
    check_refused({"quantize", in, "-o", out, "--per", "group", "--group", "99999999999999999999"}, {"a whole number of 64 bits"});
    check_refused({"quantize", folder.path() / "none", "-o", out}, {"error[safetensors.file]"});
    CHECK(!std::filesystem::exists(out));
}

TEST_CASE("quantize chooses tensors by patterns") {
    CHECK(matches_pattern("layer.0.w", "*.w"));
    CHECK(matches_pattern("layer.0.w", "l*0?w"));
    CHECK(matches_pattern("", "*"));
    CHECK(!matches_pattern("layer.0.w", "layer"));
    CHECK(!matches_pattern("layer.0.w", "*.0"));
    CHECK(matches_pattern("layer.12.w", "re:layer\\.[0-9]+\\.w"));
    CHECK(!matches_pattern("layer.12.wx", "re:layer\\.[0-9]+\\.w"));
    CHECK(matches_pattern(std::string(100000, 'a'), "re:.*"));
    CHECK(!matches_pattern(std::string(40, 'a'), "re:(a*)*b"));
}

}  // namespace tessera::test_quantize
