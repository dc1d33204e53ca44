// Whether any stage of an algorithm may overflow or be no number for inputs within declared ranges, and what bounds its results and
// their errors (compiler/interpret/range_analysis.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/interpret/range_analysis.h"
#include "generators/kernel/prepare.h"

namespace tessera {

// The words of stated_ranges (bench/measure/stated_inputs.h), for each input, state and parameter of floats by name, and what else is
// named; a parameter without a word has its declared range. UserError command.range as there, and where one of floats has none.
std::map<std::string, RealInterval> parse_ranges(const Algorithm &algorithm, const std::vector<std::string> &words);

struct Stability {
    std::vector<StageRange> stages;
    // What was tried where it is not proved: inputs at the ends of their ranges.
    int samples = 0;
    std::string found;  // "stage 'e' holds inf, with every input at its highest"; "" where none showed it
    bool is_proved() const;
};

// For one shape. UserError command.extents where a dim has no extent.
Stability stability_of(const PreparedKernel &prepared, const Extents &extents, const std::map<std::string, RealInterval> &ranges,
                       uint64_t seed);

}  // namespace tessera
