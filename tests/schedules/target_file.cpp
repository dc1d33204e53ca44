#include "schedules/target/target_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "tests/support/words.h"

namespace tessera::test_target_file {

using nlohmann::json;
using test::check_words;
namespace fs = std::filesystem;

namespace {

Target sample() {
    Target t = target_named("avx512+avx512_bf16");
    t.vector_registers = 28;
    t.l1_bytes = 32 << 10, t.l2_bytes = 1 << 20, t.l3_bytes = 96 << 20;
    Measured m;
    m.processor = "a \"processor\"";
    m.threads = 8;
    m.peaks = {{"f32", {1.5e11, 1e12, 0.01}}, {"bf16", {5e11, 4e12, 0.25}}};
    m.read = {{"l1", {3e11, 2.4e12, 0.002}}, {"memory", {2e10, 4e10, 0}}};
    m.copy = {{"l2", {1e11, 8e11, 0.01}}};
    m.parallel_loop_s = 1.25e-6;
    t.measured = m;
    return t;
}

const json &schema_document() {
    static const json document = json::parse(std::ifstream(fs::path(TESSERA_SOURCE_DIR) / "schedules/tessera-target.schema.json"));
    return document;
}

bool schema_accepts(const json &document) {
    valijson::Schema schema;
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_document()), schema);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

json with(const std::string &pointer, const json &value) {
    json document = json::parse(target_text(sample()));
    document[json::json_pointer(pointer)] = value;
    return document;
}

std::vector<std::string> names_in(const json &object) {
    std::vector<std::string> names;
    for (const auto &[name, value] : object.items()) names.push_back(name);
    return names;
}

std::vector<std::string> sorted(std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
}

}  // namespace

TEST_CASE("a target file's round trip is the identity") {
    CHECK(parse_target(target_text(sample()), "t.json") == sample());
    for (const char *name : {"x86-64", "avx2", "avx512+avx512_vnni"})
        CHECK(parse_target(target_text(target_named(name)), "t.json") == target_named(name));
    CHECK(target_text(parse_target(target_text(sample()), "t.json")) == target_text(sample()));
}

TEST_CASE("a file that says little is the target that it names") {
    CHECK(parse_target(R"({"format": "tessera-target", "version": 1, "name": "avx2"})", "t.json") == target_named("avx2"));
}

TEST_CASE("a target may be named by its file") {
    const fs::path file = fs::temp_directory_path() / ("tessera-target-" + std::to_string(getpid()) + ".json");
    std::ofstream(file) << target_text(sample());
    CHECK(target_or_file(file.string()) == sample());
    CHECK(target_or_file(file.string()).name == "avx512+avx512_bf16");
    fs::remove(file);
    check_words([&] { target_or_file(file.string()); },
                {"error[target.file]: target file '", "expected a regular file; opening it failed: No such file or directory."});
    check_words([] { target_or_file("/dev/null/a.json"); }, {"error[target.file]"});
}

TEST_CASE("the target schema knows the fields that the parser knows, and accepts what it accepts") {
    const json &schema = schema_document();
    CHECK(names_in(schema["properties"]) == sorted(target_fields()));
    CHECK(names_in(schema["properties"]["measured"]["properties"]) == sorted(measured_fields()));
    CHECK(names_in(schema["properties"]["measured"]["properties"]["peaks"]["properties"]) == sorted(peak_names()));
    CHECK(names_in(schema["definitions"]["rates"]["properties"]) == sorted(memory_names()));
    for (const Target &t : {sample(), target_named("x86-64"), target_named("host")}) CHECK(schema_accepts(json::parse(target_text(t))));
}

