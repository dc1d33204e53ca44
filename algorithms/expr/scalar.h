// One typed value, and the exact meaning of every operation on it (op.h). The constant folder, both interpreters and the tests
// share these functions, and emitted code must give the same bits (any NaN counts as equal to any other NaN:
// its sign and payload are unspecified, and so is an integer that is a bitcast of it).
#pragma once
#include <vector>

#include "algorithms/expr/op.h"

namespace tessera {

struct Scalar {
    DType type = DType::index;
    double real = 0;      // the value of a float type, exactly representable in it
    int64_t integer = 0;  // the value of every other type

    static Scalar of_real(DType type, double value);      // rounded to `type`
    static Scalar of_integer(DType type, int64_t value);  // wrapped to `type`
    bool truth() const { return integer != 0; }
    friend bool operator==(const Scalar &, const Scalar &);  // same type and same bits, NaN equal to NaN
};

enum class Rounding : uint8_t { nearest_even, toward_zero };

// The operation on values of one common arithmetic type (select: bool first).
Scalar apply(Op op, const Scalar *operands);
// The conversion; float to integer rounds first, then saturates if asked. Without saturation a value outside the
// target range gives an unspecified value of the type (never a trap); here it is the lowest value.
Scalar convert(DType type, Rounding rounding, bool saturate, const Scalar &value);
// The same bits read as another type of the same size (f32 <-> i32, f64 <-> i64).
Scalar bitcast(DType type, const Scalar &value);

Scalar load_scalar(DType type, const void *address);
void store_scalar(void *address, const Scalar &value);

}  // namespace tessera
