#include "schedules/artifact/read.h"

#include <nlohmann/json.hpp>

#include "schedules/artifact/artifact.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_read {

using nlohmann::json;
using test::check_words;
using test::words;

namespace {

// A document whose stage acc has these knobs.
json with_knobs(const std::string &knobs) {
    return {{"format", "tessera-schedule"}, {"version", 1}, {"name", "s"}, {"stages", {{"acc", json::parse(knobs)}}}};
}

void refused(const std::string &knobs, const std::vector<std::string> &parts) {
    INFO(knobs);
    check_words([&] { check_document(with_knobs(knobs), "test"); }, parts);
}

void refused_document(const std::string &patch, const std::vector<std::string> &parts) {
    INFO(patch);
    json document = {{"format", "tessera-schedule"}, {"version", 1}, {"name", "s"}};
    document.update(json::parse(patch));
    check_words([&] { check_document(document, "test"); }, parts);
}

}  // namespace

TEST_CASE("a document of every field is accepted") { CHECK_NOTHROW(check_document(json::parse(test::full_text), "test")); }

TEST_CASE("what is no schedule, or one of another version: the words") {
    check_words([] { check_document(json::parse("[]"), "x.json"); },
                {"error[schedule.type]: schedule 'x.json': expected an object; got [] (array)."});
    check_words([] { check_document(json::parse("{}"), "x.json"); },
                {"error[schedule.missing-field]: schedule 'x.json': expected a field 'format'; it has none. Add it."});
    refused_document(R"({"format": "tvm"})",
                     {"error[schedule.format]: schedule 'test' at /format: expected \"tessera-schedule\"; got \"tvm\"."});
    refused_document(R"({"version": 2})", {"error[schedule.version]: schedule 'test' at /version: the artifact has version 2; this Tessera "
                                           "reads version 1. Use the Tessera that wrote it"});
    refused_document(R"({"version": "1"})", {"at /version: expected an integer; got \"1\" (string). This Tessera reads version 1."});
}

TEST_CASE("names that are none, and parents outside the schedule folders: the words") {
    refused_document(R"({"name": "a b"})", {"error[schedule.name]: schedule 'test' at /name: expected a schedule's name",
                                            "got \"a b\". Name it as in \"linear_gelu/avx512\"."});
    refused_document(R"({"name": 3})",
                     {"error[schedule.type]", "at /name: expected a schedule's name; got 3 (number). Write it in quotes."});
    for (const char *parent : {"../../etc/passwd", "/etc/passwd", "a/../b", "", "a\\u0000b", "<script>"})
        refused_document(std::string(R"({"extends": ")") + parent + "\"}",
                         {"error[schedule.outside]: schedule 's' at /extends: expected a schedule's name inside the schedule folders"});
}

TEST_CASE("fields and knobs that are none: the words suggest one") {
    refused_document(R"({"stagse": {}})", {"error[schedule.unknown-field]: schedule 's' at /stagse: there is no field 'stagse' here; the "
                                           "fields are format, version, name, extends, algorithm, requires, stages, variants, measured.",
                                           "Did you mean 'stages'?"});
    refused_document(R"({"algorithm": {"hash": "x"}})",
                     {"at /algorithm/hash: there is no field 'hash' here; the fields are name, surface, transforms."});
    refused_document(R"({"variants": [{"when": [], "stages": {}, "if": 1}]})",
                     {"at /variants/0/if: there is no field 'if' here; the fields are when, stages."});
    refused(R"({"blok": {"M": 4}})", {"error[schedule.unknown-knob]: schedule 's' at /stages/acc/blok: there is no knob 'blok'; the knobs "
                                      "are place, block, k, micro, levels",
                                      "Did you mean 'block'?"});
    refused_document(R"({"stages": {"typo": {}}})", {"error[schedule.empty-stage]: schedule 's' at /stages/typo: the stage 'typo' has no "
                                                     "knobs, so it says nothing. State one, or remove the stage."});
    refused_document(R"({"variants": [{"when": [], "stages": {"": {}}}]})", {"at /variants/0/stages/: the stage '' has no knobs"});
    refused(R"({"blok": null})", {"error[schedule.unknown-knob]"});
    refused(R"({"swizzle": "xor"})",
            {"error[schedule.unknown-knob]: schedule 's' at /stages/acc/swizzle: there is no knob 'swizzle'; the knobs are place, block"});
    refused(R"({"stages": 2})", {"error[schedule.unknown-knob]: schedule 's' at /stages/acc/stages: there is no knob 'stages'"});
    refused(R"({"pack": {"w": {"to": "block"}}})",
            {"at /stages/acc/pack/w/to: there is no field 'to' here; the fields are at, layout, stages. Remove it or correct its name."});
    refused(R"({"split": {"K": {"how": "passes", "size": 4}}})",
            {"at /stages/acc/split/K/size: a split into passes runs over the whole dim and has no size. Remove it."});
}

