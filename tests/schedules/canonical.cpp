#include "schedules/knobs/canonical.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schedules/artifact/artifact.h"
#include "tests/schedules/samples.h"

namespace tessera::test_canonical {

using nlohmann::json;

TEST_CASE("printing what was parsed from canonical text gives that text") {
    CHECK(canonical_text(json::parse(test::full_text)) == test::full_text);
}

TEST_CASE("parsing what was printed gives the value, and prints the same again") {
    std::mt19937 random(1);
    Library library;
    for (int i = 0; i < 200; i++) {
        const Schedule s = test::random_chain(random, 1 + i % 4, library);
        const Schedule again = Schedule::parse(s.text(), "test");
        CHECK(again.document() == s.document());
        CHECK(again.text() == s.text());
    }
}

TEST_CASE("keys come in the format's order whatever order they were written in") {
    const json document = json::parse(
        R"({"stages": {"y": {"vector": {"N": 4}, "block": {"N": 8, "M": 2}}, "acc": {}},
            "name": "a", "version": 1, "format": "tessera-schedule"})");
    CHECK(canonical_text(document) ==
          "{\n  \"format\": \"tessera-schedule\",\n  \"version\": 1,\n  \"name\": \"a\",\n  \"stages\": {\n    \"acc\": {},\n"
          "    \"y\": {\n      \"block\": {\"M\": 2, \"N\": 8},\n      \"vector\": {\"N\": 4}\n    }\n  }\n}\n");
}

TEST_CASE("no line that could be broken is longer than 100 columns") {
    json numbers = json::array();
    for (int i = 0; i < 60; i++) numbers.push_back(i * 1000);
    const std::string text = canonical_text({{"name", "a"}, {"measured", {{"times", numbers}}}});
    size_t longest = 0, begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin))
        longest = std::max(longest, end - begin);
    CHECK(longest <= 100);
    CHECK(json::parse(text)["measured"]["times"] == numbers);
}

TEST_CASE("one line of JSON") {
    CHECK(one_line(json::parse(R"({"N": 384, "M": 96, "how": "lanes", "list": [1, 2.5, null, "a\"b"]})")) ==
          R"({"how": "lanes", "M": 96, "N": 384, "list": [1, 2.5, null, "a\"b"]})");
}

}  // namespace tessera::test_canonical
