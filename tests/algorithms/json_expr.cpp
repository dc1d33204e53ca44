#include "algorithms/text/json_expr.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>

#include "algorithms/expr/value_numbering.h"
#include "algorithms/functions/functions.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_json_expr {

using namespace tessera::test;
using nlohmann::json;

static bool same_expr(const Expr &a, const Expr &b) {
    ValueNumbering table;
    return table.number(a) == table.number(b);
}

static Expr round_trip(const Expr &e) { return expr_from_json(parse_json(to_json(e).dump(), "e")); }

static std::string words(const std::string &text) {
    try {
        expr_from_json(parse_json(text, "e"));
    } catch (const UserError &e) { return e.words(); }
    return "accepted";
}

TEST_CASE("json expr: the encoding is compact") {
    Expr m = variable("M");
    CHECK(to_json(m + 1).dump() == R"(["add","M",1])");
    CHECK(to_json(load("x", DType::f32, {m, extent("K")})).dump() == R"(["load","x","f32","M",["extent","K"]])");
    CHECK(to_json(load_or("x", DType::f32, {m}, m < 3, constant(DType::f32, -1.5))).dump() ==
          R"(["load_or","x","f32","M",["lt","M",3],["f32","-0x1.8p+0"]])");
    CHECK(to_json(cast(DType::i8, parameter("p", DType::f32), Rounding::toward_zero, true)).dump() ==
          R"(["cast","i8",["parameter","p","f32"],"toward_zero","saturate"])");
    Expr product = load("x", DType::f32, {m}) * load("y", DType::f32, {m});
    CHECK(to_json(product + abs(product)).dump() ==
          R"(["let",[["mul",["load","x","f32","M"],["load","y","f32","M"]]],["add",["@",0],["abs",["@",0]]]])");
}

