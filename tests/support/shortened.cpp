#include "support/text/shortened.h"

#include <catch2/catch.hpp>

#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera::test_shortened {

TEST_CASE("shortened: what a person can read stays, the middle of what nobody can goes") {
    for (const std::string &kept : {std::string(), std::string("a  b\n\tc "), std::string(1000, 'x'), std::string(300, ' ') + "x"})
        CHECK(shortened(kept) == kept);
    const std::string name = "'" + std::string(1 << 20, 'x') + "'", head = std::string(199, 'x'), tail = std::string(98, 'x');
    CHECK(shortened("dim " + name + "; N") == "dim '" + head + " … 1048279 bytes left out … " + tail + "'; N");
    std::string words;
    while (words.size() < 1 << 20) words += "word ";
    const std::string cut = shortened("first " + words + "last");
    CHECK(cut.size() < 25000);
    CHECK_THAT(cut, Catch::StartsWith("first word") && Catch::EndsWith("word last") && Catch::Contains(" bytes left out "));
    for (const std::string &text : {name, words, name + " " + words}) CHECK(shortened(shortened(text)) == shortened(text));
}

TEST_CASE("shortened: of many names the first") {
    CHECK(first_of({}, 2) == "none");
    CHECK(first_of({"M", "N"}, 2) == "M, N");
    CHECK(first_of({"M", "N", "K", "L"}, 2) == "M, N and 2 more");
}

TEST_CASE("shortened: no character is cut") {
    for (const char *character : {"ß", "…", "🙂"})
        for (size_t before = 0; before < 4; before++) {
            std::string word(before, 'x'), words = word;
            for (int i = 0; i < 20000; i++) word += character, words += i % 10 ? character : std::string(" ") + character;
            for (const std::string &text : {shortened(word), shortened(words)}) {
                CHECK(text.size() < 30000);
                CHECK(printable(text) == text);
            }
        }
}

TEST_CASE("shortened: every message of a user's error is, also where bytes become escapes") {
    const std::string name(1 << 20, '\x1b');
    const UserError error("schedule.missing", "there is no schedule '" + name + "'; the schedules are a, b.");
    CHECK(error.message().size() < 500);
    CHECK_THAT(error.message(), Catch::StartsWith("there is no schedule '\\u001b") && Catch::EndsWith("'; the schedules are a, b."));
    CHECK(UserError("again", error.message()).message() == error.message());
}

}  // namespace tessera::test_shortened
