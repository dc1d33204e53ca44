#include "support/files/json_reader.h"

#include <algorithm>

#include "support/files/json_parse.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

JsonReader::JsonReader(const json &value, std::string subject, std::string pointer)
    : value_(&value), subject_(std::move(subject)), pointer_(std::move(pointer)) {}

static std::string step(const std::string &field) {
    std::string escaped = "/";
    for (char c : field) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return quotable(escaped);
}

void JsonReader::fail(const std::string &id, const std::string &message) const {
    throw UserError(id, subject_ + ": " + (pointer_.empty() ? "the whole value" : pointer_) + ": " + message).at(subject_, pointer_);
}

void JsonReader::rethrow(const std::exception &error) const {
    auto *user = dynamic_cast<const UserError *>(&error);
    if (!user) throw;
    fail(user->id(), user->message());
}

void JsonReader::wrong_type(const std::string &expected) const {
    std::string got = value_->is_number_float() ? "a float" : value_->is_number() ? "an integer" : std::string("a ") + value_->type_name();
    if (value_->is_array() || value_->is_object()) got = std::string("an ") + value_->type_name();
    if (value_->is_null()) got = "null";
    fail("json.type", "expected " + expected + ", got " + got + ".");
}

const std::string &JsonReader::text() const {
    if (!value_->is_string()) wrong_type("a string");
    return value_->get_ref<const std::string &>();
}

std::string JsonReader::quotable() const { return tessera::quotable(text()); }

int64_t JsonReader::integer(int64_t lo, int64_t hi) const {
    if (!value_->is_number_integer()) wrong_type("an integer");
    bool too_big = value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (too_big || value_->get<int64_t>() < lo || value_->get<int64_t>() > hi)
        fail("json.value", "expected an integer in " + std::to_string(lo) + " ..= " + std::to_string(hi) + ", got " + value_->dump() + ".");
    return value_->get<int64_t>();
}

double JsonReader::real(double lo, double hi) const {
    if (!value_->is_number()) wrong_type("a number");
    const double number = value_->get<double>();
    if (!(lo <= number && number <= hi))
        fail("json.value", "expected a number in " + json(lo).dump() + " ..= " + json(hi).dump() + ", got " + value_->dump() + ".");
    return number;
}

bool JsonReader::truth() const {
    if (!value_->is_boolean()) wrong_type("true or false");
    return value_->get<bool>();
}

std::vector<JsonReader> JsonReader::items() const {
    if (!value_->is_array()) wrong_type("an array");
    std::vector<JsonReader> result;
    for (size_t i = 0; i < value_->size(); i++) result.emplace_back((*value_)[i], subject_, pointer_ + "/" + std::to_string(i));
    return result;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::fields() const {
    if (!value_->is_object()) wrong_type("an object");
    std::vector<std::pair<std::string, JsonReader>> result;
    for (auto &[name, value] : value_->items()) result.emplace_back(name, JsonReader(value, subject_, pointer_ + step(name)));
    return result;
}

std::vector<std::string> JsonReader::texts() const {
    std::vector<std::string> result;
    for (const JsonReader &item : items()) result.push_back(item.text());
    return result;
}

static std::vector<std::string> names_of(const json &object) {
    std::vector<std::string> names;
    for (auto &[name, value] : object.items()) names.push_back(quotable(name));
    return names;
}

std::optional<JsonReader> JsonReader::find(const std::string &field) const {
    if (!value_->is_object()) wrong_type("an object");
    auto it = value_->find(field);
    if (it == value_->end()) return {};
    return JsonReader(*it, subject_, pointer_ + step(field));
}

JsonReader JsonReader::at(const std::string &field) const {
    if (auto found = find(field)) return *found;
    fail("json.missing", "the field '" + field + "' is missing; the fields here are " + join(names_of(*value_)) + ". Add it.");
}

void JsonReader::only(const std::vector<std::string> &known) const {
    for (auto &[name, field] : fields())
        if (std::find(known.begin(), known.end(), name) == known.end())
            field.fail("json.unknown-field", "there is no field of this name; the fields are " + join(known) + "." +
                                                 did_you_mean(tessera::quotable(name), known));
}

}  // namespace tessera
