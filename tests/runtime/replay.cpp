/// Runs that a bundle recorded: what they are made of, what they say, what is refused.
#include "runtime/bundle/replay.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "runtime/bundle/random_values.h"
#include "runtime/bundle/stored_tensor.h"
#include "runtime/bundle/stored_value.h"
#include "tests/runtime/bundle_writer.h"

namespace tessera::test_replay {

using namespace tessera::test;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

struct Format {
    int32_t dtype;
    int exponent, fraction, bias;
    bool has_no_negative_zero;
};
constexpr Format formats[] = {{TESS_F16, 5, 10, 15, false},      {TESS_BF16, 8, 7, 127, false},    {TESS_F8E4M3, 4, 3, 7, false},
                              {TESS_F8E4M3FN, 4, 3, 7, false},   {TESS_F8E4M3FNUZ, 4, 3, 8, true}, {TESS_F8E5M2, 5, 2, 15, false},
                              {TESS_F8E5M2FNUZ, 5, 2, 16, true}, {TESS_F6E2M3FN, 2, 3, 1, false},  {TESS_F6E3M2FN, 3, 2, 3, false},
                              {TESS_F4E2M1FN, 2, 1, 1, false}};

double decoded(uint32_t bits, const Format &f) {
    const uint32_t fraction = bits & ((1U << f.fraction) - 1), exponent = bits >> f.fraction & ((1U << f.exponent) - 1);
    const double magnitude = exponent ? std::ldexp(1 + std::ldexp(fraction, -f.fraction), int(exponent) - f.bias)
                                      : std::ldexp(fraction, 1 - f.bias - f.fraction);
    return bits >> (f.fraction + f.exponent) ? -magnitude : magnitude;
}

// The number of the word of an element.
double number_of(uint64_t element, uint64_t seed, uint32_t argument, uint32_t step) {
    const uint32_t counter[4] = {static_cast<uint32_t>(element / 4), static_cast<uint32_t>(element / 4 >> 32), argument, step};
    const uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    uint32_t words[4];
    tess_philox(counter, key, words);
    return std::ldexp(words[element % 4] >> 8, -23) - 1;
}

struct Outcome {
    int32_t status;
    std::string error;
    std::vector<std::string> outputs;
};

Outcome replayed(const OpenBundle &open, const std::string &record, const std::string &inputs = "") {
    Outcome outcome;
    TessBundleError error{};
    const auto report = [](void *state, const TessReplayOutput *output) {
        static const char *const words[] = {"equal", "different", "new"};
        static_cast<std::vector<std::string> *>(state)->push_back(std::to_string(output->run) + " " + output->kernel + "." +
                                                                  output->argument + " " + output->target + " " + words[output->outcome]);
        CHECK(std::string(output->got).starts_with("sha256:"));
    };
    outcome.status = tess_bundle_replay_record(open.bundle, record.data(), record.size(), inputs.empty() ? nullptr : inputs.data(),
                                               inputs.size(), nullptr, report, &outcome.outputs, &error);
    outcome.error = error.text;
    return outcome;
}

const std::string two_as_float("\0\0\0\x40", 4);

Json sound_run(const std::string &bits = sha256("base"), const std::string &hash = sha256(two_as_float)) {
    return {{"kernel", "toy"},
            {"extents", Json::object()},
            {"inputs", Json::array()},
            {"parameters", Json::array()},
            {"outputs", Json::array({Json{{"argument", "toy"}, {"bits", bits}, {"sha256", hash}}})}};
}

std::string record_of(const std::vector<Json> &runs) { return Json{{"format", "tessera-replay"}, {"version", 1}, {"runs", runs}}.dump(); }

}  // namespace

TEST_CASE("Philox gives the words of Random123", "[replay]") {
    uint32_t words[4];
    const uint32_t zeros[4] = {}, ones[4] = {~0U, ~0U, ~0U, ~0U}, pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   key[2] = {0xa4093822, 0x299f31d0};
    tess_philox(zeros, zeros, words);
    CHECK((words[0] == 0x6627e8d5 && words[1] == 0xe169c58d && words[2] == 0xbc57ac4c && words[3] == 0x9b00dbd8));
    tess_philox(ones, ones, words);
    CHECK((words[0] == 0x408f276d && words[1] == 0x41c83b0e && words[2] == 0xa20bc7c6 && words[3] == 0x6d5451fd));
    tess_philox(pi, key, words);
    CHECK((words[0] == 0xd16cfe09 && words[1] == 0x94fdcceb && words[2] == 0x5001e420 && words[3] == 0x24126ea1));
}

