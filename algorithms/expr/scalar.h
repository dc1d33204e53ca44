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

// To the nearest value, in the middle to the one whose last bit is 0; or to the next one toward zero, plus or minus infinity.
enum class Rounding : uint8_t { nearest_even, toward_zero, up, down };
constexpr Rounding roundings[] = {Rounding::nearest_even, Rounding::toward_zero, Rounding::up, Rounding::down};
const char *name_of(Rounding rounding);  // "nearest_even", "toward_zero", "up", "down"

// The operation on values of one common arithmetic type (select: bool first).
Scalar apply(Op op, const Scalar *operands);
// The conversion, with one rounding. Float to integer rounds first, then saturates if asked. Without saturation a value outside the
// target range gives an unspecified value of the type (never a trap); here it is the lowest value.
//
// To a float, what lies beyond the largest finite number and does not round to it becomes that number with saturation, else an infinity,
// or NaN in a format without one; in a format without NaN it is that number always, and NaN is -0. Saturation takes infinities along; NaN
// stays. A format without -0 gives 0; one without zero and sign (f8e8m0fnu) gives NaN for what is not positive, its least number for what
// is positive and less, and rounds a middle up, as the significands beside it are odd. To nearest even without saturation these are
// ml_dtypes's results, but for f8e8m0fnu between 2^-127 and 1.5 * 2^-127, where ml_dtypes 0.6.0 takes the farther number.
Scalar convert(DType type, Rounding rounding, bool saturate, const Scalar &value);
// The same bits read as another type of the same size (f32 <-> i32, f64 <-> i64, u8 <-> a type that is held as a code).
Scalar bitcast(DType type, const Scalar &value);

// The number of a code, for any format of up to 16 bits, and a number that the format has as its code.
double decoded(const DTypeTraits &format, uint32_t code);
uint32_t encoded(const DTypeTraits &format, double value);
double highest_finite(const DTypeTraits &format);

Scalar load_scalar(DType type, const void *address);
void store_scalar(void *address, const Scalar &value);
// What store_scalar writes, as a number.
uint64_t stored_bits(const Scalar &value);

}  // namespace tessera
