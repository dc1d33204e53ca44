#include "support/text/shell_words.h"

#include <catch2/catch.hpp>

#include "tests/support/shell.h"

namespace tessera::test_shell_words {

using namespace tessera::test;

TEST_CASE("a shell reads words back as they were") {
    const std::vector<std::string> words = {"tune", "M=48", "--out", "a b", "",     "'",  "''", "it's", "$(touch x)", "`id`",     "a;b",
                                            "*",    "~",    "\\",    "\"",  "a\nb", "!1", "ä",  "#",    "-",          "x'$HOME'y"};
    std::string read;
    for (const std::string &word : words) read += word + "|";
    const Outcome o = shell("printf '%s|' " + shell_words(words));
    CHECK(o.code == 0);
    CHECK(o.out == read);
    CHECK(shell_words({"--shape", "M=48", "a/b.json", "matmul_u8s8/arm64+asimddp"}) == "--shape M=48 a/b.json matmul_u8s8/arm64+asimddp");
    CHECK(shell_word("t m'p") == "'t m'\\''p'");
}

}  // namespace tessera::test_shell_words