TEST_CASE("Values of a seed are numbers of -1 to 1, rounded to the nearest of their type", "[replay]") {
    constexpr uint64_t count = 3000, seed = 0x123456789abcdef0;
    std::vector<float> f32(count);
    std::vector<double> f64(count);
    REQUIRE(tess_random_values(f32.data(), TESS_F32, count, 10, seed, 3, 5) == 1);
    REQUIRE(tess_random_values(f64.data(), TESS_F64, count, 10, seed, 3, 5) == 1);
    double least = 1, most = -1;
    for (uint64_t i = 0; i < count; i++) {
        REQUIRE(double(f32[i]) == number_of(i, seed, 3, 5));
        REQUIRE(f64[i] == number_of(i, seed, 3, 5));
        least = std::min(least, f64[i]), most = std::max(most, f64[i]);
    }
    CHECK((least >= -1 && least < -0.99 && most < 1 && most > 0.99));
    for (const Format &f : formats) {
        const int bits = 1 + f.exponent + f.fraction;
        INFO(f.dtype);
        std::vector<unsigned char> bytes(2 * count);
        REQUIRE(tess_random_values(bytes.data(), f.dtype, count, 10, seed, 3, 5) == 1);
        for (uint64_t i = 0; i<count; i += bits> 8 ? 50 : 1) {
            const uint32_t code = bits == 16  ? bytes[2 * i] | uint32_t(bytes[2 * i + 1]) << 8
                                  : bits == 4 ? bytes[i / 2] >> 4 * (i % 2) & 15
                                              : bytes[i];
            const double distance = std::abs(decoded(code, f) - f64[i]);
            for (uint32_t other = 0; other < 1U << bits; other++) {
                if (f.has_no_negative_zero && other == 1U << (bits - 1)) continue;
                const double d = std::abs(decoded(other, f) - f64[i]);
                if (!(d >= distance && (d > distance || other == code || code % 2 == 0))) {
                    CAPTURE(i, f64[i], code, other);
                    FAIL("not the nearest");
                }
            }
            if (f.has_no_negative_zero) REQUIRE(code != 1U << (bits - 1));
        }
    }
}

TEST_CASE("Integers of a seed are low bits of its words, and half bytes begin a row at a byte", "[replay]") {
    std::vector<int32_t> i32(6);
    std::vector<int64_t> i64(6);
    std::vector<unsigned char> i8(6), booleans(6), i4(4, 0xff);
    const auto fill = [](void *data, int32_t dtype) { REQUIRE(tess_random_values(data, dtype, 6, 3, 7, 0, 0) == 1); };
    fill(i32.data(), TESS_I32), fill(i64.data(), TESS_I64), fill(i8.data(), TESS_I8), fill(booleans.data(), TESS_BOOL),
        fill(i4.data(), TESS_I4);
    for (size_t i = 0; i < 6; i++) {
        const auto word = static_cast<uint32_t>(i32[i]);
        CHECK(i64[i] == int64_t(word));
        CHECK(i8[i] == (word & 255));
        CHECK(booleans[i] == (word & 1));
        const size_t at = i / 3 * 4 + i % 3;
        CHECK((i4[at / 2] >> 4 * (at % 2) & 15) == int(word & 15));
    }
    CHECK((i4[1] >> 4 == 0 && i4[3] >> 4 == 0));
    CHECK(tess_random_values(i4.data(), TESS_F8E8M0FNU, 1, 1, 0, 0, 0) == 0);
    CHECK(tess_random_values(i4.data(), 77, 1, 1, 0, 0, 0) == 0);
}

