#include "runtime/abi/decimal.h"

#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <random>
#include <string>

namespace tessera::test_decimal {

std::string text_of(float value) {
    char text[TESS_DECIMAL_BYTES];
    tess_abi2_decimal(std::bit_cast<uint32_t>(value), 0, text);
    return text;
}

std::string text_of(double value) {
    char text[TESS_DECIMAL_BYTES];
    tess_abi2_decimal(std::bit_cast<uint64_t>(value), 1, text);
    return text;
}

size_t digits_in(const std::string &text) {
    const std::string digits = text.substr(0, text.find('e'));
    const size_t first = digits.find_first_of("123456789"), last = digits.find_last_of("123456789");
    size_t n = 0;
    for (size_t i = first; i <= last; ++i) n += digits[i] != '.';
    return n;
}

TEST_CASE("floats in words") {
    CHECK(text_of(0.1F) == "0.1");
    CHECK(text_of(0.1) == "0.1");
    CHECK(text_of(-0.0F) == "-0");
    CHECK(text_of(1.5F) == "1.5");
    CHECK(text_of(16777216.0F) == "16777216");
    CHECK(text_of(1e-12F) == "1e-12");
    CHECK(text_of(3.4028234664e38F) == "3.4028235e+38");
    CHECK(text_of(5e-324) == "5e-324");
    CHECK(text_of(1.7976931348623157e308) == "1.7976931348623157e+308");
    CHECK(text_of(-INFINITY) == "-inf");
    CHECK(text_of(std::copysign(double(NAN), -1.0)) == "nan");
}

template <typename Float, typename Bits>
void reads_back(Bits bits) {
    const auto value = std::bit_cast<Float>(bits);
    if (std::isnan(value)) return;
    const std::string text = text_of(value);
    Float read = 0;
    if (std::isinf(value)) return;
    REQUIRE(std::from_chars(text.data(), text.data() + text.size(), read).ptr == text.data() + text.size());
    REQUIRE(std::bit_cast<Bits>(read) == bits);
    char shortest[40];
    const auto end = std::to_chars(shortest, shortest + sizeof shortest, value, std::chars_format::scientific).ptr;
    if (value != 0) REQUIRE(digits_in(text) == digits_in(std::string(shortest, end)));
}

TEST_CASE("the shortest text reads back as the float") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) reads_back<float>(static_cast<uint32_t>(random()));
    for (int i = 0; i < 2000; ++i) reads_back<double>(random());
    for (uint32_t exponent = 0; exponent < 255; ++exponent)
        for (int step = -1; step <= 1; ++step) reads_back<float>((exponent << 23) + uint32_t(step));
    for (uint64_t exponent = 1; exponent < 2047; exponent += 5)
        for (int step = -1; step <= 1; ++step) reads_back<double>((exponent << 52) + uint64_t(int64_t(step)));
}

}  // namespace tessera::test_decimal
