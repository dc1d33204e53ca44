#include "schedules/artifact/fields.h"

#include "schedules/artifact/artifact.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_fields {

using nlohmann::json;

TEST_CASE("a field is the smallest thing that a schedule states") {
    std::vector<std::string> pointers;
    for (const auto &[path, value] : statements(json::parse(test::full_text)))
        pointers.push_back(pointer_of(path) + (value.is_null() ? " deleted" : ""));
    for (const char *expected :
         {"/requires", "/variants", "/algorithm/name", "/algorithm/surface", "/stages/acc/place", "/stages/acc/block/M",
          "/stages/acc/block/N", "/stages/acc/levels/inner/M", "/stages/acc/loops", "/stages/acc/pack/w", "/stages/acc/layout",
          "/stages/acc/tail/N deleted", "/stages/acc/split/K", "/stages/acc/directives/p", "/stages/acc/directives/q deleted",
          "/stages/y/vector deleted", "/stages/z deleted"})
        CHECK(std::count(pointers.begin(), pointers.end(), expected) == 1);
    for (const std::string &pointer : pointers) CHECK((pointer != "/name" && pointer != "/measured" && pointer != "/extends"));
}

TEST_CASE("the fields of a document without nulls make that document") {
    std::mt19937 random(3);
    for (int i = 0; i < 200; i++) {
        const json document = test::random_schedule(random, "s").document();
        Fields fields;
        apply(fields, document, "s", {}, never);
        json expected = document;
        for (const char *own : {"format", "version", "name", "measured"}) expected.erase(own);
        CHECK(document_of(fields) == expected);
        Fields again;
        apply(again, document_of(fields), "s", {}, never);
        CHECK(document_of(again) == document_of(fields));
    }
}

TEST_CASE("a field knows who states it and what that overrides, nearest first") {
    Fields fields;
    for (const auto &[name, m] : {std::pair{"a", 1}, {"b", 2}, {"c", 3}})
        apply(fields, Schedule("x").stage("acc", block({{"M", m}})).document(), name, {}, never);
    const Field &field = fields.at({"stages", "acc", "block", "M"});
    CHECK((field.value == 3 && field.set_by == "c"));
    CHECK(field.overrode == std::vector<std::pair<std::string, json>>{{"b", 2}, {"a", 1}});
}

TEST_CASE("a pointer escapes as RFC 6901 says") { CHECK(pointer_of({"stages", "a/b~c", "block"}) == "/stages/a~1b~0c/block"); }

}  // namespace tessera::test_fields
