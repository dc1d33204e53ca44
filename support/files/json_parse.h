// The parser for every JSON text that people hand in. A JSON library accepts more than is good for us: the last of
// repeated keys wins, deep nesting costs stack, big integers become floats, a byte-order mark and what follows a NUL are
// skipped. Here all of that is refused while it is read.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tessera {

inline constexpr size_t json_max_bytes = 16u << 20;
inline constexpr int json_max_depth = 64;

// The value of `text`; `subject` (a file's name) opens every message: "subject:line:column: …", columns in bytes from 1.
// UserErrors: json.size over 16 MiB · json.encoding byte-order mark, NUL, invalid UTF-8 · json.depth more than 64 levels ·
// json.repeated-key · json.number NaN, Infinity, an integer outside -2^63 ..= 2^63-1, a float outside double ·
// json.syntax everything else that is not JSON, among it an empty or cut text and trailing characters.
nlohmann::json parse_json(std::string_view text, const std::string &subject);

// What a message may quote of unchecked text: its first 48 characters, with '?' for all but printable ASCII.
std::string quotable(std::string_view text);

}  // namespace tessera