TEST_CASE("json expr: constants round-trip bit by bit") {
    for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (double value : {0.0, -0.0, 0.1, -3.0, 1e-40, 0x1p-1074, 0x1p-149, 65504.0, 1.7976931348623157e308,
                             static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
            Scalar s = Scalar::of_real(type, value);
            CHECK(round_trip(constant(s))->value == s);
        }
    for (DType type : {DType::i8, DType::u8, DType::i32, DType::i64, DType::index, DType::boolean})
        for (int64_t value :
             {INT64_MIN, INT64_MIN + 1, int64_t{-129}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{(1LL << 53) + 1}, INT64_MAX}) {
            Scalar s = Scalar::of_integer(type, value);
            CHECK(round_trip(constant(s))->value == s);
        }
}

TEST_CASE("json expr: random expressions round-trip, and equal ones have equal JSON") {
    std::mt19937 random(7);
    for (int i = 0; i < 400; i++) {
        DType types[] = {DType::f32, DType::i32, DType::index, DType::boolean};
        Expr e = random_expr(random, types[i % 4], i % 6);
        json j = to_json(e);
        Expr back = round_trip(e);
        REQUIRE(same_expr(back, e));
        REQUIRE(to_json(back) == j);
    }
}

TEST_CASE("json expr: sharing is kept, depth is cut") {
    Expr e = load("x", DType::f32, {variable("M")});
    for (int i = 0; i < 12; i++) e = gelu(tanh(e));
    CHECK(same_expr(round_trip(e), e));
    Expr chain = load("x", DType::f32, {});
    for (int i = 0; i < 900; i++) chain = chain + load("y" + std::to_string(i), DType::f32, {});
    CHECK(same_expr(round_trip(chain), chain));
}

TEST_CASE("json expr: mistakes are refused with their place") {
    CHECK(words(R"(["ad", 1, 2])")
              .find("error[json.expression]: expression: /0: there is no kind of expression 'ad'; the kinds are extent, ") == 0);
    CHECK(words(R"(["ad", 1, 2])").find("Did you mean 'add'?") != std::string::npos);
    CHECK(words(R"(["add", 1, ["mul", 2]])") == "error[json.expression]: expression: /2: 'mul' is an array of 3 items, got 2.");
    CHECK(words(R"(["load", "x"])") ==
          "error[json.expression]: expression: the whole value: no type is given, and there is no tensor or result 'x' before this; there "
          "are "
          "none. Give it one: [\"load\", \"x\", \"f32\", i, j].");
    CHECK(words(R"(["load"])") == "error[json.expression]: expression: the whole value: 'load' is an array of 2 or more items, got 1.");
    CHECK(words(R"(["cast", "f32", 1, 2, 3, 4])") ==
          "error[json.expression]: expression: the whole value: 'cast' is an array of 3 to 5 items, got 6.");
    CHECK(words(R"(["cast", "bf16", 1, "upward"])") ==
          "error[json.value]: expression: /3: expected \"toward_zero\", \"up\", \"down\", \"nearest_even\" or \"saturate\", got "
          "\"upward\".");
    CHECK(words(R"(["cast", "f32", 1, "up"])") ==
          "error[expr.cast]: expression: /1: a cast to f32 rounds to nearest even and overflows to infinity; got rounding up, which is for "
          "integers and for floats that are only stored. Leave it out.");
    CHECK(words(R"(["extent", 1])") == "error[json.type]: expression: /1: expected a string, got an integer.");
    CHECK(words(R"(["load", "x", "f33"])").find("error[dtype.unknown]: expression: /2: there is no element type 'f33'; ") == 0);
    CHECK(words(R"(["neg", ["add", 1, ["f32", "0x1p+0"]]])") ==
          "error[expr.type]: expression: /1: add wants operands of one type, got (index $operand0, f32 $operand1); convert with an "
          "explicit cast.");
    CHECK(words(R"(["bitcast", "f64", "M"])") ==
          "error[expr.bitcast]: expression: the whole value: bitcast goes between f32 and i32, f64 and i64, or u8 and a type of codes, "
          "got index to f64.");
    CHECK(words("[]") ==
          "error[json.expression]: expression: the whole value: expected an expression such as [\"add\", a, b], got an empty array.");
    CHECK(words("{}") == "error[json.type]: expression: the whole value: expected an array, got an object.");
    CHECK(words("1.5") == "error[json.type]: expression: the whole value: expected an array, got a float.");
    CHECK(words("[1]") == "error[json.type]: expression: /0: expected a string, got an integer.");
    CHECK(words(R"(["left", -1, "f32"])") == "error[json.value]: expression: /1: expected an integer in 0 ..= 1048576, got -1.");
    CHECK(words(R"(["i8", 128])") == "error[json.value]: expression: /1: expected an integer in -128 ..= 127, got 128.");
    for (const char *text : {"0.1", "0x", "0x1.8p", "1", "0x1.000001p+0", "0x1p+128", "0x-1p+0", "-", "--inf", "infinity", "0x1p+0 ", ""})
        CHECK(words(json::array({"f32", text}).dump()) ==
              "error[json.value]: expression: /1: expected a hexadecimal float such as \"0x1.8p+0\", exact in f32, or \"inf\", \"-inf\", "
              "\"nan\".");
}

TEST_CASE("json expr: references point back only") {
    CHECK(words(R"(["@", 0])") ==
          "error[json.expression]: expression: the whole value: \"@\" refers to a definition of \"let\", and there is none before it.");
    CHECK(words(R"(["let", [["@", 0]], 1])").find("/1/0: \"@\" refers") != std::string::npos);
    CHECK(words(R"(["let", [1], ["@", 1]])") == "error[json.value]: expression: /2/1: expected an integer in 0 ..= 0, got 1.");
    CHECK(words(R"(["let", [1]])") == "error[json.expression]: expression: the whole value: 'let' is an array of 3 items, got 2.");
    CHECK(words(R"(["neg", ["let", [], 1]])").find("there is no kind of expression 'let'") != std::string::npos);
}

// A few kilobytes that stand for a tree of 2^800 nodes, and for one too high to walk.
TEST_CASE("json expr: a text that shares or nests without measure is read or refused in no time") {
    json definitions = json::array({json::array({"load", "x", "f32"})});
    for (int i = 0; i < 800; i++) {
        json again = json::array({"add", {"@", i}, {"@", i}});
        definitions.push_back(json::array({"min", again, json::array({"select", json::array({"lt", again, again}), again, {"@", i}})}));
    }
    auto start = std::chrono::steady_clock::now();
    CHECK(words(json::array({"let", definitions, {"@", 800}}).dump()).find("more than 1000 levels; make stages of its parts.") !=
          std::string::npos);
    definitions.erase(definitions.begin() + 240, definitions.end());
    json wide = json::array({"let", definitions, {"@", 239}});
    CHECK(words(wide.dump()) == "accepted");
    CHECK(to_json(expr_from_json(wide)).dump().size() < 100000);
    CHECK(words(json::array({"let", definitions, {"add", {"@", 239}, 1}}).dump()).size() < 300);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));

    json deep = "M";
    for (int i = 0; i < 70; i++) deep = json::array({"neg", deep});
    CHECK_THROWS_WITH(expr_from_json(deep), Catch::Contains("an expression nests deeper than 64 levels; name parts of it with \"let\"."));
}

}  // namespace tessera::test_json_expr
