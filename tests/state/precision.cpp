// The scale of a loss and the choice between two policies, with overflows that are planted: against a training whose gradients are known.
#include "runtime/state/precision.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/state/checkpoint.h"
#include "tests/state/memory.h"

namespace tessera::test_state {

namespace {

// Gradients of f16 that are infinite where the scaled magnitude is beyond its range.
struct Training {
    TessPrecisionConfig config = tess_precision_config();
    TessPrecision p = {};

    explicit Training(TessPrecisionConfig asked) : config(asked) {
        config.range = 65504;
        TessStateError error = {};
        REQUIRE(tess_precision_start(&config, &p, &error) == TESS_STATE_OK);
    }
    // A step whose gradients are so large without a scale.
    bool step(double largest) {
        const bool overflows = !p.is_wide && largest * tess_precision_scale(&p) > config.range;
        return tess_precision_step(&config, &p, overflows ? INFINITY : largest) != 0;
    }
};

TessPrecisionConfig quick() {
    TessPrecisionConfig config = tess_precision_config();
    config.first = 4, config.patience = 3, config.grow = 10, config.stay = 5;
    return config;
}

}  // namespace

TEST_CASE("precision: the scale grows while gradients fit, and halves where they do not") {
    Training t(quick());
    for (int i = 0; i < 10; i++) CHECK(t.step(1));
    CHECK(tess_precision_scale(&t.p) == 32);
    CHECK(!t.step(4000));  // 128,000
    CHECK(tess_precision_scale(&t.p) == 16);
    CHECK(t.step(4000));
    CHECK(!t.step(NAN));
    CHECK(tess_precision_scale(&t.p) == 8);
    CHECK((t.p.updates == 11 && t.p.skipped == 2 && t.p.overflows == 2 && !t.p.is_wide));
    for (int i = 0; i < 300; i++) t.step(1e-3);
    CHECK(t.p.exponent == t.config.most);
}

TEST_CASE("precision: overflows again and again bring in the wide policy, which stays the longer the sooner they come back") {
    Training t(quick());
    int64_t expected = 5;
    for (int round = 0; round < 4; round++, expected *= 2) {
        for (int i = 0; i < 3; i++) {
            CHECK(!t.p.is_wide);
            CHECK(!t.step(1e6));  // at no scale
        }
        CHECK(t.p.is_wide);
        CHECK(tess_precision_scale(&t.p) == 1);
        for (int i = 0; i < 50; i++) CHECK(t.step(1e6));  // counts, and would not have fitted
        CHECK(t.p.is_wide);
        for (int64_t i = 0; i < expected; i++) {
            CHECK(t.p.is_wide);
            CHECK(t.step(1));
        }
    }
    CHECK(!t.p.is_wide);
    for (int i = 0; i < 10; i++) t.step(1);  // it holds: the next time is as the first
    CHECK(t.p.stay == 5);
}

TEST_CASE("precision: in the wide policy an overflow is one too") {
    Training t(quick());
    for (int i = 0; i < 3; i++) t.step(1e6);
    CHECK(!t.step(INFINITY));
    CHECK(t.p.is_wide);
    CHECK(t.p.skipped == 4);
}

TEST_CASE("precision: any gradients, any config: a law") {
    std::mt19937 draw(7);
    const auto number = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(draw); };
    for (int program = 0; program < 300; program++) {
        TessPrecisionConfig config = tess_precision_config();
        config.least = number(-10, 2), config.first = config.least + number(0, 10), config.most = config.first + number(0, 10);
        config.patience = number(1, 4), config.grow = number(1, 20), config.stay = number(1, 20);
        Training t(config);
        int64_t overflows = 0;
        int changes = 0;
        for (int i = 0; i < 400; i++) {
            const TessPrecision before = t.p;
            const double largest = number(0, 30) == 0 ? INFINITY : std::ldexp(1, number(-10, 24));
            const double scaled = largest * tess_precision_scale(&before);
            const bool counts = t.step(largest);
            CHECK(counts == (before.is_wide ? std::isfinite(largest) : scaled <= 65504));  // no update of what is not finite, no other lost
            overflows += !counts;
            CHECK((t.p.exponent >= config.least && t.p.exponent <= config.most));
            CHECK(std::abs(t.p.exponent - before.exponent) <= 1);
            if (t.p.is_wide != before.is_wide) {
                changes++;
                CHECK(counts == (before.is_wide != 0));  // in by an overflow, out by a step that fitted
            }
        }
        CHECK((t.p.skipped == overflows && t.p.updates == 400 - overflows));
        CHECK(changes <= 2 * (400 / (config.patience + config.stay)) + 2);  // it does not go back and forth
    }
}

