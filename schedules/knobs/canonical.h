// The canonical text of a schedule's document: one text for one value, so that artifacts diff and hash well.
//
// Keys come in the order of the format, names of stages and dims sorted. The document, `stages`, each stage and each
// variant have one field to a line; any other value stands on one line where it fits in 100 columns. Ends in a newline.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tessera {

// The fields of a document, in the order of the format.
const std::vector<std::string> &document_fields();

std::string canonical_text(const nlohmann::json &document);
// On one line: {"M": 96, "N": 384}
std::string one_line(const nlohmann::json &value);

}  // namespace tessera
