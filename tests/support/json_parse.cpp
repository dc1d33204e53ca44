#include "support/files/json_parse.h"

#include <algorithm>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/text/error.h"

namespace tessera::test_json_parse {

static std::string words(const std::string &text) {
    try {
        parse_json(text, "a.json");
    } catch (const UserError &e) { return e.what(); }
    return "accepted";
}

TEST_CASE("json parse: JSON of every kind is read as it stands") {
    auto j = parse_json(
        R"( {"a": [1, -2, 1.5, true, null, "\u00e9\n"], "b": {"a": {}}, "c": 9223372036854775807, "d": -9223372036854775808} )", "a.json");
    CHECK(j["a"] == nlohmann::json::array({1, -2, 1.5, true, nullptr, "é\n"}));
    CHECK(j["b"]["a"].empty());
    CHECK(j["c"].is_number_integer());
    CHECK(j["c"].get<int64_t>() == INT64_MAX);
    CHECK(j["d"].get<int64_t>() == INT64_MIN);
    CHECK(parse_json("0e99", "a.json") == 0.0);
    CHECK(parse_json("-0.0e-999", "a.json") == 0.0);
    CHECK(parse_json("1.5e308", "a.json") == 1.5e308);
    for (const char *text : {"[]", "{}", "3", "\"x\"", "null", "[[[1]],{\"a\":[{}]}]"}) CHECK(parse_json(text, "a.json").dump() == text);
}

TEST_CASE("json parse: what nlohmann would take is refused") {
    CHECK(words("{\"a\": 1,\n \"b\": 2, \"a\": 3}") ==
          "error[json.repeated-key]: a.json:2:10: the key 'a' stands twice in one object; keep one of the two.");
    CHECK(words("{\"q\\\"\": 1, \"q\\\"\": 3}") ==
          "error[json.repeated-key]: a.json:1:12: the key 'q\"' stands twice in one object; keep one of the two.");
    CHECK(words("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}]}") == "accepted");
    CHECK(words("\xEF\xBB\xBF{}") ==
          "error[json.encoding]: a.json:1:1: the text opens with a byte-order mark; save it as UTF-8 without one.");
    CHECK(words(std::string("{}\0garbage", 10)) == "error[json.encoding]: a.json:1:3: the text holds a NUL byte; save it as UTF-8.");
    CHECK(words("[\"a\\u0000b\"]") == "error[json.encoding]: a.json:1:2: a string holds the character \\u0000; remove it.");
    for (const char *text : {"[\"\\ud83d\"]", "[\"\\ud83d\\u0041\"]", "[\"\\ude00\"]"}) {
        CHECK_THAT(words(text), Catch::StartsWith("error[json.encoding]: a.json:1:") &&
                                    Catch::EndsWith(": half of a pair of surrogates stands here without the other; write both, as in "
                                                    "\\ud83d\\ude00, or the character itself."));
    }
    CHECK(words("[1,\n18446744073709551615]") ==
          "error[json.number]: a.json:2:1: the integer 18446744073709551615 is outside -9223372036854775808 ..= 9223372036854775807; use a "
          "smaller one.");
    CHECK(words("[9223372036854775808]").find("a.json:1:2: the integer 9223372036854775808 is outside") != std::string::npos);
    CHECK(words("-9223372036854775809").find("a.json:1:1: the integer -9223372036854775809 is outside") != std::string::npos);
    CHECK(words("99999999999999999999999").find("json.number") != std::string::npos);
    CHECK(words("[1, 1e999]") ==
          "error[json.number]: a.json:1:5: the number 1e999 does not fit a double (2.3e-308 ..= 1.7e308); use one that does.");
    CHECK(words("[1e-999]").find("a.json:1:2: the number 1e-999 does not fit") != std::string::npos);
}

TEST_CASE("json parse: depth is bounded before it costs anything") {
    CHECK(words(std::string(64, '[') + std::string(64, ']')) == "accepted");
    std::string expected = "error[json.depth]: a.json:1:65: objects and arrays nest deeper than 64 levels; flatten them.";
    CHECK(words(std::string(65, '[') + std::string(65, ']')) == expected);
    CHECK(words(std::string(100000, '[')) == expected);
    std::string objects;
    for (int i = 0; i < 100000; i++) objects += "{\"a\":";
    CHECK(words(objects).find("json.depth") != std::string::npos);
}

TEST_CASE("json parse: size is bounded") {
    std::string text = "[\"" + std::string(json_max_bytes, 'x') + "\"]";
    CHECK(words(text) ==
          "error[json.size]: a.json: 16777220 bytes are more than the 16777216 that a JSON text may have; "
          "split it or remove what is not needed.");
}

TEST_CASE("json parse: what is not JSON is refused with its place") {
    CHECK(words("") == "error[json.syntax]: a.json:1:1: expected a JSON value, got an empty text; is the file complete?");
    CHECK(words("{\"a\": [1,") == "error[json.syntax]: a.json:1:10: the text ends inside a value; is the file complete?");
    CHECK(words("{} x").find("error[json.syntax]: a.json:1:4: ") == 0);
    CHECK(words("{} {}").find("error[json.syntax]: a.json:1:4: ") == 0);
    CHECK(words("[1,]").find("error[json.syntax]: a.json:1:4: unexpected ']'") == 0);
    CHECK(words("[1,]").find("write strict JSON: no comments, no trailing commas, double quotes.") != std::string::npos);
    for (const char *text : {"{'a': 1}", "// c\n1", "[01]", "[+1]", "[.5]", "[1.]", "[0x10]", "\"\\x\"", "\"\n\"", "tru", "{1: 2}",
                             "{\"a\" 1}", "\"\\ud800\"", "]", ",", "\"a"})
        CHECK(words(text).find("error[json.") == 0);
    for (const char *text : {"NaN", "[-Infinity]", "[Infinity]", "[nan]", "[-NaN]", "{\"a\": -inf}"})
        CHECK(words(text).find("NaN and Infinity are not JSON; write a finite number or null.") != std::string::npos);
}

TEST_CASE("json parse: text that is not UTF-8 is refused") {
    for (const char *text : {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\""})
        CHECK(words(text).find("the bytes here are not UTF-8; save the file as UTF-8.") != std::string::npos);
    CHECK(words("\xfe\xff").find("error[json.") == 0);
    CHECK(words("\"ok\xff\"").find("error[json.encoding]: a.json:1:4: ") == 0);
}

TEST_CASE("json parse: messages quote only short printable text") {
    std::string message = words("{\"" + std::string(1000, 'k') + "\": 1, \"" + std::string(1000, 'k') + "\": 2}");
    CHECK(message.size() < 200);
    message = words("[\"\x1b[31m" + std::string(5000, 'z'));
    CHECK(message.size() < 300);
    CHECK(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    CHECK(quotable("a\nb\xc3") == "a?b?");
}

TEST_CASE("json parse: a text cut at any byte, or with any byte changed, is read or refused, never worse") {
    std::string text = R"({"name": "linear", "dims": [{"name": "M", "max": 4.5e3}, null, true], "u": "\u00e9\"", "i": [-12, 0]})";
    for (size_t i = 0; i < text.size(); i++) CHECK(words(text.substr(0, i)).find("error[json.") == 0);
    for (size_t i = 0; i < text.size(); i++)
        for (int byte = 0; byte < 256; byte++) {
            std::string changed = text;
            changed[i] = static_cast<char>(byte);
            std::string said = words(changed);
            REQUIRE((said == "accepted" || said.find("error[json.") == 0));
        }
}

}  // namespace tessera::test_json_parse
