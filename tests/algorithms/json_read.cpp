// What a document of an algorithm may leave out, and its schema.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"
#include "tests/algorithms/samples.h"
#include "tests/support/words.h"

namespace tessera::test_json_read {

using namespace tessera::test;
using nlohmann::json;

static json document_in(const char *file) {
    std::ostringstream text;
    text << std::ifstream(std::string(TESSERA_SOURCE_DIR "/") + file).rdbuf();
    return json::parse(text.str());
}

static const json &schema_document() {
    static const json document = document_in("schedules/tessera-algorithm.schema.json");
    return document;
}

static bool schema_accepts(const json &document) {
    static valijson::Schema schema;
    static const bool populated = [] {
        valijson::SchemaParser(valijson::SchemaParser::kDraft7)
            .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_document()), schema);
        return true;
    }();
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return populated && validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

static bool reader_accepts(const json &document) {
    try {
        algorithm_from_json(document);
        return true;
    } catch (const UserError &) { return false; }
}

static json by_hand() { return document_in("examples/own_kernel/linear_silu.json"); }

static Algorithm in_cpp(const Numerics &numerics) {
    Builder f("linear_silu", numerics);
    const Dim M = f.dim("M"), K = f.dim("K"), N = f.dim("N");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), b = f.input("b", {N});
    const Tile acc = dot(x, w).named("acc");
    return f.output("y", silu(acc + b)).build();
}

TEST_CASE("json_read: a product by hand is what C++ declares") {
    const Algorithm read = algorithm_from_json(by_hand());
    verify(read);
    const Algorithm declared = in_cpp({});
    CHECK(to_json(read) == to_json(declared));
    CHECK(semantic_hash(read) == semantic_hash(declared));
    CHECK(surface_hash(read) == surface_hash(declared));
}

TEST_CASE("json_read: a policy by its name decides types, and what a fold adds up in") {
    json document = by_hand();
    document["numerics"] = "f64";
    CHECK(to_json(algorithm_from_json(document)) == to_json(in_cpp(numerics_named("f64"))));

    document["numerics"] = "bf16";
    document["steps"][1]["map"] = json::parse(R"(["cast", "bf16", ["silu", ["add", ["load", "acc"], ["cast", "f32", ["load", "b"]]]]])");
    CHECK(to_json(algorithm_from_json(document)) == to_json(in_cpp(numerics_named("bf16"))));

    document["numerics"] = "tf32";
    check_words([&] { algorithm_from_json(document); },
                {"error[json.value]: algorithm: /steps/0/reduce/monoid: the standard monoid 'dot' rounds "
                 "what it multiplies in the policy 'tf32'"});
    document["numerics"] = "bf17";
    check_words([&] { algorithm_from_json(document); }, {"error[numerics.unknown]: algorithm: /numerics: ", "bf16"});
}

// The document with all left out that follows from the rest.
static json shortest(const json &document) {
    json j = document;
    std::map<std::string, std::string> types;
    for (json &t : j["tensors"]) {
        types[t["name"]] = t["dtype"];
        if (t["dtype"] == j["numerics"]["storage"]) t.erase("dtype");
        if (t["role"] == "input") t.erase("role");
        if (t["dims"].empty()) t.erase("dims");
    }
    for (json &d : j["dims"])
        if (d.size() == 1) d = json(d["name"]);
    if (j["parameters"].empty()) j.erase("parameters");
    const std::function<void(json &)> strip = [&](json &e) {
        if (e.is_array() && e.size() > 2 && e[0] == "load" && types.count(e[1])) e.erase(2);
        if (e.is_array() && e.size() == 3 && e[0] == "parameter") e.erase(2);
        if (e.is_structured())
            for (json &part : e) strip(part);
    };
    for (json &step : j["steps"]) {
        for (const char *body : {"reduce", "scan"}) {
            if (!step.contains(body)) continue;
            json &fold = step[body];
            for (const StandardMonoid &row : standard_monoids)
                for (const DType type : {DType::f32, DType::f64, DType::i32})
                    if (fold["monoid"].is_object() && fold["monoid"]["name"] == row.name && fold["monoid"]["inputs"][0] == name_of(type) &&
                        (std::string(row.name) != "welford" || is_float(type)) && fold["monoid"] == to_json(row.make(type)))
                        fold["monoid"] = row.name;
            if (fold["monoid"].is_object()) fold["monoid"].erase("commutative");
            if (fold.value("inclusive", false)) fold.erase("inclusive");
        }
        if (step.contains("call")) {
            json &call = step["call"];
            const json tensors = call["tensors"];
            for (const auto &[own, callers] : tensors.items())
                if (callers == own) call["tensors"].erase(own);
            if (call["parameters"].empty()) call.erase("parameters");
        } else if (step["dims"].empty()) step.erase("dims");
        strip(step);
    }
    if (j["numerics"] == to_json(matmul())["numerics"]) j.erase("numerics");
    if (j.contains("callees"))
        for (json &callee : j["callees"]) callee = shortest(callee);
    return j;
}

