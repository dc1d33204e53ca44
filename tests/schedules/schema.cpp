#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "schedules/artifact/artifact.h"
#include "schedules/knobs/canonical.h"
#include "schedules/knobs/knob.h"
#include "support/text/error.h"
#include "tests/schedules/samples.h"

namespace tessera::test_schema {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path source = TESSERA_SOURCE_DIR;

std::string text_of(const fs::path &file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

const json &schema_document() {
    static const json document = json::parse(text_of(source / "schedules/tessera-schedule.schema.json"));
    return document;
}

bool schema_accepts(const json &document) {
    static valijson::Schema schema;
    static const bool populated = [] {
        valijson::SchemaParser(valijson::SchemaParser::kDraft7)
            .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_document()), schema);
        return true;
    }();
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return populated && validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

bool parser_accepts(const json &document) {
    try {
        Schedule::from_json(document, "test");
        return true;
    } catch (const UserError &) { return false; }
}

json with(const std::string &pointer, const json &value) {
    json document = json::parse(test::full_text);
    document[json::json_pointer(pointer)] = value;
    return document;
}

}  // namespace

TEST_CASE("the schema and the parser accept every schedule in the repository, in canonical text") {
    for (const char *folder : {"schedules", "examples", "tests"}) {
        if (!fs::exists(source / folder)) continue;
        for (const auto &entry : fs::recursive_directory_iterator(source / folder)) {
            if (entry.path().extension() != ".json" || entry.path().stem().extension() == ".schema") continue;
            const json document = json::parse(text_of(entry.path()), nullptr, false);
            if (!document.is_object() || document.value("format", json()) != "tessera-schedule") continue;
            INFO(entry.path());
            CHECK(schema_accepts(document));
            CHECK(parser_accepts(document));
            CHECK(text_of(entry.path()) == canonical_text(document));
        }
    }
}

TEST_CASE("the schema accepts what the parser accepts") {
    CHECK(schema_accepts(json::parse(test::full_text)));
    std::mt19937 random(5);
    const Library library;
    for (int i = 0; i < 100; i++) {
        const json document = test::random_chain(random, 1 + i % 3, library).document();
        INFO(document.dump());
        CHECK(parser_accepts(document));
        CHECK(schema_accepts(document));
    }
}

TEST_CASE("the schema knows the fields and knobs that the parser knows") {
    const json &schema = schema_document();
    auto names = [](const json &properties) {
        std::vector<std::string> result;
        for (const auto &[name, value] : properties.items()) result.push_back(name);
        return result;
    };
    auto sorted = [](std::vector<std::string> list) {
        std::sort(list.begin(), list.end());
        return list;
    };
    CHECK(names(schema["properties"]) == sorted(document_fields()));
    CHECK(names(schema["definitions"]["knobs"]["properties"]) == sorted(knob_names()));
}

TEST_CASE("the schema has the parser's limits") {
    const json &definitions = schema_document()["definitions"];
    CHECK(definitions["extents"]["additionalProperties"]["maximum"] == max_tile);
    CHECK(definitions["split"]["oneOf"][0]["properties"]["size"]["maximum"] == max_tile);
    const json &variants = schema_document()["properties"]["variants"];
    json document = json::parse(test::full_text);
    document["variants"] = json::array();
    for (int i = 0; i < variants["maxItems"]; i++)
        document["variants"].push_back({{"when", {"M == " + std::to_string(i)}}, {"stages", json::object()}});
    CHECK((schema_accepts(document) && parser_accepts(document)));
    document["variants"].push_back({{"when", {"M == -1"}}, {"stages", json::object()}});
    CHECK_FALSE(schema_accepts(document));
    CHECK_FALSE(parser_accepts(document));
}

