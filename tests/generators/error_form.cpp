// --errors json: where a command ends with an error, the last line of stderr is one JSON object.
#include "generators/commands/error_form.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "algorithms/build/tile_functions.h"
#include "tests/generators/harness.h"

namespace tessera::test_error_form {

using namespace tessera::test;
using nlohmann::json;

// The last line of stderr, when every line before is such an object too.
static json last_line(const Outcome &outcome) {
    json last;
    std::istringstream lines(outcome.err);
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        REQUIRE(json::accept(line));
        last = json::parse(line);
        CHECK((last["kind"] == "error" || last["kind"] == "note" || last["kind"] == "warning"));
        CHECK(last["text"].get<std::string>().find("error[") == std::string::npos);
    }
    REQUIRE(last.is_object());
    return last;
}

static json error_of(std::vector<std::string> arguments, int code = 2, const Registry &registry = sample_registry()) {
    arguments.insert(arguments.end(), {"--errors", "json"});
    const Outcome outcome = generator(arguments, registry);
    INFO(outcome.err);
    CHECK(outcome.code == code);
    const json error = last_line(outcome);
    CHECK(error["kind"] == "error");
    return error;
}

static std::string written(const TemporaryFolder &folder, const std::string &name, const std::string &text) {
    const std::filesystem::path file = folder.path() / name;
    std::ofstream(file) << text;
    return file.string();
}

TEST_CASE("errors: a mistake of the command line is an object of its id, text and remedy") {
    CHECK(error_of({"show"}) == json{{"kind", "error"},
                                     {"id", "command.arguments"},
                                     {"text",
                                      "tessera-generator show: algorithm is required; tessera-generator show --help describes the "
                                      "arguments."},
                                     {"remedy", "tessera-generator show --help describes the arguments."}});
    const json unknown = error_of({"list", "--colour"});
    CHECK(unknown["id"] == "command.arguments");
    CHECK(unknown["text"].get<std::string>().find("--colour") != std::string::npos);
    const json command = error_of({"lst"});
    CHECK(command["id"] == "command.unknown");
    CHECK(command["text"].get<std::string>().find("got 'lst'; ") != std::string::npos);
    CHECK(error_of({})["text"].get<std::string>().find("got no command") != std::string::npos);
}

TEST_CASE("errors: the option stands before the command, with = or behind all; another form is refused in words") {
    for (const std::vector<std::string> &words : std::vector<std::vector<std::string>>{
             {"--errors", "json", "show"}, {"--errors=json", "show"}, {"show", "--errors=json"}, {"--errors", "json", "shw"}}) {
        const Outcome outcome = generator(words);
        CHECK(outcome.code == 2);
        CHECK(last_line(outcome)["kind"] == "error");
    }
    check_refused({"show", "matmul", "--errors", "xml"},
                  {"error[command.arguments]: tessera-generator show: ", "expected text or json, got 'xml'"});
    check_refused({"show", "--errors", "text"}, {"error[command.arguments]: tessera-generator show: algorithm is required"});
}

TEST_CASE("errors: every command has them, and its help says so") {
    for (const char *command : {"list", "show", "generate", "explain", "diff", "verify", "bench", "tune", "check", "records", "cost-model",
                                "quantize", "doctor", "import", "export", "bundle", "registry", "replay"}) {
        INFO(command);
        CHECK(error_of({command, "--no-such-option"})["id"] == "command.arguments");
        CHECK_THAT(generator({command, "--help"}).out, Catch::Contains("--errors FORM"));
    }
    CHECK_THAT(generator({"--help"}).out, Catch::Contains("--errors FORM"));
}