TEST_CASE("precision: what is kept in a checkpoint goes on") {
    const Folder folder;
    const std::string file = folder.path() + "/step.safetensors";
    Training t(quick()), other(quick());
    for (int i = 0; i < 17; i++) t.step(i % 5 == 0 ? 1e6 : 10);
    static_assert(sizeof(TessPrecision) == TESS_PRECISION_FIELDS * sizeof(int64_t));
    const int64_t extents[1] = {TESS_PRECISION_FIELDS};
    TessStateHead head = {};
    TessStateError error = {};
    TessNamedTensor tensor = {"precision", tess_dense(&t.p, TESS_I64, 1, extents)};
    REQUIRE(tess_state_save(file.c_str(), &head, &tensor, 1, &error) == TESS_STATE_OK);
    tensor.tensor = tess_dense(&other.p, TESS_I64, 1, extents);
    REQUIRE(tess_state_load(file.c_str(), &head, &tensor, 1, &error) == TESS_STATE_OK);
    for (int i = 0; i < 40; i++) {
        CHECK(t.step(i % 7 == 0 ? 1e6 : 10) == other.step(i % 7 == 0 ? 1e6 : 10));
        CHECK(std::memcmp(&t.p, &other.p, sizeof t.p) == 0);
    }
}

TEST_CASE("precision: a state that no steps leave is refused by its field, and every one that steps leave is taken") {
    Training t(quick());
    TessStateError error = {};
    std::mt19937 draw(3);
    for (int i = 0; i < 500; i++) {
        t.step(draw() % 4 ? 1 : 1e6);
        REQUIRE(tess_precision_check(&t.config, &t.p, &error) == TESS_STATE_OK);
    }
    const std::pair<const char *, int64_t TessPrecision::*> fields[] = {
        {"exponent", &TessPrecision::exponent},   {"is_wide", &TessPrecision::is_wide}, {"clean", &TessPrecision::clean},
        {"overflows", &TessPrecision::overflows}, {"stay", &TessPrecision::stay},       {"updates", &TessPrecision::updates},
        {"skipped", &TessPrecision::skipped}};
    for (const auto &[name, field] : fields) {
        TessPrecision broken = t.p;
        broken.*field = -1000;
        CHECK(tess_precision_check(&t.config, &broken, &error) == TESS_STATE_ARGUMENT);
        CHECK_THAT(error.text, Catch::Contains("'" + std::string(name) + "'") && Catch::Contains("got -1000"));
    }
}

TEST_CASE("precision: what cannot be is refused") {
    TessPrecision p = {};
    const auto refused = [&](auto change, const char *words) {
        TessPrecisionConfig config = tess_precision_config();
        change(config);
        TessStateError error = {};
        CHECK(tess_precision_start(&config, &p, &error) == TESS_STATE_ARGUMENT);
        CHECK_THAT(error.text, Catch::Contains(words));
    };
    refused([](auto &c) { c.first = 25; }, "least <= first <= most <= 126, got 0, 25 and 24");
    refused([](auto &c) { c.least = -200; }, "expected -126 <= least");
    refused([](auto &c) { c.stay = 0; }, "at least 1, stay at most 1099511627776, got 4, 1000 and 0");
    refused([](auto &c) { c.stay = INT64_MAX; }, "stay at most 1099511627776, got 4, 1000 and 9223372036854775807");
    refused([](auto &c) { c.range = NAN; }, "the largest number of the narrow type, got nan");
    refused([](auto &c) { c.size = 8; }, "Begin with tess_precision_config()");
    TessStateError error = {};
    CHECK(tess_precision_start(nullptr, &p, &error) == TESS_STATE_ARGUMENT);
}

}  // namespace tessera::test_state
