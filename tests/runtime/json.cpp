/// JSON as the loader of bundles pulls it: beside nlohmann's parser on many texts, and what must be refused.
#include "runtime/bundle/json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace tessera::test_json {

namespace {

std::string copied(const TessJsonValue &value) {
    std::string text(value.bytes + 1, 'x');
    const int64_t length = tess_json_copy(&value, text.data(), text.size());
    REQUIRE(length >= 0);
    CHECK(text[size_t(length)] == '\0');
    return text.substr(0, size_t(length));
}

nlohmann::json tree_of(TessJson &json, const TessJsonValue &value) {
    TessJsonValue key, inner;
    switch (value.kind) {
    case TESS_JSON_OBJECT: {
        nlohmann::json object = nlohmann::json::object();
        while (tess_json_next(&json, &key, &inner)) {
            const std::string name = copied(key);
            object[name] = tree_of(json, inner);
        }
        return object;
    }
    case TESS_JSON_ARRAY: {
        nlohmann::json array = nlohmann::json::array();
        while (tess_json_next(&json, &key, &inner)) array.push_back(tree_of(json, inner));
        return array;
    }
    case TESS_JSON_STRING: return copied(value);
    case TESS_JSON_NUMBER: return nlohmann::json::parse(std::string(value.text, value.bytes));
    case TESS_JSON_TRUE: return true;
    case TESS_JSON_FALSE: return false;
    default: return nullptr;
    }
}

// What is wrong, or "" and the tree. The text is in memory of just its size, which a sanitizer watches.
std::string error_of(const std::string &text, nlohmann::json *tree = nullptr) {
    const std::vector<char> own(text.begin(), text.end());
    TessJson json;
    TessJsonValue value;
    tess_json_begin(&json, own.data(), own.size(), &value);
    const nlohmann::json read = json.error ? nullptr : tree_of(json, value);
    if (tree) *tree = read;
    return tess_json_end(&json) ? "" : json.error + (" at " + std::to_string(json.at));
}

}  // namespace

TEST_CASE("JSON is read as another parser reads it", "[json]") {
    for (const char *text :
         {"null", "true", " false ", "0", "-0", "12.5e-3", "1E+2", R"("")", "[]", "{}", "[[],{}]", R"({"a":1,"b":[true,null,"x"]})",
          R"(["\"\\\/\b\f\n\r\t","\u0041\u00e9\u20ac\ud83d\ude00","é€😀"])", "\t[\r\n1 , 2\n] ", R"({"":{"":[{}]}})"}) {
        nlohmann::json tree;
        INFO(text);
        CHECK(error_of(text, &tree) == "");
        CHECK(tree == nlohmann::json::parse(text));
    }
}