TEST_CASE("Values of parameters are exact or refused", "[replay]") {
    const auto read = [](const char *text, auto like, int32_t dtype) {
        decltype(like) value{};
        return tess_stored_value(text, dtype, reinterpret_cast<unsigned char *>(&value)) ? std::optional(value) : std::nullopt;
    };
    CHECK(read("0x1.4f8b58p-17", 0.0F, TESS_F32) == 0x1.4f8b58p-17F);
    CHECK(read("-0x1p-149", 0.0F, TESS_F32) == -0x1p-149F);
    CHECK(read("0x0p+0", 0.0F, TESS_F32) == 0.0F);
    CHECK(read("0x1.fffffffffffffp+1023", 0.0, TESS_F64) == 0x1.fffffffffffffp+1023);
    CHECK(read("0x0.0000000000001p-1022", 0.0, TESS_F64) == 0x0.0000000000001p-1022);
    CHECK(read("-inf", 0.0F, TESS_F32) == -INFINITY);
    CHECK(std::isnan(read("nan", 0.0F, TESS_F32).value()));
    for (const char *none : {"", "1.5", "0x", "0x.p1", "0x1", "0x1p", "0x1p+", "0x1.8.8p1", "0x1p1x", "0x1.0000001p0", "0x1p128",
                             "0x1p-150", "0x1p99999999999", "+0x1p1"})
        CHECK(read(none, 0.0F, TESS_F32) == std::nullopt);
    for (const char *none : {"0x1p1024", "0x1p-1075", "0x3fffffffffffff8p0", "0x1.00000000000001p0"})
        CHECK(read(none, 0.0, TESS_F64) == std::nullopt);
    CHECK(read("-128", int8_t{}, TESS_I8) == int8_t{-128});
    CHECK(read("9223372036854775807", int64_t{}, TESS_I64) == INT64_MAX);
    CHECK(read("-9223372036854775808", int64_t{}, TESS_I64) == INT64_MIN);
    CHECK(read("1", uint8_t{}, TESS_BOOL) == uint8_t{1});
    for (const char *none : {"128", "-129", "", "-", "1.0", "0x1", " 1", "99999999999999999999"})
        CHECK(read(none, int8_t{}, TESS_I8) == std::nullopt);
    CHECK(read("2", uint8_t{}, TESS_BOOL) == std::nullopt);
    CHECK(read("-1", uint8_t{}, TESS_U8) == std::nullopt);
    CHECK(read("1", uint16_t{}, TESS_F16) == std::nullopt);
}

TEST_CASE("A stored tensor is found by name, type and extents, in whatever file", "[replay]") {
    std::string file, header = weights_header;
    put_number(file, static_cast<uint64_t>(header.size()));
    file += header + std::string(29, 'x');
    const int64_t a[] = {2, 3}, b[] = {5}, other[] = {6};
    const auto found = [](const std::string &bytes, const char *name, TessDType type, int32_t rank, const int64_t *extents) {
        const std::vector<unsigned char> own(bytes.begin(), bytes.end());
        const TessTensor like = tess_dense(nullptr, type, rank, extents);
        const unsigned char *at = tess_stored_tensor(own.data(), own.size(), name, &like);
        return at ? static_cast<int64_t>(at - own.data()) : -1;
    };
    CHECK(found(file, "a", TESS_F32, 2, a) == int64_t(8 + header.size()));
    CHECK(found(file, "b", TESS_I8, 1, b) == int64_t(8 + header.size() + 24));
    CHECK(found(file, "a", TESS_I32, 2, a) == -1);
    CHECK(found(file, "a", TESS_F32, 1, a) == -1);
    CHECK(found(file, "a", TESS_F32, 1, other) == -1);
    CHECK(found(file, "c", TESS_F32, 2, a) == -1);
    for (size_t cut = 0; cut < file.size(); cut++) {
        const int64_t at = found(file.substr(0, cut), "b", TESS_I8, 1, b);
        REQUIRE(at == -1);
    }
    std::mt19937 random(4);
    for (int i = 0; i < 3000; i++) {
        std::string damaged = file;
        for (int n = 0; n < 3; n++) damaged[random() % damaged.size()] = static_cast<char>(random());
        const int64_t at = found(damaged, "a", TESS_F32, 2, a);
        REQUIRE((at == -1 || (at >= 8 && at + 24 <= int64_t(damaged.size()))));
    }
}