TEST_CASE("fields that are missing: the words") {
    refused(R"({"split": {"K": {"size": 4}}})",
            {"error[schedule.missing-field]: schedule 's' at /stages/acc/split/K: expected a field 'how'; it has {\"size\":4}. Add it."});
    refused(R"({"split": {"K": {"how": "chunks"}}})", {"expected a field 'size'"});
    refused(R"({"directives": [{"op": "parallel", "loop": "K"}]})", {"at /stages/acc/directives/0: expected a field 'id'"});
    refused(R"({"directives": [{"id": "a", "op": "parallel"}]})", {"expected a field 'loop'"});
    refused_document(R"({"variants": [{"stages": {}}]})", {"at /variants/0: expected a field 'when'"});
    refused_document(R"({"variants": [{"when": []}]})", {"at /variants/0: expected a field 'stages'"});
}

TEST_CASE("values of another type: the words name the pointer, both types and the remedy") {
    refused(R"({"block": 4})", {"error[schedule.type]: schedule 's' at /stages/acc/block: expected an object of dims and a tile's extent; "
                                "got 4 (number). Write it in braces."});
    refused(R"({"block": {"a/b~": "4"}})", {"at /stages/acc/block/a~1b~0: expected an integer, a tile's extent from 1 to 65536; got \"4\" "
                                            "(string). Write a number without quotes"});
    refused(R"({"block": {"M": 4.0}})", {"got 4.0 (number)."});
    refused(R"({"block": {"M": true}})", {"got true (boolean)."});
    refused(R"({"loops": "block.M"})",
            {"at /stages/acc/loops: expected an array of strings; got \"block.M\" (string). Write it in brackets"});
    refused(R"({"loops": [1]})", {"at /stages/acc/loops/0: expected a string; got 1 (number). Write it in quotes."});
    refused(R"({"place": 1})", {"at /stages/acc/place: expected a place; got 1 (number)."});
    refused(R"({"pack": {"w": "block"}})", {"at /stages/acc/pack/w: expected an object with at, layout and stages"});
    refused(R"({"directives": {}})", {"expected an array of directives"});
    refused_document(R"({"stages": {"acc": 3}})", {"at /stages/acc: expected an object of knobs; got 3 (number)"});
    refused_document(R"({"stages": []})", {"at /stages: expected an object of stages and their knobs"});
    refused_document(R"({"stages": null})", {"at /stages: expected an object"});
    refused_document(R"({"requires": "avx2"})", {"at /requires: expected an array of strings"});
    refused_document(R"({"variants": {}})", {"at /variants: expected an array of variants"});
    refused_document(R"({"measured": 3})", {"at /measured: expected an object"});
    refused_document(R"({"algorithm": {"surface": 3}})", {"at /algorithm/surface: expected a string"});
    refused_document(R"({"algorithm": {"transforms": "grad x"}})", {"at /algorithm/transforms: expected"});
}

