#include "algorithms/expr/number.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/words.h"

namespace tessera::test_number {

using namespace tessera::test;

TEST_CASE("number: a type holds what comes back from it, and floats what they round to a number") {
    for (const DTypeTraits &traits : dtypes) {
        const DType type = traits.type;
        INFO(traits.name);
        if (is_float(type)) {
            const double most = highest_finite(traits);
            CHECK(holds(type, most));
            CHECK(holds(type, 1.000001));
            CHECK((type == DType::f64 || !holds(type, 1e300)));
            CHECK(holds(type, -1) == traits.is_signed);
            CHECK(holds(type, 0) == traits.has_zero);
            CHECK(holds(type, NAN) == std::isnan(Scalar::of_real(type, NAN).real));
            CHECK(holds(type, INFINITY) == std::isinf(Scalar::of_real(type, INFINITY).real));
            continue;
        }
        CHECK((holds(type, 0) && holds(type, 1)));
        CHECK(holds(type, -1) == (traits.lowest < 0));
        for (const double value : {0.5, 1e300, -1e300, 0x1p63, double(NAN), double(INFINITY), -double(INFINITY)})
            CHECK(!holds(type, value));
        if (type == DType::i64 || type == DType::index) continue;
        CHECK(holds(type, static_cast<double>(traits.highest)));
        CHECK(holds(type, static_cast<double>(traits.lowest)));
        CHECK(!holds(type, static_cast<double>(traits.highest) + 1));
        CHECK(!holds(type, static_cast<double>(traits.lowest) - 1));
    }
}

TEST_CASE("a constant of an expression is refused as a number beside a tile is") {
    CHECK(constant(DType::i32, 7)->value.integer == 7);
    CHECK(constant(DType::f8e8m0fnu, 0).defined());
    CHECK(std::isinf(constant(DType::f32, INFINITY)->value.real));
    check_words([] { constant(DType::i32, 0.5); },
                {"error[expr.number]: a constant: expected one that i32 holds, whole numbers from -2147483648 to 2147483647, got 0.5; "
                 "convert what it meets, as in cast(DType::f32, x), or write another number."});
    check_words([] { constant(DType::index, NAN); }, {"error[expr.number]: a constant: expected one that index holds"});
    check_words([] { constant(DType::f32, 1e39); }, {"error[expr.number]: a constant: expected one that f32 holds"});
}

}  // namespace tessera::test_number
