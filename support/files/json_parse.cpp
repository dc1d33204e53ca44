#include "support/files/json_parse.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

std::string quotable(std::string_view text) {
    constexpr size_t most = 48;
    std::string result;
    for (char c : text.substr(0, most)) result += c >= ' ' && c <= '~' ? c : '?';
    return text.size() > most ? result + "..." : result;
}

struct Source {
    std::string_view text;
    const std::string &subject;

    // "a.json" of "schedule 'a.json'"
    std::string_view file() const {
        const size_t first = subject.find('\''), last = subject.rfind('\'');
        return first == last ? std::string_view(subject) : std::string_view(subject).substr(first + 1, last - first - 1);
    }

    [[noreturn]] void fail(const char *id, size_t byte, const std::string &message) const {
        std::string_view before = text.substr(0, byte);
        auto line = std::count(before.begin(), before.end(), '\n') + 1;
        size_t column = before.size() - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1) + 1;
        throw UserError(id, subject + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message)
            .about("", Span(file(), static_cast<uint32_t>(line)))
            .at(subject, "");
    }
};

// Reads the text and tells how far the lexer came, which its events do not say.
class Cursor {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char *;
    using reference = const char &;

    Cursor(const char *at, size_t *consumed) : at_(at), consumed_(consumed) {}
    reference operator*() const { return *at_; }
    Cursor &operator++() {
        ++at_, ++*consumed_;
        return *this;
    }
    Cursor operator++(int) {
        Cursor before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const Cursor &a, const Cursor &b) { return a.at_ == b.at_; }
    friend bool operator!=(const Cursor &a, const Cursor &b) { return a.at_ != b.at_; }

private:
    const char *at_;
    size_t *consumed_;
};

class Handler {
public:
    Handler(const Source &source, const size_t &consumed) : source_(source), consumed_(consumed) {}
    json take() { return std::move(root_); }