TEST_CASE("What is recorded is run, and its hashes are compared", "[replay]") {
    const OpenBundle open(sound_bundle().bytes());
    REQUIRE(open.status == TESS_OK);
    const Outcome outcome = replayed(open, record_of({sound_run(), sound_run(sha256("base"), sha256("x")), sound_run(sha256("never"))}));
    INFO(outcome.error);
    CHECK(outcome.status == TESS_OK);
    CHECK(outcome.outputs == std::vector<std::string>{"0 toy.toy base equal", "1 toy.toy base different", "2 toy.toy base new"});
    TessBundleError error;
    CHECK(tess_bundle_replay(open.bundle, nullptr, nullptr, nullptr, &error) == TESS_NO_SUCH);
    CHECK_THAT(error.text, Contains("bundle 'sound': expected a record of runs, got none"));
    // From the bundle itself.
    WrittenBundle written = sound_bundle();
    written.manifest["replay"] = "replay/expected.json";
    written.members.insert(written.members.end() - 1, {"replay/expected.json", record_of({sound_run()}), 0, 0});  // before the assets
    const OpenBundle with(written.bytes());
    INFO(with.said());
    REQUIRE(with.status == TESS_OK);
    int equal = 0;
    CHECK(tess_bundle_replay(
              with.bundle, nullptr,
              [](void *state, const TessReplayOutput *output) { *static_cast<int *>(state) += output->outcome == TESS_REPLAY_EQUAL; },
              &equal, &error) == TESS_OK);
    CHECK(equal == 1);
}

TEST_CASE("A record that cannot be run is refused in words", "[replay]") {
    const OpenBundle open(sound_bundle().bytes());
    REQUIRE(open.status == TESS_OK);
    const auto says = [&](const std::function<void(Json &)> &change, const std::string &part) {
        Json run = sound_run();
        change(run);
        const Outcome outcome = replayed(open, record_of({run}));
        CHECK(outcome.status != TESS_OK);
        CHECK_THAT(outcome.error, Contains(part));
    };
    says([](Json &r) { r["kernel"] = "none"; }, "expected one of its 3 kernels");
    says([](Json &r) { r["extents"]["M"] = 3; },
         "replay/expected.json, run 0: kernel 'toy': expected extents of its dims that are not fixed");
    says(
        [](Json &r) {
            r["inputs"].push_back({{"argument", "x"}, {"seed", 1}, {"step", 0}});
        },
        "expected inputs that are no weights, each once, got 'x'");
    says(
        [](Json &r) {
            r["inputs"].push_back({{"argument", "toy"}, {"tensor", "t"}});
        },
        "expected inputs that are no weights, each once, got 'toy'");
    says(
        [](Json &r) {
            r["parameters"].push_back({{"name", "eps"}, {"value", "0x1p0"}});
        },
        "expected its parameters, each once, got 'eps'");
    says([](Json &r) { r["outputs"][0]["argument"] = "z"; }, "expected its outputs and their hashes, got 'z'");
    says([](Json &r) { r["outputs"][0]["sha256"] = "12"; }, "expected its outputs and their hashes");
    says([](Json &r) { r.erase("inputs"); }, "replay/expected.json: expected the field 'inputs'");
    says([](Json &r) { r["more"] = 1; }, "expected the end of an object with the known fields");
    CHECK_THAT(replayed(open, "{}").error, Contains("expected the field 'format'"));
    CHECK_THAT(replayed(open, R"({"format":"tessera-replay","version":2,"runs":[]})").error, Contains("expected version 1"));
    const std::string record = record_of({sound_run(), sound_run()});
    for (size_t cut = 0; cut < record.size(); cut++) REQUIRE(replayed(open, record.substr(0, cut)).status != TESS_OK);
    std::mt19937 random(9);
    for (int i = 0; i < 3000; i++) {
        std::string damaged = record;
        for (unsigned n = 1 + random() % 3; n > 0; n--) damaged[random() % damaged.size()] = "{}[]\",:0a\\-"[random() % 11];
        (void)replayed(open, damaged);
    }
}

}  // namespace tessera::test_replay