TEST_CASE("numbers out of range: the words") {
    for (const char *value : {"0", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551615"})
        for (const char *knob : {"block", "k", "micro"})
            refused(std::string("{\"") + knob + "\": {\"M\": " + value + "}}",
                    {std::string("error[schedule.range]: schedule 's' at /stages/acc/") + knob +
                     "/M: expected a tile's extent from 1 to 65536; got " + value + ". Choose a number in that range."});
    refused(R"({"levels": {"inner": {"M": 0}}})", {"at /stages/acc/levels/inner/M: expected a tile's extent"});
    for (const char *lanes : {"0", "-4", "128", "1000000000"})
        refused(std::string(R"({"vector": {"N": )") + lanes + "}}",
                {"error[schedule.range]", "expected a number of lanes from 1 to 64; got " + std::string(lanes)});
    for (const char *lanes : {"3", "48", "63"})
        refused(std::string(R"({"vector": {"N": )") + lanes + "}}",
                {"at /stages/acc/vector/N: expected a power of two from 1 to 64 as the number of lanes; got " + std::string(lanes)});
    refused(R"({"unroll": {"K": 257}})", {"expected a number of unrolled iterations from 1 to 256; got 257."});
    refused(R"({"unroll": {"K": 1000000000}})", {"error[schedule.range]"});
    refused(R"({"split": {"K": {"how": "chunks", "size": 0}}})",
            {"at /stages/acc/split/K/size: expected the size of a piece from 1 to 65536; got 0."});
    refused(R"({"split": {"K": {"how": "lanes", "size": -1}}})", {"got -1."});
    refused(R"({"warps": 1000000000})", {"expected a number of warps from 1 to 32"});
    refused(R"({"directives": [{"id": "a", "op": "unroll", "loop": "K", "factor": 1000000000}]})",
            {"at /stages/acc/directives/0/factor: expected a factor from 1 to 256"});
    refused(R"({"directives": [{"id": "a", "op": "vectorize", "loop": "K", "factor": 128}]})", {"expected a factor from 1 to 64"});
}

TEST_CASE("words that are not among the choices: the words suggest one") {
    refused(R"({"tail": {"M": "maks"}})",
            {"error[schedule.choice]: schedule 's' at /stages/acc/tail/M: there is no 'maks' here; choose one of mask, loop, narrow."});
    refused(R"({"split": {"K": {"how": "chunk", "size": 4}}})",
            {"choose one of chunks, threads, lanes, online, passes. Did you mean 'chunks'?"});
    refused(R"({"call": "twice"})", {"choose one of inline, once."});
    refused(R"({"directives": [{"id": "a", "op": "unrol", "loop": "K"}]})",
            {"choose one of unroll, vectorize, parallel. Did you mean 'unroll'?"});
}

TEST_CASE("prefetches: the words") {
    refused(
        R"({"prefetch": {"x": {"loop": "root"}}})",
        {"error[schedule.syntax]: schedule 's' at /stages/acc/prefetch/x/loop: expected a loop of a stage such as \"y.M\"; got 'root'."});
    refused(R"({"prefetch": {"x": {"ahead": 2}}})",
            {"at /stages/acc/prefetch/x/ahead: \"ahead\" needs a loop. Name one, as in \"loop\": \"y.M\", or remove it."});
    refused(R"({"prefetch": {"x": {"loop": "y.M", "ahead": 0}}})",
            {"at /stages/acc/prefetch/x/ahead: expected a number of iterations from 1 to 64"});
    refused(R"({"prefetch": {"x": {"at": "y.M"}}})", {"error[schedule.unknown-field]"});
}

TEST_CASE("texts without the form of a place, an axis, a condition or a level: the words") {
    refused(R"({"place": "rooot"})", {"error[schedule.syntax]: schedule 's' at /stages/acc/place: expected \"root\", \"inline\", a loop of "
                                      "a stage such as \"y.micro\", \"beside y\", or \"beside y in block.M\"; got 'rooot'."});
    refused(R"({"layout": ["N/48", "N*48"]})", {"at /stages/acc/layout/1: expected an axis of the form \"N\", \"N/48\", \"N%48\" or "
                                                "\"N%48/2\", whose first number is a multiple of the "
                                                "second; got 'N*48'."});
    refused(R"({"pack": {"w": {"layout": ["N/0"]}}})", {"at /stages/acc/pack/w/layout/0: expected a factor from 1 to 65536; got 'N/0'."});
    refused(R"({"pack": {"w": {"stages": 9}}})",
            {"at /stages/acc/pack/w/stages: expected a number of slices from 1 to 8; got 9"});
    refused(R"({"levels": {"micro": {"M": 4}}})", {"at /stages/acc/levels/micro: expected a name for a level that is not block, k, micro "
                                                   "or root and has no '.'; got 'micro'. Rename it."});
    refused(R"({"levels": {"a.b": {"M": 4}}})", {"error[schedule.syntax]"});
    refused_document(R"({"variants": [{"when": ["M = 4"], "stages": {}}]})",
                     {"at /variants/0/when/0: expected a condition such as \"M <= 16\", \"N % 16 == 0\" or \"avx512_bf16\"; got 'M = 4'."});
}

TEST_CASE("two directives of one id: the words") {
    refused(R"({"directives": [{"id": "a", "op": null}, {"id": "a", "op": "parallel", "loop": "K"}]})",
            {"error[schedule.directive]: schedule 's' at /stages/acc/directives/1/id: two directives have the id 'a'; an id names one. "
             "Rename one of them."});
}

TEST_CASE("hostile texts are refused with a typed error") {
    const std::string full = test::full_text;
    for (size_t length = 0; length + 1 < full.size(); length++)
        CHECK_THROWS_AS(Schedule::parse(full.substr(0, length), "x.json"), UserError);
    const std::string head = R"({"format": "tessera-schedule", "version": 1, "name": "s", )";
    const std::vector<std::string> texts = {"",
                                            "\xEF\xBB\xBF" + full,
                                            full + full,
                                            head + R"("name": "t"})",
                                            head + R"("measured": {"a": NaN}})",
                                            head + R"("measured": {"a": 1e999}})",
                                            head + R"("measured": {"a": 9223372036854775808}})",
                                            head + "\"measured\": {\"a\": \"\xFF\"}}",
                                            head + "\"measured\": {\"a\": \"\xC0\xAF\"}}",
                                            head + R"("measured": {"a": )" + std::string(100000, '[') + std::string(100000, ']') + "}}",
                                            full + std::string(1, '\0'),
                                            "null",
                                            "3",
                                            "\"a\""};
    for (const std::string &text : texts) {
        INFO(text.substr(0, 100));
        CHECK_THROWS_AS(Schedule::parse(text, "x.json"), UserError);
        CHECK_THAT(words([&] { Schedule::parse(text, "x.json"); }), Catch::Contains("x.json") || Catch::Contains("schedule 's'"));
    }
}

TEST_CASE("a flipped byte gives an error or another legal schedule, never anything else") {
    const std::string full = test::full_text;
    for (size_t i = 0; i < full.size(); i++)
        for (const char flip : {'\x01', '\x20', '\x80'}) {
            std::string text = full;
            text[i] = static_cast<char>(text[i] ^ flip);
            try {
                const Schedule s = Schedule::parse(text, "x.json");
                CHECK(Schedule::parse(s.text(), "x.json") == s);
            } catch (const UserError &) {}
        }
}

TEST_CASE("what would do nothing in a list or a variant: the words") {
    refused_document(R"({"requires": ["avx2", "fma", "avx2"]})",
                     {"error[schedule.repeated]: schedule 's' at /requires/2: 'avx2' is listed twice. Remove one of them."});
    refused(R"({"parallel": ["M", "M"]})", {"error[schedule.repeated]: schedule 's' at /stages/acc/parallel/1: 'M' is listed twice."});
    auto variants = [](const std::vector<std::vector<std::string>> &conditions) {
        json all = json::array();
        for (const auto &when : conditions) all.push_back({{"when", when}, {"stages", {{"acc", {{"block", {{"M", 4}}}}}}}});
        return json{{"variants", all}}.dump();
    };
    refused_document(variants({{"M <= 4"}, {}}),
                     {"error[schedule.dead-variant]: schedule 's' at /variants/1/when: expected a condition; got none, so that it always "
                      "applies and neither a "
                      "later variant nor the stages outside variants ever do. State a condition, or move its stages there."});
    refused_document(variants({{"M <= 4"}, {"avx2"}, {"M  <=4"}}),
                     {"error[schedule.dead-variant]: schedule 's' at /variants/2/when: it never applies, since variant 0, which comes "
                      "before it, does wherever M <= 4. Put it first, or remove it."});
    refused_document(variants({{"N < 9", "avx2"}, {"avx2", "M <= 4", "N < 9"}}),
                     {"at /variants/1/when: it never applies, since variant 0, ", "does wherever N < 9 and avx2."});
    std::vector<std::vector<std::string>> many;
    for (int i = 0; i < 64; i++) many.push_back({"M == " + std::to_string(i)});
    json document = {{"format", "tessera-schedule"}, {"version", 1}, {"name", "s"}};
    document.update(json::parse(variants(many)));
    CHECK_NOTHROW(check_document(document, "test"));
    many.push_back({"M == 64"});
    refused_document(variants(many), {"error[schedule.variants]: schedule 's' at /variants: expected at most 64 variants, each of which is "
                                      "compiled; got 65. Let one stand for several of them."});
}

TEST_CASE("text that would act on a terminal is refused, and its message does not") {
    refused_document(
        R"({"stages": {"a\u001b[2J\n": {}}})",
        {"error[schedule.characters]: schedule 's' at /stages/a\\u001b[2J\\u000a: expected text without control and format characters; "
         "got 'a\\u001b[2J\\u000a'. Remove them."});
    refused_document(R"({"\u202efield": 1})", {"error[schedule.characters]: schedule 's' at /\\u202efield: "});
    refused_document(R"({"measured": {"host": ["x", "\u009b1m"]}})", {"at /measured/host/1: "});
    refused_document(R"({"requires": ["\u0007"]})", {"error[schedule.characters]: schedule 's' at /requires/0: "});
    // Before the name is known.
    check_words([] { check_document(json{{"format", "\x1b[2J\n"}}, "x\x1b.json"); }, {"schedule 'x\\u001b.json' at /format: "});
}

TEST_CASE("a layout's factor out of range is called that") {
    for (const char *axis : {"N/1000000000", "N%0", "N/99999999999999999999"})
        refused(R"({"layout": [")" + std::string(axis) + R"("]})",
                {"error[schedule.range]: schedule 's' at /stages/acc/layout/0: expected a factor from 1 to 65536; got '" +
                 std::string(axis) + "'. Choose"});
    refused(R"({"layout": ["N/-1"]})", {"error[schedule.syntax]"});
    refused(R"({"layout": ["N/4/4"]})", {"error[schedule.syntax]"});
}

}  // namespace tessera::test_read