TEST_CASE("a broken target file is refused by the schema and by the parser") {
    const std::string m = "/measured/";
    const std::vector<std::pair<std::string, json>> broken = {{"/format", "tessera-schedule"},
                                                              {"/format", 1},
                                                              {"/version", 2},
                                                              {"/version", "1"},
                                                              {"/name", "host"},
                                                              {"/name", "host+fma"},
                                                              {"/name", 3},
                                                              {"/name", "a.json"},
                                                              {"/extra", 1},
                                                              {"/vector", 64},
                                                              {"/vector/bytes", 24},
                                                              {"/vector/bytes", 128},
                                                              {"/vector/registers", 0},
                                                              {"/vector/registers", 33},
                                                              {"/vector/lanes", 1},
                                                              {"/caches/l1", 0},
                                                              {"/caches/l1", 32768.5},
                                                              {"/caches/l4", 1},
                                                              {"/caches/l3", int64_t{1} << 41},
                                                              {"/measured", 1},
                                                              {m + "processor", 1},
                                                              {m + "threads", 0},
                                                              {m + "threads", 1.5},
                                                              {m + "peaks/f16", json::object()},
                                                              {m + "peaks/f32", 1e9},
                                                              {m + "peaks/f32/one_thread", -1},
                                                              {m + "peaks/f32/one_thread", "1"},
                                                              {m + "peaks/f32/spread", -0.1},
                                                              {m + "read/l4", json::object()},
                                                              {m + "copy/l2/all_threads", 1e19},
                                                              {m + "parallel_loop_s", -1},
                                                              {m + "when", "today"}};
    for (const auto &[pointer, value] : broken) {
        const json document = with(pointer, value);
        INFO(pointer + " = " + value.dump());
        CHECK_FALSE(schema_accepts(document));
        CHECK_THROWS_AS(parse_target(document.dump(), "t.json"), UserError);
    }
    for (const std::string gone :
         {"/format", "/version", "/name", "/vector/bytes", "/caches/l2", "/measured/threads", "/measured/peaks/f32/spread"}) {
        const json::json_pointer at(gone);
        json document = json::parse(target_text(sample()));
        document[at.parent_pointer()].erase(at.back());
        INFO(gone);
        CHECK_FALSE(schema_accepts(document));
        CHECK_THROWS_AS(parse_target(document.dump(), "t.json"), UserError);
    }
}

TEST_CASE("the errors of target files: the words") {
    auto check_with = [](const std::string &pointer, const json &value, const std::vector<std::string> &parts) {
        check_words([&] { parse_target(with(pointer, value).dump(), "t.json"); }, parts);
    };
    check_with("/format", "tvm",
               {"error[target.format]: t.json: /format: expected \"tessera-target\"; got \"tvm\". Hand in a target file, as doctor "
                "--calibrate writes it."});
    check_with("/version", 2,
               {"error[target.version]: t.json: /version: the target file has version 2; this Tessera reads version 1. Calibrate anew."});
    check_with(
        "/name", "host",
        {"error[target.base]: t.json: /name: expected a target that is the same on every machine; got 'host'. The targets are "
         "x86-64, avx2, avx512, znver4, znver5, sapphirerapids, amx, arm64, wasm32, opencl, cuda-sm80, cuda-sm86, cuda-sm90, with features "
         "added by "
         "+."});
    check_with("/name", "avx51", {"error[target.unknown]: t.json: /name: there is no target 'avx51'", "Did you mean 'avx512'?"});
    check_with("/name", "avx2+bf16", {"error[target.unknown-feature]: t.json: /name: "});
    check_with("/cache", 1,
               {"error[json.unknown-field]: t.json: /cache: there is no field of this name; the fields are format, version, name, vector, "
                "caches, measured. Did you mean 'caches'?"});
    check_with("/caches/l2", 1024, {"error[json.value]: t.json: /caches/l2: expected an integer in 32768 ..= 1099511627776, got 1024."});
    check_with("/vector/bytes", 48, {"error[json.value]: t.json: /vector/bytes: expected a power of two, got 48."});
    check_with("/vector/registers", 64, {"/vector/registers: expected an integer in 4 ..= 32, got 64."});
    check_with("/measured/peaks/f32/one_thread", 0,
               {"error[json.value]: t.json: /measured/peaks/f32/one_thread: expected a number in 1.0 ..= 1e+18, got 0."});
    check_words([] { parse_target("{\"format\": 1, \"format\": 2}", "t.json"); }, {"error[json.repeated-key]: t.json:1:"});
    check_words([] { parse_target("", "t.json"); }, {"error[json.syntax]"});
    check_words([] { parse_target("[]", "t.json"); }, {"error[json.type]: t.json: the whole value: expected an object, got an array."});
}

}  // namespace tessera::test_target_file
