// Named integers that an algorithm is declared with: a convolution's stride, a pool's size. Their values are part of what
// is computed, as its constants are, so the hashes of the algorithm tell them apart.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

struct Option {
    std::string name;
    std::string summary;   // what it means, in a few words
    int64_t standard = 0;  // its value when none is given
    int64_t min = 0, max = INT32_MAX;
};

using Options = std::map<std::string, int64_t>;

// A value for each declared option: the given one, else the standard one. `algorithm` is for messages. UserErrors
// option.unknown and option.range.
Options complete_options(const std::string &algorithm, const std::vector<Option> &declared, const Options &given);

}  // namespace tessera
