// What CLI11 checks of an option's word, with errors that a person can read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace tessera {

// One of the names; the option's variable, an enum, gets the position of it.
CLI::Validator one_of(const std::vector<std::string> &names);
// An integer in lo ..= hi.
CLI::Validator integer_in(uint64_t lo, uint64_t hi);
// A number in lo ..= hi, which excludes nan.
CLI::Validator number_in(double lo, double hi);

}  // namespace tessera
