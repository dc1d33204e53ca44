#include "support/files/json_text.h"

#include <nlohmann/json.hpp>

namespace tessera {

std::string json_text(const nlohmann::json &document, int indent) { return document.dump(indent); }

std::string json_text(const nlohmann::ordered_json &document, int indent) { return document.dump(indent); }

std::string lossy_json_text(const nlohmann::ordered_json &document, int indent) {
    return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json from_json_text(const std::string &text) { return nlohmann::ordered_json::parse(text); }

}  // namespace tessera