TEST_CASE("errors: what is wrong in a schedule has its place and the stage") {
    const TemporaryFolder folder;
    const std::string file = written(folder, "mine.json", R"({"format": "tessera-schedule", "version": 1, "name": "matmul/mine",
                                     "stages": {"y": {"micro": {"H": 4}}}})");
    const json error = error_of({"show", "matmul", "--schedule", file, "--target", "avx2", "--what", "tiles"});
    CHECK(error["id"] == "schedule.unknown-dim");
    CHECK(error["stage"] == "y");
    CHECK(error["pointer"] == "/stages/y/micro/H");
    CHECK(error["document"].get<std::string>().starts_with("schedule '"));
    CHECK(error["span"]["line"].get<int>() > 0);
    CHECK(error["span"]["file"].get<std::string>().find('/') == std::string::npos);
}

TEST_CASE("errors: a hostile file is named by its line or pointer, in printable JSON") {
    const TemporaryFolder folder;
    const json cut = error_of({"show", written(folder, "cut.json", "{\n  \"format\": \"tessera-algorithm\",\n  \"version\": }")});
    CHECK(cut["span"] == json{{"file", "cut.json"}, {"line", 3}});
    CHECK(cut["pointer"] == "");
    const json wrong = error_of({"show", written(folder, "wrong.json", R"({"format": "tessera-algorithm", "version": 2, "name": 7})")});
    CHECK(wrong["id"] == "json.type");
    CHECK(wrong["pointer"] == "/name");
    const json evil = error_of({"show", "\x1b[2J\xff\u202e"});
    CHECK(evil["id"] == "generator.unknown-algorithm");
    CHECK(evil["text"].get<std::string>().find('\x1b') == std::string::npos);
    const json absent = error_of({"show", "absent.json"});
    CHECK(absent["remedy"].get<std::string>().size() > 10);
    CHECK(absent["text"].get<std::string>().ends_with(absent["remedy"].get<std::string>()));
}

TEST_CASE("errors: those of a declaration have its line, in words too") {
    Registry registry;
    const int line = __LINE__ + 3;
    registry.add("wrong", "", [](const Numerics &n) {
        Builder f("wrong", n);
        Tile x = f.input("x", {f.dim("M")}), y = transpose(x);
        return f.output("y", y).build();
    });
    const std::string words = "transpose wants a tile of at least two dims, got x[M].";
    const json error = error_of({"show", "wrong"}, 2, registry);
    CHECK(error == json{{"kind", "error"}, {"id", "shape.rank"}, {"text", words}, {"span", {{"file", "error_form.cpp"}, {"line", line}}}});
    check_refused({"show", "wrong"}, {"error_form.cpp:" + std::to_string(line) + ": error[shape.rank]: " + words}, 2, registry);
}

TEST_CASE("errors: several are a list, and the object is the first") {
    Registry registry;
    for (const char *name : {"one", "two"})
        registry.add(name, "", [=](const Numerics &) -> Algorithm { throw UserError("algorithm.own", std::string(name) + " is wrong."); });
    const json error = error_of({"list"}, 2, registry);
    REQUIRE(error["errors"].size() == 2);
    CHECK(error["text"] == error["errors"][0]["text"]);
    CHECK(error["errors"][1] == json{{"kind", "error"}, {"id", "algorithm.own"}, {"text", "two is wrong."}});
}

TEST_CASE("errors: an error of Tessera's is one too") {
    Registry registry;
    registry.add("broken", "", [](const Numerics &) -> Algorithm { throw InternalError("words"); });
    const json error = error_of({"show", "broken"}, 3, registry);
    CHECK(error == json{{"kind", "error"}, {"id", "internal"}, {"text", InternalError("words").what()}});
}

TEST_CASE("errors: notes are lines before, with their ids, and a command that ends well has no error") {
    const Outcome outcome = generator({"show", "matmul", "--what", "tiles", "--target", "avx2", "--errors", "json"});
    CHECK(outcome.code == 0);
    const json note = last_line(outcome);
    CHECK(note["kind"] == "note");
    CHECK(!note["id"].get<std::string>().empty());
}

}  // namespace tessera::test_error_form
