// Typed reading of a JSON value, where every mistake is a UserError that names the place by its JSON pointer (RFC 6901).
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// A view of `value`, which must outlive it. `subject` opens every message.
class JsonReader {
public:
    JsonReader(const nlohmann::json &value, std::string subject, std::string pointer = "");

    const nlohmann::json &value() const { return *value_; }
    bool is_text() const { return value_->is_string(); }
    bool is_integer() const { return value_->is_number_integer(); }

    // UserError json.type for a value of another kind, json.value for a number outside lo ..= hi.
    const std::string &text() const;
    std::string quotable() const;  // text() cut to what a message may show: short, printable ASCII
    int64_t integer(int64_t lo = INT64_MIN, int64_t hi = INT64_MAX) const;
    double real(double lo, double hi) const;  // an integer or a float
    bool truth() const;
    std::vector<JsonReader> items() const;                           // of an array
    std::vector<std::pair<std::string, JsonReader>> fields() const;  // of an object
    std::vector<std::string> texts() const;                          // an array of strings

    // A field of an object: `at` refuses a missing one (json.missing), `find` gives nothing.
    JsonReader at(const std::string &field) const;
    std::optional<JsonReader> find(const std::string &field) const;
    // Refuses every field that `known` lacks (json.unknown-field, with the nearest known name).
    void only(const std::vector<std::string> &known) const;

    // "error[id]: subject: /pointer: message"
    [[noreturn]] void fail(const std::string &id, const std::string &message) const;
    // Runs `make`; a UserError of it is thrown again with this place before its words.
    template <typename F>
    auto located(F make) const -> decltype(make());

private:
    [[noreturn]] void wrong_type(const std::string &expected) const;
    [[noreturn]] void rethrow(const std::exception &error) const;

    const nlohmann::json *value_;
    std::string subject_, pointer_;
};

template <typename F>
auto JsonReader::located(F make) const -> decltype(make()) {
    try {
        return make();
    } catch (const std::runtime_error &error) { rethrow(error); }
}

}  // namespace tessera
