// Named integers that an algorithm is declared with: a convolution's stride, a pool's size, an activation. Their values are part of
// what is computed, as its constants are, so algorithms with different values have different hashes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct Option {
    std::string name;
    std::string summary;   // what it means, in a few words
    int64_t standard = 0;  // its value when none is given
    int64_t min = 0, max = INT32_MAX;
    std::vector<std::string> values = {};  // the names of min, min + 1, …, max; empty where it is a number
};

// An option that is off unless it is "yes". `summary` says what holds then.
Option yes_or_no(const std::string &name, const std::string &summary);

using Options = std::map<std::string, int64_t>;

// A value for each declared option: the given one, else the standard one. `algorithm` is for messages. UserErrors
// option.unknown and option.range.
Options complete_options(const std::string &algorithm, const std::vector<Option> &declared, const Options &given);

// What users write for a value, "relu", and back. A number is read for a named value too. Nothing where it is neither.
std::string value_text(const Option &option, int64_t value);
std::optional<int64_t> parse_value(const Option &option, const std::string &text);
// "one of none, relu, gelu", "a whole number of 1 to 64"
std::string values_text(const Option &option);

}  // namespace tessera
