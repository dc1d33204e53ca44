// An algorithm that another tool wrote: a file of JSON (algorithms/text/json.h), which stands where a command takes an algorithm's name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Limits of a program in a file, where the stages of a callee count at each call.
inline constexpr int64_t max_stages = 10000;
inline constexpr int64_t max_call_levels = 64;

// Whether what names an algorithm is a file: it ends in ".json".
bool is_algorithm_file(const std::string &name);

// The algorithm in a file, which is legal, keeps the laws of its monoids and of rules of derivatives, and carries names that artifacts may
// have. UserErrors, all of which name the file: algorithm.file; algorithm.too-large (over 16 MiB, or over the limits above); those of
// parse_json, algorithm_from_json, verify, check_monoid_laws and check_rule_laws.
Algorithm read_algorithm(const std::filesystem::path &file);

}  // namespace tessera
