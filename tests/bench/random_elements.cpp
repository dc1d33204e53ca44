#include "bench/measure/random_elements.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>
#include <vector>

#include "bench/measure/inputs.h"

namespace tessera::test_random_elements {

static std::vector<unsigned char> made(RandomKind kind, uint64_t seed, int64_t first, int64_t count) {
    std::vector<unsigned char> bytes(static_cast<size_t>(count * random_element_bytes(kind)));
    random_elements(kind, seed, first, count, bytes.data());
    return bytes;
}

TEST_CASE("random elements are those of the whole, whatever part is made") {
    constexpr int64_t all = 9000;
    for (int k = 0; k < RANDOM_KINDS; k++) {
        const auto kind = static_cast<RandomKind>(k);
        const auto whole = made(kind, 5, 0, all);
        const auto bytes = random_element_bytes(kind);
        for (const auto &[first, count] :
             std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 3}, {511, 2}, {777, 4096}, {2047, 6000}, {8999, 1}, {13, 0}}) {
            const auto part = made(kind, 5, first, count);
            CHECK(std::equal(part.begin(), part.end(), whole.begin() + first * bytes));
        }
        CHECK(made(kind, 6, 0, all) != whole);
    }
}

static std::vector<double> values(DType type, RandomKind kind, int64_t count) {
    Array array(type, {count});
    random_elements(kind, 11, 0, count, array.data.data());
    return array.values();
}

// The meaning of tests stands on it: floats fill the interval with all of their bits, and integers the range.
TEST_CASE("random floats are uniform in [-1, 1) and rounded to their type, and integers are small") {
    constexpr int64_t count = 100000;
    const std::vector<double> f32 = values(DType::f32, RANDOM_F32, count);
    for (const auto &[type, kind] :
         {std::pair{DType::f64, RANDOM_F64}, {DType::f32, RANDOM_F32}, {DType::bf16, RANDOM_BF16}, {DType::f16, RANDOM_F16}}) {
        INFO(name_of(type));
        const std::vector<double> all = values(type, kind, count);
        double sum = 0, squares = 0;
        size_t same = 0;
        for (size_t i = 0; i < all.size(); i++) {
            sum += all[i], squares += all[i] * all[i];
            REQUIRE((all[i] >= -1 && all[i] <= 1));
            same += all[i] == Scalar::of_real(type, type == DType::f64 ? all[i] : f32[i]).real;
        }
        CHECK(std::abs(sum / count) < 0.01);
        CHECK(std::abs(squares / count - 1.0 / 3) < 0.01);
        CHECK(same == all.size());
    }
    for (const auto &[type, kind] : {std::pair{DType::f8e4m3fn, RANDOM_F8_3_7},
                                     {DType::f8e4m3, RANDOM_F8_3_7},
                                     {DType::f8e4m3fnuz, RANDOM_F8_3_8},
                                     {DType::f8e5m2, RANDOM_F8_2_15},
                                     {DType::f8e5m2fnuz, RANDOM_F8_2_16}}) {
        INFO(name_of(type));
        double sum = 0, squares = 0;
        for (const double v : values(type, kind, count)) {
            sum += v, squares += v * v;
            REQUIRE((v >= -1 && v <= 1 && !(v == 0 && std::signbit(v))));
        }
        CHECK(std::abs(sum / count) < 0.01);
        CHECK(std::abs(squares / count - 1.0 / 3) < 0.02);
    }
    for (const double v : values(DType::f8e8m0fnu, RANDOM_SCALE, count)) REQUIRE((v >= 0x1p-7 && v <= 1));
    std::set<double> bits;
    for (const double v : values(DType::f64, RANDOM_F64, count)) bits.insert(v * 0x1p53 - std::floor(v * 0x1p29) * 0x1p24);
    CHECK(bits.size() > 0.99 * count);  // the low bits are random too
    for (const auto &[type, kind] :
         {std::pair{DType::i8, RANDOM_I8}, {DType::u8, RANDOM_I8}, {DType::i32, RANDOM_I32}, {DType::i64, RANDOM_I64}}) {
        const std::vector<double> all = values(type, kind, count);
        CHECK(std::set<double>(all.begin(), all.end()) == std::set<double>{0, 1, 2, 3, 4, 5, 6, 7});
    }
    const std::vector<double> truths = values(DType::boolean, RANDOM_BOOL, count);
    CHECK(std::set<double>(truths.begin(), truths.end()) == std::set<double>{0, 1});
}

TEST_CASE("random numbers are those of SplitMix64") {
    // Java's SplittableRandom and many others give these for the seed 1234567.
    CHECK(random_number(1234567, 0) == 6457827717110365317u);
    CHECK(random_number(1234567, 1) == 3203168211198807973u);
    RandomNumbers numbers(1234567);
    CHECK(numbers.next() == 6457827717110365317u);
    CHECK(numbers.next() == 3203168211198807973u);
}

TEST_CASE("parts of planned inputs are parts of random inputs") {
    Array whole(DType::f32, {100, 7});
    const InputTensor plain{DType::f32, {100, 7}, 3, {}};
    plain.make(0, 700, whole.data.data());
    Array part(DType::f32, {50});
    plain.make(333, 50, part.data.data());
    CHECK(part.get(17) == whole.get(350));
    const InputTensor given{DType::f32, {100, 7}, 3, part};
    Array again(DType::f32, {10});
    given.make(20, 10, again.data.data());
    CHECK(again.get(3) == part.get(23));
}

}  // namespace tessera::test_random_elements
