// The text of JSON documents. Writing them is compiled once, here.
#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace tessera {

// `indent` spaces a level; -1 for one line. Throws where a text is not UTF-8, which printable() makes of any.
std::string json_text(const nlohmann::json &document, int indent = -1);
std::string json_text(const nlohmann::ordered_json &document, int indent = -1);
// The same, with U+FFFD for what is not UTF-8: names of files are of any bytes.
std::string lossy_json_text(const nlohmann::ordered_json &document, int indent = -1);

// The document of a text that json_text made. For texts of others: json_parse.h.
nlohmann::ordered_json from_json_text(const std::string &text);

}  // namespace tessera
