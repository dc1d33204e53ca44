// Random numbers: Philox's words against Random123's known answers and a plain loop, and what is drawn from them against its distribution.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera::test_random_numbers {

using Words = std::array<uint32_t, 4>;

// Figure 1 of the paper, word by word.
static Words philox(Words c, std::array<uint32_t, 2> k) {
    for (int round = 0; round < 10; round++) {
        const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
        c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1],
             static_cast<uint32_t>(a)};
        k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
    }
    return c;
}

static Words by_tiles(const Words &counter, const std::array<uint32_t, 2> &key) {
    Builder f("f");
    auto word = [&](uint32_t value) { return f.scalar(DType::i64, value); };
    const auto words = philox4x32({word(counter[0]), word(counter[1]), word(counter[2]), word(counter[3])}, {word(key[0]), word(key[1])});
    for (size_t i = 0; i < 4; i++) f.output("w" + std::to_string(i), words[i], DType::i64);
    const std::map<std::string, Array> result = evaluate(f.build(), {}, {});
    Words all;
    for (size_t i = 0; i < 4; i++) all[i] = static_cast<uint32_t>(result.at("w" + std::to_string(i)).get(0).integer);
    return all;
}

TEST_CASE("random: the words are Random123's") {
    // kat_vectors of Random123 1.14, philox4x32 with 10 rounds.
    CHECK(by_tiles({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    const uint32_t all = 0xffffffff;
    CHECK(by_tiles({all, all, all, all}, {all, all}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(by_tiles({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
    for (uint32_t i = 1; i < 40; i++) {
        const Words c{i * 0x9E3779B9u, i, ~i, i << 20};
        const std::array<uint32_t, 2> k{i * 77777u, ~i * 3u};
        CHECK(by_tiles(c, k) == philox(c, k));
    }
}

static Array drawn(const Algorithm &a, int64_t count, int64_t seed, int64_t step) {
    EvaluationOptions options;
    options.extents = {{"N", count}};
    const std::map<std::string, Scalar> parameters = {{"seed", Scalar::of_integer(DType::i64, seed)},
                                                      {"step", Scalar::of_integer(DType::i64, step)}};
    return evaluate(a, {}, parameters, options).at("y");
}

TEST_CASE("random: an element has word e mod 4 of block e / 4, whatever else is drawn") {
    const int64_t seed = -0x123456789abcdef, step = 7;
    const uint64_t bits = static_cast<uint64_t>(seed);
    const Array y = drawn(library::random_uniform({}), 23, seed, step);
    for (uint32_t e = 0; e < 23; e++) {
        const Words block = philox({e / 4, 0, 7, 0}, {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
        CHECK(y.values()[e] == (block[e % 4] >> 8) * 0x1p-24);
    }
    const Array more = drawn(library::random_uniform({}), 40, seed, step);
    for (size_t e = 0; e < 23; e++) CHECK(more.values()[e] == y.values()[e]);
    CHECK(drawn(library::random_uniform({}), 23, seed, 8).values() != y.values());
    CHECK(drawn(library::random_uniform({}), 23, seed + 1, step).values() != y.values());
    CHECK(drawn(library::random_uniform({}), 23, seed ^ (int64_t{1} << 40), step).values() != y.values());
}

// Moments of n independent numbers; 5 standard deviations of each moment.
static void check_moments(const std::vector<double> &x, double mean, double variance, double fourth) {
    const double n = static_cast<double>(x.size());
    double first = 0, second = 0, neighbours = 0;
    for (size_t i = 0; i < x.size(); i++) {
        const double d = x[i] - mean;
        first += d, second += d * d;
        if (i) neighbours += d * (x[i - 1] - mean);
    }
    CHECK(std::fabs(first / n) < 5 * std::sqrt(variance / n));
    CHECK(std::fabs(second / n - variance) < 5 * std::sqrt((fourth - variance * variance) / n));
    CHECK(std::fabs(neighbours / n) < 5 * variance / std::sqrt(n));
}

TEST_CASE("random: numbers have the moments of their distributions") {
    const std::vector<double> u = drawn(library::random_uniform({}), 40000, 1, 0).values();
    for (double v : u) CHECK((v >= 0 && v < 1));
    check_moments(u, 0.5, 1.0 / 12, 1.0 / 80);
    const std::vector<double> z = drawn(library::random_normal({}), 40000, 2, 3).values();
    for (double v : z) CHECK(std::fabs(v) < 5.78);
    check_moments(z, 0, 1, 3);
    size_t beyond = 0;
    for (double v : z) beyond += std::fabs(v) > 2;
    CHECK(std::fabs(static_cast<double>(beyond) / 40000 - 0.0455) < 5 * std::sqrt(0.0455 / 40000));
}

TEST_CASE("random: dropout keeps what it says, and drops the same of a gradient") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), dy = f.input("dy", {M, N}), p = f.parameter("p", DType::f32);
    const RandomStream stream{f.parameter("seed", DType::i64), f.scalar(DType::i64, 0), 9};
    const Algorithm a = f.output("y", dropout(f, x, stream, p)).output("dx", dropout(f, dy, stream, p)).build();
    const std::vector<double> ones(static_cast<size_t>(100 * 90), 1.0);
    auto run = [&](double p_value) {
        return evaluate(a, {{"x", Array(DType::f32, {100, 90}, ones)}, {"dy", Array(DType::f32, {100, 90}, ones)}},
                        {{"p", Scalar::of_real(DType::f32, p_value)}, {"seed", Scalar::of_integer(DType::i64, 11)}});
    };
    const auto quarter = run(0.25);
    size_t kept = 0;
    for (size_t i = 0; i < ones.size(); i++) {
        const double v = quarter.at("y").values()[i];
        CHECK((v == 0 || v == Approx(1 / 0.75)));
        CHECK(v == quarter.at("dx").values()[i]);
        kept += v != 0;
    }
    CHECK(std::fabs(static_cast<double>(kept) / 9000 - 0.75) < 5 * std::sqrt(0.75 * 0.25 / 9000));
    CHECK(run(0).at("y").values() == ones);
    CHECK(run(1).at("y").values() == std::vector<double>(ones.size(), 0.0));
}

TEST_CASE("random: what cannot be drawn from, or scaled, is said") {
    Builder f("f");
    const Dim M = f.dim("M");
    const Tile narrow = f.parameter("seed", DType::i32), step = f.parameter("step", DType::i64), p = f.parameter("p", DType::f32);
    auto words = [](const std::function<void()> &what) -> std::string {
        try {
            what();
        } catch (const UserError &e) { return e.words(); }
        return "";
    };
    CHECK(words([&] {
              uniform(f, {narrow, step, 0}, {M});
          }) ==
          "error[random.type]: a random stream's seed: expected a tile of i64 without dims, got $seed[] of i32. Declare it as a parameter "
          "of i64, or cast it.");
    CHECK_THAT(words([&] {
                   uniform(f, {step, {}, 0}, {M});
               }),
               Catch::Contains("stream's step: expected a tile of i64 without dims, got none"));
    CHECK_THAT(words([&] { dropout(f, f.input("x", {M}, DType::i32), {step, step, 0}, p); }), Catch::Contains("expected floats"));
    Numerics bf16 = numerics_named("bf16");
    CHECK(drawn(library::random_uniform(bf16), 9, 1, 0).dtype == DType::f32);
}

TEST_CASE("random: who draws says so, through calls, and a scope may suspend it") {
    const auto code_of = [](auto &&make) {
        try {
            make();
        } catch (const UserError &e) { return std::string(e.words()); }
        return std::string();
    };
    const auto drop = [](Builder &f) {
        const Dim N = f.dim("N");
        const RandomStream stream{f.parameter("seed", DType::i64), f.parameter("step", DType::i64)};
        return dropout(f, f.input("x", {N}), stream, f.scalar(DType::f32, 0.5));
    };
    Builder g("masked");
    const Algorithm masked = g.output("y", drop(g)).build();
    CHECK(masked.draws);
    CHECK(to_text(masked).find("  effects random\n") != std::string::npos);
    CHECK(algorithm_from_json(to_json(masked)).draws);
    const auto call = [&](Builder &f) {
        const Dim M = f.dim("M");
        const Tile x = f.input("outer", {M}), one = f.scalar(DType::i64, 1);
        return f.call("inner", masked, {x}, {{"seed", one}, {"step", one}})[0];
    };
    Builder f("caller");
    Algorithm caller = f.output("z", call(f)).build();
    CHECK(caller.draws);
    CHECK(effects_of(inline_calls(caller)) == std::vector{Effect::random});
    caller.draws = false;
    CHECK(code_of([&] { verify(caller); }).find("caller.inner: its callee masked draws random numbers") != std::string::npos);

    Builder pure("pure");
    const Dim K = pure.dim("K");
    const Tile s = pure.state("s", {K}), x = pure.input("given", {K});
    {
        const auto none = pure.suspend({Effect::memory, Effect::random});
        CHECK(code_of([&] { call(pure); }).find("error[effects.suspended]: pure.inner: it calls masked, which has the effect 'random'") ==
              0);
        const Builder::Scope scope = pure.scope("head");
        CHECK(code_of([&] { drop(pure); }).find("error[effects.suspended]: pure.head: it draws random numbers") == 0);
        CHECK(code_of([&] { pure.update("store", s, {pure.index(K)}, x); }).find("error[effects.suspended]: pure.store: it updates") == 0);
        const auto again = pure.suspend({});
    }
    pure.update("store", s, {pure.index(K)}, x);
    CHECK(effects_of(pure.output("y", x * 2.0).build()) == std::vector{Effect::memory});
}

}  // namespace tessera::test_random_numbers
