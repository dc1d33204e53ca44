// What somebody says of the data that a kernel is run on, in place of random numbers.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "algorithms/evaluate/array.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

// Inclusive. Of integers, those in it.
struct NumberRange {
    double lo = 0, hi = 0;
};

struct StatedInputs {
    std::map<std::string, NumberRange> ranges;  // of elements of inputs and states, and of parameters, by name
    std::optional<NumberRange> others;          // of what has none and is of floats
    std::map<std::string, Array> arrays;        // of inputs and states; those of four bits have an element each
    std::map<std::string, Scalar> parameters;
    bool is_empty() const { return ranges.empty() && !others && arrays.empty() && parameters.empty(); }
    const NumberRange *range_of(const std::string &name, DType type) const;  // null where there is none
};

// Extents of the symbolic dims that stated arrays have. UserError command.inputs: two arrays tell one dim differently, an array has another
// rank than its tensor or another extent than a fixed dim.
Extents extents_in(const StatedInputs &stated, const Algorithm &algorithm);

// The words are "x=0..1", or "-1..1" for all others of floats; ',' separates the ends too. UserError command.range: what is no range, or of
// no such name, or a second one of it, or an end that no element can be.
StatedInputs stated_ranges(const Algorithm &algorithm, const std::vector<std::string> &words);

std::string shape_text(const std::vector<int64_t> &shape);  // "[2, 3]"

// Numbers in the range, the same for the same seed; where none of the type is in it, the nearest.
Scalar number_in(const NumberRange &range, DType type, uint64_t seed, uint64_t position = 0);
Array array_in(const NumberRange &range, DType type, const std::vector<int64_t> &shape, uint64_t seed);

}  // namespace tessera
