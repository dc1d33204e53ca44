// What integers mean to an algorithm, read off it: rows of a table, or how many there are. Random integers of another kind would make
// loops short and tables small, and a time of them would mean nothing.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "bench/measure/stated_inputs.h"

namespace tessera {

// positions: elements are indices of a dim, as those of a table of pages, of tokens, of classes. lengths: they are compared with indices
// of it, or added to them. Where a tensor is used as both, it has positions.
struct IntegerMeaning {
    enum class Kind : uint8_t { positions, lengths } kind = Kind::positions;
    std::string dim;
    friend bool operator==(const IntegerMeaning &, const IntegerMeaning &) = default;
};

// By the name of the input or state, which is of i32 or i64. Offsets of ragged dims are not among them.
std::map<std::string, IntegerMeaning> integer_meanings(const Algorithm &algorithm);

// `stated`, and arrays for tensors with a meaning of which it says nothing: of positions every one before any comes again, in random
// order; of lengths those of 0 ..= the dim's extent with equal probability. The same for the same seed. `extents` are those of all dims.
StatedInputs with_integer_inputs(const Algorithm &algorithm, const Extents &extents, StatedInputs stated, uint64_t seed);

}  // namespace tessera