    bool null() { return put(nullptr); }
    bool boolean(bool value) { return put(value); }
    bool number_integer(int64_t value) { return put(value); }
    bool number_unsigned(uint64_t value) {
        if (value > static_cast<uint64_t>(INT64_MAX)) refuse_integer();
        return put(static_cast<int64_t>(value));
    }
    bool number_float(double value, const std::string &digits) {
        if (digits.find_first_of(".eE") == std::string::npos) refuse_integer();
        bool written_zero = digits.substr(0, digits.find_first_of("eE")).find_first_of("123456789") == std::string::npos;
        if (value == 0 && !written_zero) refuse_float();
        return put(value);
    }
    bool string(std::string &value) {
        refuse_nul(value);
        return put(std::move(value));
    }
    bool binary(json::binary_t &) { return false; }
    bool start_object(size_t) { return open(json::object()); }
    bool start_array(size_t) { return open(json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string &name) {
        refuse_nul(name);
        if (open_.back()->contains(name))
            source_.fail("json.repeated-key", start_of_string(),
                         "the key '" + quotable(name) + "' stands twice in one object; keep one of the two.");
        key_ = name;
        return true;
    }

    bool parse_error(size_t byte, const std::string &last, const nlohmann::detail::exception &e) {
        size_t at = byte > 0 ? byte - 1 : 0;
        std::string what = e.what();
        if (e.id == 406) refuse_float();
        if (what.find("ill-formed UTF-8") != std::string::npos)
            source_.fail("json.encoding", at, "the bytes here are not UTF-8; save the file as UTF-8.");
        if (what.find("surrogate") != std::string::npos)
            source_.fail(
                "json.encoding", at,
                "half of a pair of surrogates stands here without the other; write both, as in \\ud83d\\ude00, or the character itself.");
        if (is_not_finite(at)) source_.fail("json.number", at, "NaN and Infinity are not JSON; write a finite number or null.");
        if (source_.text.empty()) source_.fail("json.syntax", 0, "expected a JSON value, got an empty text; is the file complete?");
        if (what.find("unexpected end of input") != std::string::npos || byte > source_.text.size())
            source_.fail("json.syntax", at, "the text ends inside a value; is the file complete?");
        size_t open = what.find(" - "), end = what.find("; last read");
        std::string reason = open == what.npos ? what : what.substr(open + 3, end == what.npos ? end : end - open - 3);
        if (size_t got = reason.find("; expected"); got != reason.npos) reason.replace(got, 1, ",");
        source_.fail("json.syntax", at,
                     quotable(reason) + " at '" + quotable(last) + "'; write strict JSON: no comments, no trailing commas, double quotes.");
    }

private:
    // Whether the word around this byte is a spelling of NaN or infinity.
    bool is_not_finite(size_t at) const {
        auto letter = [&](size_t i) { return i < source_.text.size() && std::isalpha(static_cast<unsigned char>(source_.text[i])); };
        size_t start = at;
        while (start > 0 && letter(start - 1)) start--;
        std::string word;
        for (size_t i = start; letter(i) && word.size() < 3; i++) word += static_cast<char>(source_.text[i] | 0x20);
        return word == "nan" || word == "inf";
    }
    [[noreturn]] void refuse_integer() const {
        source_.fail(
            "json.number", start_of_number(),
            "the integer " + quotable(number_text()) + " is outside -9223372036854775808 ..= 9223372036854775807; use a smaller one.");
    }
    [[noreturn]] void refuse_float() const {
        source_.fail("json.number", start_of_number(),
                     "the number " + quotable(number_text()) + " does not fit a double (2.3e-308 ..= 1.7e308); use one that does.");
    }
    void refuse_nul(const std::string &value) const {
        if (value.find('\0') != std::string::npos)
            source_.fail("json.encoding", start_of_string(), "a string holds the character \\u0000; remove it.");
    }

    static bool in_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }
    size_t end_of_number() const {
        size_t end = std::min(consumed_, source_.text.size());
        while (end > 0 && !in_number(source_.text[end - 1])) end--;
        return end;
    }
    size_t start_of_number() const {
        size_t start = end_of_number();
        while (start > 0 && in_number(source_.text[start - 1])) start--;
        return start;
    }
    std::string_view number_text() const { return source_.text.substr(start_of_number(), end_of_number() - start_of_number()); }
    // A quote inside the string has an odd number of backslashes before it.
    size_t start_of_string() const {
        size_t at = std::min(consumed_, source_.text.size()) - 1;
        while (at-- > 0) {
            if (source_.text[at] != '"') continue;
            size_t slashes = 0;
            while (slashes < at && source_.text[at - 1 - slashes] == '\\') slashes++;
            if (slashes % 2 == 0) return at;
        }
        return 0;
    }

    json *place(json value) {
        if (open_.empty()) return &(root_ = std::move(value));
        if (open_.back()->is_array()) {
            open_.back()->push_back(std::move(value));
            return &open_.back()->back();
        }
        return &((*open_.back())[key_] = std::move(value));
    }
    bool put(json value) {
        place(std::move(value));
        return true;
    }
    bool open(json value) {
        if (open_.size() == static_cast<size_t>(json_max_depth))
            source_.fail("json.depth", consumed_ - 1,
                         "objects and arrays nest deeper than " + std::to_string(json_max_depth) + " levels; flatten them.");
        open_.push_back(place(std::move(value)));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    const Source &source_;
    const size_t &consumed_;
    json root_;
    std::vector<json *> open_;  // an element's address holds while it is open: only the innermost container grows
    std::string key_;
};

json parse_json(std::string_view text, const std::string &subject) {
    if (text.size() > json_max_bytes)
        throw UserError("json.size", subject + ": " + std::to_string(text.size()) + " bytes are more than the " +
                                         std::to_string(json_max_bytes) +
                                         " that a JSON text may have; split it or remove what is not needed.");
    Source source{text, subject};
    if (text.substr(0, 3) == "\xEF\xBB\xBF")
        source.fail("json.encoding", 0, "the text opens with a byte-order mark; save it as UTF-8 without one.");
    if (size_t nul = text.find('\0'); nul != text.npos) source.fail("json.encoding", nul, "the text holds a NUL byte; save it as UTF-8.");
    size_t consumed = 0;
    Handler handler(source, consumed);
    Cursor begin(text.data(), &consumed), end(text.data() + text.size(), &consumed);
    require(json::sax_parse(begin, end, &handler), "a JSON error that the handler did not report");
    return handler.take();
}

}  // namespace tessera