TEST_CASE("json_read: what follows may be left out, and is the same algorithm") {
    for (const Algorithm &a : samples()) {
        INFO(a.name);
        const json whole = to_json(a), brief = shortest(whole);
        bool commutes = true;  // one that does not says so
        for (const Stage &s : a.stages()) commutes &= !is_fold(s) || monoid_of(s).commutative;
        if (!commutes) continue;
        CHECK(brief.dump().size() < whole.dump().size());
        CHECK(to_json(algorithm_from_json(brief)) == whole);
        CHECK(schema_accepts(brief));
    }
}

TEST_CASE("json_read: a call leaves out what has the caller's names") {
    json document = by_hand(), callee = document;
    callee.erase("format"), callee.erase("version");
    document["callees"] = {callee};
    document["steps"] = {{{"call", {{"scope", "up"}, {"callee", 0}, {"results", {{"y", "y"}}}}}}};
    const Algorithm read = algorithm_from_json(document);
    verify(read);
    const json call = to_json(read)["steps"][0]["call"];
    CHECK(call["dims"] == json{{"M", "M"}, {"K", "K"}, {"N", "N"}});
    CHECK(call["tensors"] == json{{"x", "x"}, {"w", "w"}, {"b", "b"}});
    CHECK(schema_accepts(document));

    document["numerics"] = "f64";
    const Algorithm wide = algorithm_from_json(document);
    CHECK(wide.calls()[0].callee->numerics.name == "f64");
}

TEST_CASE("json_read: numbers take their types from floats beside them") {
    const auto map = [](const json &e) {
        json document = by_hand();
        document["steps"][1]["map"] = e;
        return document;
    };
    const json product = json::parse(R"(["mul", ["load", "acc"], 0.1])");
    CHECK(to_json(algorithm_from_json(map(product)))["steps"][1]["map"] ==
          json::parse(R"(["mul", ["load", "acc", "f32", "M", "N"], ["f32", "0x1.99999ap-4"]])"));
    CHECK(to_json(algorithm_from_json(map({"mul", {"load", "acc"}, {"f32", 0.5}})))["steps"][1]["map"][2] == json{"f32", "0x1p-1"});
    check_words(
        [&] {
            algorithm_from_json(map({"add", 0.5, 0.5}));
        },
        {"error[json.expression]: algorithm: /steps/1/map/1: a number takes the type of floats beside it, and there are none; give it "
         "one: [\"f32\", 0.5]."});
    check_words([&] { algorithm_from_json(map({"mul", {"load", "acc"}, 1e300})); }, {"error[expr.number]: algorithm: /steps/1/map/2: "});
    check_words([&] { algorithm_from_json(map(0.5)); }, {"error[json.type]: algorithm: /steps/1/map: "});
}

TEST_CASE("json_read: what does not follow is refused with its place") {
    const auto changed = [](const std::string &pointer, const json &value) {
        json document = by_hand();
        document[json::json_pointer(pointer)] = value;
        return words([&] { algorithm_from_json(document); });
    };
    CHECK(changed("/steps/1/map", {"load", "ac"}) ==
          "error[json.expression]: algorithm: /steps/1/map: no type is given, and there is no tensor or result 'ac' before this; there are "
          "acc, b, w, x. Did you mean 'acc'? Give it one: [\"load\", \"x\", \"f32\", i, j].");
    CHECK(
        changed("/steps/1/map", {"parameter", "eps"}) ==
        "error[json.expression]: algorithm: /steps/1/map: no type is given, and there is no parameter 'eps'; give it one: [\"parameter\", "
        "\"eps\", \"f32\"].");
    CHECK(changed("/steps/0/reduce/monoid", "dott") ==
          "error[json.value]: algorithm: /steps/0/reduce/monoid: there is no standard monoid 'dott'; there are sum, product, max, min, "
          "max_number, dot, welford, argmax, recurrence, and others are said by an object of their parts. Did you mean 'dot'?");
    CHECK_THAT(changed("/steps/0/reduce/inputs", json::array()), Catch::Contains("takes its type from its inputs, and there are none."));
    CHECK_THAT(changed("/steps/0/reduce/inputs", {"K", "K"}),
               Catch::Contains("the standard monoid 'dot' folds no index; cast its inputs."));
}

