#include "algorithms/expr/dtype.h"

#include <catch2/catch.hpp>

#include "support/text/error.h"

namespace tessera::test_dtype {

TEST_CASE("dtype: names, sizes and kinds") {
    struct Row {
        DType type;
        const char *name;
        int bytes;
        bool is_float, is_integer, is_arithmetic;
    };
    for (const Row &r : {Row{DType::f32, "f32", 4, true, false, true},
                         {DType::f64, "f64", 8, true, false, true},
                         {DType::bf16, "bf16", 2, true, false, false},
                         {DType::f16, "f16", 2, true, false, false},
                         {DType::i8, "i8", 1, false, true, false},
                         {DType::u8, "u8", 1, false, true, false},
                         {DType::i32, "i32", 4, false, true, true},
                         {DType::i64, "i64", 8, false, true, true},
                         {DType::boolean, "bool", 1, false, false, true},
                         {DType::f8e4m3fn, "f8e4m3fn", 1, true, false, false},
                         {DType::f8e8m0fnu, "f8e8m0fnu", 1, true, false, false},
                         {DType::f6e3m2fn, "f6e3m2fn", 1, true, false, false},
                         {DType::f4e2m1fn, "f4e2m1fn", 1, true, false, false},
                         {DType::i4, "i4", 1, false, true, false}}) {
        CHECK(std::string(name_of(r.type)) == r.name);
        CHECK(dtype_named(r.name) == r.type);
        CHECK(size_of(r.type) == r.bytes);
        CHECK(is_float(r.type) == r.is_float);
        CHECK(is_integer(r.type) == r.is_integer);
        CHECK(is_arithmetic(r.type) == r.is_arithmetic);
    }
}

TEST_CASE("dtype: an index is an arithmetic integer without a size") {
    CHECK(dtype_named(name_of(DType::index)) == DType::index);
    CHECK(is_integer(DType::index));
    CHECK(is_arithmetic(DType::index));
    CHECK_THROWS_AS(size_of(DType::index), InternalError);
}

TEST_CASE("dtype: ranges and formats are those of the machine's types") {
    CHECK((traits_of(DType::f32).mantissa == 23 && traits_of(DType::f64).mantissa == 52));
    for (const DTypeTraits &t : dtypes)
        if (t.kind == DTypeKind::real) {
            const int bits = t.is_signed + t.exponent + t.mantissa;
            CHECK(bits == (t.in_half_bytes ? 4 : t.type == DType::f6e2m3fn || t.type == DType::f6e3m2fn ? 6 : 8 * t.bytes));
        } else if (t.kind == DTypeKind::integer) {
            const int bits = t.in_half_bytes ? 4 : 8 * t.bytes;
            CHECK(static_cast<uint64_t>(t.highest) - static_cast<uint64_t>(t.lowest) == UINT64_MAX >> (64 - bits));
        }
    CHECK(highest_real(DType::i32) == 2147483647.0);
    CHECK(highest_real(DType::i64) == 9223372036854774784.0);
    CHECK((is_narrow_float(DType::bf16) && is_narrow_float(DType::f16) && !is_narrow_float(DType::f32) && !is_narrow_float(DType::i8)));
}

TEST_CASE("dtype: an unknown name lists the known ones") {
    CHECK_THROWS_WITH(
        dtype_named("fp32"),
        "error[dtype.unknown]: there is no element type 'fp32'; the types are f32, f64, "
        "bf16, f16, i8, u8, i32, i64, bool, f8e4m3fn, f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f6e2m3fn, f6e3m2fn, f4e2m1fn, i4, "
        "u4, index. Did you mean 'f32'?");
    CHECK_THROWS_WITH(dtype_named("complex"), Catch::EndsWith("u4, index."));
    CHECK_THROWS_AS(dtype_named(""), UserError);
}

}  // namespace tessera::test_dtype