TEST_CASE("what is broken is refused by the schema and by the parser") {
    const std::string acc = "/stages/acc/";
    const std::vector<std::pair<std::string, json>> broken = {{"/format", "tvm"},
                                                              {"/version", 2},
                                                              {"/version", "1"},
                                                              {"/name", ""},
                                                              {"/name", "../a"},
                                                              {"/name", "a//b"},
                                                              {"/name", "/a"},
                                                              {"/name", "a/.."},
                                                              {"/name", "a b"},
                                                              {"/extends", "../../etc/passwd"},
                                                              {"/extends", nullptr},
                                                              {"/algorithm", "gemm"},
                                                              {"/algorithm/hash", "x"},
                                                              {"/requires", "avx2"},
                                                              {"/requires/0", 3},
                                                              {"/stages", nullptr},
                                                              {"/stages", json::array()},
                                                              {"/stages/acc", 3},
                                                              {"/variants", json::object()},
                                                              {"/variants/0/when", "M < 4"},
                                                              {"/variants/0/when/0", "M = 4"},
                                                              {"/variants/0/when/0", ""},
                                                              {"/variants/0/stages", nullptr},
                                                              {"/variants/0/extra", 1},
                                                              {"/measured", 3},
                                                              {"/extra", 1},
                                                              {acc + "blok", 1},
                                                              {acc + "place", "rooot"},
                                                              {acc + "place", 3},
                                                              {acc + "block/M", 0},
                                                              {acc + "block/M", -1},
                                                              {acc + "block/M", 2147483648},
                                                              {acc + "block/M", "4"},
                                                              {acc + "block/M", 4.5},
                                                              {acc + "block", 4},
                                                              {acc + "levels/block", json::object()},
                                                              {acc + "levels/a.b", json::object()},
                                                              {acc + "levels/inner", 3},
                                                              {acc + "loops", "K"},
                                                              {acc + "loops/0", 3},
                                                              {acc + "vector/N", 3},
                                                              {acc + "vector/N", 128},
                                                              {acc + "unroll/K", 257},
                                                              {acc + "unroll/K", 0},
                                                              {acc + "parallel", 1},
                                                              {acc + "pack/w", "block"},
                                                              {acc + "pack/w/to", "block"},
                                                              {acc + "pack/w/layout/0", "N*4"},
                                                              {acc + "pack/w/at", nullptr},
                                                              {acc + "layout", "N"},
                                                              {acc + "tail/M", "shift"},
                                                              {acc + "split/K/how", "chunk"},
                                                              {acc + "split/K/size", 0},
                                                              {acc + "split/L/size", 4},
                                                              {acc + "split/K", json{{"how", "lanes"}}},
                                                              {acc + "split/R/lanes", json::array()},
                                                              {acc + "split/R/lanes", {64, 1}},
                                                              {acc + "split/R/lanes", {64, 64}},
                                                              {acc + "split/R/lanes", 64},
                                                              {acc + "split/R/how", "lanes"},
                                                              {acc + "split/R/size", 64},
                                                              {acc + "use", "../x"},
                                                              {acc + "use", 3},
                                                              {acc + "instruction", ""}, {acc + "instruction", "a b"},
                                                              {acc + "call", "twice"},
                                                              {acc + "warps", 0},
                                                              {acc + "warps", 33},
                                                              {acc + "stages", 2},
                                                              {acc + "swizzle", "xor"},
                                                              {acc + "directives", json::object()},
                                                              {acc + "directives/0/op", "unrol"},
                                                              {acc + "directives/0/factor", 257},
                                                              {acc + "directives/1", json{{"op", nullptr}}},
                                                              {"/requires", {"avx2", "avx2"}},
                                                              {acc + "parallel", {"M", "M"}},
                                                              {acc + "loops", {"M", "M"}},
                                                              {"/variants/0/when", json::array()}};
    for (const auto &[pointer, value] : broken) {
        INFO(pointer + " = " + value.dump());
        CHECK_FALSE(schema_accepts(with(pointer, value)));
        CHECK_FALSE(parser_accepts(with(pointer, value)));
    }
    for (const char *field : {"format", "version", "name"}) {
        json document = json::parse(test::full_text);
        document.erase(field);
        INFO(field);
        CHECK_FALSE(schema_accepts(document));
        CHECK_FALSE(parser_accepts(document));
    }
}

}  // namespace tessera::test_schema
