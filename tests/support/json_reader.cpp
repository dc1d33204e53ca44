#include "support/files/json_reader.h"

#include <catch2/catch.hpp>

#include "algorithms/expr/dtype.h"
#include "support/text/error.h"

namespace tessera::test_json_reader {

using nlohmann::json;

template <typename F>
static std::string words(F f) {
    try {
        f();
    } catch (const UserError &e) { return e.what(); }
    return "accepted";
}

static const json value = {{"n", 3},       {"s", "text"},      {"b", true},           {"f", 1.5},
                           {"z", nullptr}, {"list", {"a", 1}}, {"a/b~c", {{"k", 1}}}, {"o", json::object()}};
static const JsonReader reader(value, "x.json");

TEST_CASE("json reader: values of the right kind are read") {
    CHECK(reader.at("n").integer() == 3);
    CHECK(reader.at("s").text() == "text");
    CHECK(reader.at("b").truth());
    CHECK(reader.at("f").real(1.5, 2) == 1.5);
    CHECK(reader.at("n").real(-1, 3) == 3.0);
    CHECK(reader.at("list").items().size() == 2);
    CHECK(reader.at("o").fields().empty());
    CHECK_FALSE(reader.find("missing"));
    reader.only({"n", "s", "b", "f", "z", "list", "a/b~c", "o"});
}

TEST_CASE("json reader: other kinds are refused with their place") {
    CHECK(words([] { reader.at("f").integer(); }) == "error[json.type]: x.json: /f: expected an integer, got a float.");
    CHECK(words([] { reader.at("z").text(); }) == "error[json.type]: x.json: /z: expected a string, got null.");
    CHECK(words([] { reader.at("n").truth(); }) == "error[json.type]: x.json: /n: expected true or false, got an integer.");
    CHECK(words([] { reader.at("o").items(); }) == "error[json.type]: x.json: /o: expected an array, got an object.");
    CHECK(words([] { reader.at("list").fields(); }) == "error[json.type]: x.json: /list: expected an object, got an array.");
    CHECK(words([] { reader.at("list").texts(); }) == "error[json.type]: x.json: /list/1: expected a string, got an integer.");
    CHECK(words([] { reader.text(); }) == "error[json.type]: x.json: the whole value: expected a string, got an object.");
    CHECK(words([] { reader.at("n").integer(4, 9); }) == "error[json.value]: x.json: /n: expected an integer in 4 ..= 9, got 3.");
    CHECK(words([] { reader.at("f").real(2, 2.5); }) == "error[json.value]: x.json: /f: expected a number in 2.0 ..= 2.5, got 1.5.");
    CHECK(words([] { reader.at("b").real(2, 2.5); }) == "error[json.type]: x.json: /b: expected a number, got a boolean.");
    json big = UINT64_MAX;
    CHECK(words([&] { JsonReader(big, "x").integer(); }).find("got 18446744073709551615.") != std::string::npos);
}

TEST_CASE("json reader: missing and unknown fields are refused, pointers are escaped") {
    CHECK(words([] { reader.at("o").at("k"); }) ==
          "error[json.missing]: x.json: /o: the field 'k' is missing; the fields here are none. Add it.");
    CHECK(words([] { reader.at("a/b~c").only({"kk"}); }) ==
          "error[json.unknown-field]: x.json: /a~1b~0c/k: there is no field of this name; the fields are kk. Did you mean 'kk'?");
}

TEST_CASE("json reader: an error from elsewhere gets the place") {
    CHECK(words([] { reader.at("s").located([] { return dtype_named("f33"); }); }) ==
          "error[dtype.unknown]: x.json: /s: there is no element type 'f33'; the types are f32, f64, bf16, f16, i8, u8, i32, i64, bool, "
          "f8e4m3fn, f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f6e2m3fn, f6e3m2fn, f4e2m1fn, i4, u4, "
          "index. Did you mean 'f32'?");
    CHECK_THROWS_AS(reader.located([]() -> int { throw std::runtime_error("other"); }), std::runtime_error);
}

}  // namespace tessera::test_json_reader
