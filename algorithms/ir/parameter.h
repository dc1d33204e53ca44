// A scalar argument of an algorithm, and the values that a call may give it.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "algorithms/expr/scalar.h"

namespace tessera {

// A declared range holds finite numbers only: no NaN and no infinity. Both ends are always numbers of the parameter's type; an end that
// nobody wrote is the type's last finite number. Ends of integers are never open: above 0 is at least 1.
struct ParameterRange {
    Scalar least, most;
    bool above = false, below = false;  // `least`, `most` are outside
    bool has_least() const;             // whether the end says more than the type
    bool has_most() const;
    bool contains(const Scalar &value) const;
    bool contains(const ParameterRange &other) const;
    Scalar nearest(const Scalar &value) const;  // the value of the range that is nearest to a finite number of its type
    friend bool operator==(const ParameterRange &, const ParameterRange &) = default;
};

struct Parameter {
    std::string name;
    DType dtype = DType::f32;
    std::optional<ParameterRange> range = {};  // none: any value of the type, also NaN
    friend bool operator==(const Parameter &, const Parameter &) = default;
};

// How a range is written: parameter("p", f32, 0, 1) holds both ends, parameter("p", f32, 0, below(1)) only the first,
// parameter("epsilon", f32, above(0)) has no upper one, parameter("scale", f32, any_finite) none at all.
using RangeNumber = std::variant<std::monostate, int64_t, double>;
struct LowerEnd {
    RangeNumber number;
    bool open = false;
    LowerEnd() = default;
    template <std::integral T>
    LowerEnd(T least) : number(static_cast<int64_t>(least)) {}
    LowerEnd(double least) : number(least) {}
};
struct UpperEnd {
    RangeNumber number;
    bool open = false;
    UpperEnd() = default;
    template <std::integral T>
    UpperEnd(T most) : number(static_cast<int64_t>(most)) {}
    UpperEnd(double most) : number(most) {}
};
inline const LowerEnd any_finite = {};
LowerEnd above(LowerEnd least);
UpperEnd below(UpperEnd most);

// The range of a parameter of that type. UserError algorithm.parameter-range: an end is no number of the type, or there is nothing between
// them; `subject` is who declares it.
ParameterRange parameter_range(const std::string &subject, DType type, const LowerEnd &least, const UpperEnd &most);

// Above 0 as at least 1, of integers.
ParameterRange with_closed_integers(ParameterRange range);

// What is wrong with a range for a parameter of that type, as it may come from a file; "" where nothing is.
std::string range_error(DType type, const ParameterRange &range);

// "at least 0 and below 1"; "finite" or "any" where neither end says more than the type.
std::string to_string(const ParameterRange &range);
std::string value_text(const Scalar &value);  // "0.1", "nan"
// "epsilon: f32 above 0"
std::string to_string(const Parameter &parameter);

}  // namespace tessera
