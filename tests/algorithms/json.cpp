#include "algorithms/text/json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "algorithms/transform/inline_calls.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_json {

using namespace tessera::test;
using nlohmann::json;

static std::string words(const json &j) {
    try {
        algorithm_from_json(j);
    } catch (const UserError &e) { return e.words(); }
    return "accepted";
}

static json with(const json &base, const std::string &pointer, const json &value) {
    json changed = base;
    changed[json::json_pointer(pointer)] = value;
    return changed;
}

TEST_CASE("json: algorithms round-trip") {
    for (const Algorithm &a : samples()) {
        INFO(a.name);
        json j = to_json(a);
        Algorithm back = algorithm_from_json(parse_json(j.dump(), a.name));
        CHECK(same(back, a));
        CHECK(to_json(back) == j);
    }
}

TEST_CASE("json: inlined algorithms round-trip, fixed dims keep their constraints") {
    Algorithm inlined = inline_calls(feed_forward());
    CHECK(same(algorithm_from_json(to_json(inlined)), inlined));
    Algorithm fixed = matmul();
    fixed.dims[1].kind = DimKind::fixed, fixed.dims[1].value = 3072;
    CHECK(same(algorithm_from_json(to_json(fixed)), fixed));
}

TEST_CASE("json: a callee is written once, however it is shared") {
    Algorithm a = feed_forward();
    json j = to_json(a);
    CHECK(j["callees"].size() == 1);
    a.calls()[1].callee = std::make_shared<Algorithm>(*a.calls()[1].callee);
    CHECK(to_json(a) == j);
    Algorithm back = algorithm_from_json(j);
    CHECK(back.calls()[0].callee == back.calls()[1].callee);

    auto level = std::make_shared<const Algorithm>(softmax());
    for (int i = 0; i < 40; i++) {
        Algorithm next = softmax();
        next.name += std::to_string(i);
        for (const char *scope : {"a", "b"}) next.steps.push_back(Call{scope, level, {{"M", "M"}, {"N", "N"}}, {{"x", "x"}}, {}});
        level = std::make_shared<const Algorithm>(next);
    }
    json nested = to_json(*level);
    CHECK(nested["callees"].size() == 40);
    CHECK(to_json(algorithm_from_json(parse_json(nested.dump(), "nested"))) == nested);
}

TEST_CASE("json: mistakes are refused with their place") {
    json j = to_json(matmul());
    CHECK(words(j) == "accepted");
    CHECK(words(json::array()) == "error[json.type]: algorithm: the whole value: expected an object, got an array.");
    CHECK(words(with(j, "/format", "onnx")) ==
          "error[json.version]: algorithm: /format: expected the format \"tessera-algorithm\", got \"onnx\".");
    CHECK(words(with(j, "/version", 1)) ==
          "error[json.version]: algorithm: /version: this build reads version 2, the text has version 1; write it again with this build or "
          "read "
          "it with the one that wrote it.");
    CHECK(words(with(j, "/stepss", 2)) ==
          "error[json.unknown-field]: algorithm: /stepss: there is no field of this name; the fields are name, dims, parameters, tensors, "
          "steps, "
          "outputs, numerics, effects, large, ranges, checks, rule, format, version, callees. Did you mean 'steps'?");
    json missing = j;
    missing["dims"][0].erase("name");
    CHECK(words(missing) == "error[json.missing]: algorithm: /dims/0: the field 'name' is missing; the fields here are max, min. Add it.");
    CHECK(words(with(j, "/dims/1/multiple_of", 0)) ==
          "error[json.value]: algorithm: /dims/1/multiple_of: expected an integer in 1 ..= 2147483647, got 0.");
    CHECK(words(with(j, "/dims/2/size", 1)) ==
          "error[json.value]: algorithm: /dims/2: a dim has \"fixed\" or \"size\", got both; remove one.");
    CHECK(words(with(j, "/tensors/0/role", "inputs")) ==
          "error[json.value]: algorithm: /tensors/0/role: there is no role 'inputs'; expected one of input, state, constant. Did you mean "
          "'input'?");
    CHECK(words(with(j, "/tensors/0/dtype", "f31"))
              .find("error[dtype.unknown]: algorithm: /tensors/0/dtype: there is no element type 'f31'; ") == 0);
    CHECK(words(with(j, "/steps/1/scan", json::object()))
              .find("error[json.missing]: algorithm: /steps/1/scan: the field 'monoid' is missing; ") == 0);
    json scan = to_json(prefix_sums());
    CHECK_FALSE(scan["steps"][0]["scan"].contains("direction"));
    CHECK_FALSE(scan["steps"][0]["scan"].contains("segments"));
    CHECK(words(with(scan, "/steps/0/scan/direction", "backwards")) ==
          "error[json.value]: algorithm: /steps/0/scan/direction: there is no direction 'backwards'; expected one of forward, backward. "
          "Did you mean 'backward'?");
    json two = with(j, "/steps/1/reduce", j["steps"][0]["reduce"]);
    CHECK(words(two) == "error[json.value]: algorithm: /steps/1: a stage has one of map, values, reduce, scan and update, got 2 of them.");
    CHECK(words(with(j, "/steps/0/reduce/monoid/lift", json::array())) ==
          "error[json.value]: algorithm: /steps/0/reduce/monoid/lift: expected one expression for each of the 1 parts, got 0.");
    CHECK(words(with(j, "/steps/0/reduce/monoid/batch_parts/0", 7)) ==
          "error[json.value]: algorithm: /steps/0/reduce/monoid/batch_parts/0: expected an integer in 0 ..= 0, got 7.");
    CHECK(words(with(j, "/steps/0/reduce/inputs/1", json::array({"ad", 1, 2})))
              .find("error[json.expression]: algorithm: /steps/0/reduce/inputs/1/0: ") == 0);
    CHECK(words(with(j, "/effects", {"noise"})) ==
          "error[json.value]: algorithm: /effects/0: there is no effect 'noise'; expected one of memory, random.");
    CHECK(words(with(j, "/numerics/saturate", 1)) ==
          "error[json.type]: algorithm: /numerics/saturate: expected true or false, got an integer.");
}

TEST_CASE("json: a callee stands before its callers") {
    json j = to_json(feed_forward());
    CHECK(words(with(j, "/steps/0/call/callee", 1)) ==
          "error[json.value]: algorithm: /steps/0/call/callee: expected an integer in 0 ..= 0, got 1.");
    json self = with(j, "/callees/0/steps", j["steps"]);
    CHECK(words(self) ==
          "error[json.value]: algorithm: /callees/0/steps/0/call/callee: \"callees\" lists no algorithm before this one; a callee stands "
          "before "
          "its callers.");
}

TEST_CASE("json: any field replaced by another kind of value is read or refused") {
    for (const Algorithm &a : {matmul(), feed_forward(), ring_buffer()}) {
        json j = to_json(a), flat = j.flatten();
        for (auto &[pointer, value] : flat.items())
            for (const json &other : {json(), json(-1), json(1e300), json("x"), json::array(), json::object(), json(true)}) {
                std::string said = words(with(j, pointer, other));
                REQUIRE((said == "accepted" || said.find("error[") == 0));
            }
    }
}

}  // namespace tessera::test_json