TEST_CASE("What is no JSON is refused where it goes wrong", "[json]") {
    const auto says = [](const std::string &text, const std::string &expected) {
        INFO(text);
        CHECK(error_of(text) == expected);
    };
    says("", "no value at 0");
    says("nul", "no value at 0");
    says("truth", "no value at 0");
    says("{", "no key of an object at 1");
    says("[", "no value at 1");
    says("[1", "no comma and no end of an object or array at 2");
    says("[1,]", "no value at 3");
    says("[,1]", "no value at 1");
    says("[1 2]", "no comma and no end of an object or array at 3");
    says("{\"a\" 1}", "no colon after a key at 5");
    says("{\"a\":1,}", "no key of an object at 7");
    says("{1:2}", "no key of an object at 1");
    says("[}", "no value at 1");
    says("[1}", "no comma and no end of an object or array at 2");
    says("1 2", "something after the value at 2");
    says("{}{}", "something after the value at 2");
    says("01", "a number that begins with 0 at 0");
    says("-", "no value at 0");
    says("1.", "a number without digits after its point at 0");
    says(".5", "no value at 0");
    says("1e", "a number without digits in its exponent at 0");
    says("+1", "no value at 0");
    says("\"abc", "the end within a string at 4");
    says("\"a\nb\"", "a control character in a string at 2");
    says(std::string("\"a\0b\"", 5), "a control character in a string at 2");
    for (const char *escape : {"\\x", "\\u12g4", "\\u123", "\\ud800", "\\ud800\\u0041", "\\udc00", "\\ud83dx"})
        says("\"" + std::string(escape) + "\"", "an escape that there is not at 1");
    for (const char *bytes :
         {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
        says("\"" + std::string(bytes) + "\"", "bytes that are no UTF-8 at 1");
    says(std::string(32, '[') + std::string(32, ']'), "");
    says(std::string(33, '['), "more than 32 objects and arrays within each other at 32");
    says(std::string(1000000, '['), "more than 32 objects and arrays within each other at 32");
}

TEST_CASE("Every cut and many flips of a JSON text give what another parser gives, or are refused with it", "[json]") {
    const std::string text =
        R"({"name":"layér","n":[0,-12,3.25e+10],"deep":{"a":[[{"b":"\u00e9\ud83d\ude00\n"}]]},"t":true,"f":false,"z":null})";
    const auto agree = [](const std::string &changed) {
        nlohmann::json tree;
        const std::string error = error_of(changed, &tree);
        const bool valid = nlohmann::json::accept(changed);
        INFO(changed << " " << error);
        if (!error.empty() && valid) return error.find("no digits") != error.npos || error.find("zero") != error.npos;
        return error.empty() == valid && (!valid || tree == nlohmann::json::parse(changed));
    };
    for (size_t cut = 0; cut <= text.size(); cut++) REQUIRE(agree(text.substr(0, cut)));
    std::mt19937 random(3);
    for (int i = 0; i < 20000; i++) {
        std::string changed = text;
        for (unsigned n = 1 + random() % 3; n > 0; n--) {
            const size_t at = random() % changed.size();
            switch (random() % 3) {
            case 0: changed[at] = static_cast<char>(random()); break;
            case 1: changed.erase(at, 1 + random() % 4); break;
            default: changed.insert(at, 1, "{}[],:\"\\0eE.-"[random() % 13]); break;
            }
            if (changed.empty()) changed = "0";
        }
        if (changed.find("\\u0000") != changed.npos) continue;  // a zero, which a copy refuses
        REQUIRE(agree(changed));
    }
}

TEST_CASE("Values of JSON are compared, copied and read as integers", "[json]") {
    const auto value_of = [](const std::string &text) {
        TessJson json;
        TessJsonValue value;
        tess_json_begin(&json, text.data(), text.size(), &value);
        REQUIRE(json.error == nullptr);
        return value;
    };
    const std::string name = R"("a\u00e9\n")";
    TessJsonValue value = value_of(name);
    CHECK(tess_json_is(&value, "aé\n"));
    CHECK_FALSE(tess_json_is(&value, "aé"));
    CHECK_FALSE(tess_json_is(&value, "aé\nb"));
    char small[5];
    CHECK(tess_json_copy(&value, small, 4) == -1);
    CHECK(tess_json_copy(&value, small, 5) == 4);
    const std::string zero = R"("a\u0000")", word = "true";
    value = value_of(zero);
    CHECK(tess_json_copy(&value, small, 5) == -1);
    CHECK_FALSE(tess_json_is(&value, "a"));
    value = value_of(word);
    CHECK_FALSE(tess_json_is(&value, "true"));
    const auto integer = [&](const std::string &text, int64_t least, int64_t most) {
        int64_t number = -77;
        const TessJsonValue read = value_of(text);
        return tess_json_integer(&read, least, most, &number) ? std::to_string(number) : "no";
    };
    CHECK(integer("9223372036854775807", 0, INT64_MAX) == "9223372036854775807");
    CHECK(integer("-9223372036854775807", INT64_MIN, 0) == "-9223372036854775807");
    for (const char *text :
         {"9223372036854775808", "18446744073709551617", "99999999999999999999999999", "1.0", "1e3", "\"1\"", "null", "[]"})
        CHECK(integer(text, INT64_MIN, INT64_MAX) == "no");
    CHECK(integer("8", 0, 7) == "no");
    CHECK(integer("-1", 0, 7) == "no");
    CHECK(integer("-0", 0, 7) == "0");
}

TEST_CASE("A value of JSON is skipped with all that is in it", "[json]") {
    const std::string text = R"([{"a":[1,{"b":2}]},[[]],7])";
    TessJson json;
    TessJsonValue key, value;
    tess_json_begin(&json, text.data(), text.size(), &value);
    int count = 0;
    while (tess_json_next(&json, &key, &value)) {
        tess_json_skip(&json, &value);
        count++;
    }
    CHECK(count == 3);
    CHECK(tess_json_end(&json) == 1);
    tess_json_begin(&json, text.data(), text.size(), &value);
    tess_json_next(&json, &key, &value);
    CHECK(tess_json_end(&json) == 0);
}

}  // namespace tessera::test_json