// No type of an input breaks anything of ours.
TEST_CASE("json_read: each standard monoid folds each type, or says that it does not") {
    for (const StandardMonoid &row : standard_monoids)
        for (const DTypeTraits &type : dtypes) {
            if (std::string(type.name) == "index") continue;
            INFO(row.name << " of " << type.name);
            json document = by_hand();
            for (json &t : document["tensors"]) t["dtype"] = type.name;
            document["steps"][0]["reduce"]["monoid"] = row.name;
            const std::string said = words([&] { verify(algorithm_from_json(document)); });
            CHECK((said == "no error" || said.starts_with("error[")));
        }
}

TEST_CASE("json_read: the schema accepts what is written, and has the words that are read") {
    for (const Algorithm &a : samples()) {
        INFO(a.name);
        CHECK(schema_accepts(to_json(a)));
    }
    CHECK(schema_accepts(by_hand()));
    const json &definitions = schema_document()["definitions"];
    std::set<std::string> kinds,
        wanted = {"extent", "parameter", "load", "load_or", "bounded", "bitcast", "cast", "left", "right", "input", "@", "apply", "let"};
    for (const std::string kind : definitions["expression"]["anyOf"][2]["items"][0]["enum"]) kinds.insert(kind);
    for (const OpRow &row : op_table) wanted.insert(row.name);
    for (const FunctionRef &f : standard_functions()) wanted.insert(f->name);
    for (const DTypeTraits &type : dtypes) wanted.insert(type.name);
    CHECK(kinds == wanted);
    CHECK(definitions["dtype"]["enum"].size() == dtypes.size());
    CHECK(definitions["monoid"]["anyOf"][0]["enum"].size() == standard_monoids.size());
}

TEST_CASE("json_read: the schema refuses what the reader refuses") {
    const std::vector<std::pair<std::string, json>> changes = {
        {"/format", "tessera-schedule"},
        {"/version", 1},
        {"/name", 7},
        {"/outputs", "y"},
        {"/steps", json::object()},
        {"/extra", 1},
        {"/tensors/0/role", "output"},
        {"/tensors/0/dtype", "f33"},
        {"/tensors/0/dims", "M"},
        {"/tensors/0/dim", "M"},
        {"/dims", {{{"fixed", 1}}}},
        {"/dims", {{{"name", "M"}, {"fixed", 1}, {"size", 2}}}},
        {"/dims", {{{"name", "M"}, {"fixed", -1}}}},
        {"/steps/0/map", 1},
        {"/steps/0/reduce/monoid", "mean"},
        {"/steps/0/reduce/monoid", json::object()},
        {"/steps/0/reduce/axis", "K"},
        {"/steps/1/map", json::array()},
        {"/steps/1/map", {"sliu", {"load", "acc"}}},
        {"/steps/1/map", nullptr},
        {"/steps/1/call", {{"scope", "s"}}},
        {"/numerics", {{"name", "mine"}}},
        {"/numerics", 1},
        {"/effects", {"io"}},
        {"/checks", {{"y", {{"stabel", true}}}}},
        {"/ranges", {{"x", {0}}}},
    };
    for (const auto &[pointer, value] : changes) {
        INFO(pointer << " " << value);
        json document = by_hand();
        document[json::json_pointer(pointer)] = value;
        CHECK(!reader_accepts(document));
        CHECK(!schema_accepts(document));
    }
    for (const char *field : {"format", "version", "name", "steps", "outputs"}) {
        json document = by_hand();
        document.erase(field);
        CHECK(!reader_accepts(document));
        CHECK(!schema_accepts(document));
    }
}

}  // namespace tessera::test_json_read
