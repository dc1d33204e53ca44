#include "support/text/error.h"

#include <catch2/catch.hpp>

namespace tessera::test_error {

TEST_CASE("error: a user's error shows its id and message") {
    UserError e("schedule.unknown-dim", "linear_gelu.acc has no dim 'H'.");
    CHECK(e.id() == "schedule.unknown-dim");
    CHECK(std::string(e.what()) == "error[schedule.unknown-dim]: linear_gelu.acc has no dim 'H'.");
}

TEST_CASE("error: what a message quotes does nothing to a terminal") {
    const UserError e("schedule.unknown-field", "there is no field '\x1b[2J\u202e' here;\n  …");
    CHECK(e.message() == "there is no field '\\u001b[2J\\u202e' here;\n  …");
    CHECK(UserError("again", e.message()).message() == e.message());
}

TEST_CASE("error: an internal error asks for a report") {
    CHECK(std::string(InternalError("lost a loop").what()) == "internal error: lost a loop (this is a bug in Tessera; please report it)");
    CHECK_NOTHROW(require(true, "never seen"));
    CHECK_THROWS_WITH(require(false, "operand count"), Catch::Contains("internal error: operand count"));
    CHECK_THROWS_AS(require(false, ""), InternalError);
}

TEST_CASE("error: the nearest candidate is suggested") {
    CHECK(did_you_mean("blok", {"pack", "block", "micro"}) == " Did you mean 'block'?");
    CHECK(did_you_mean("mirco", {"pack", "block", "micro"}) == " Did you mean 'micro'?");  // letters that changed places are one edit
    CHECK(did_you_mean("j", {"M", "J"}) == " Did you mean 'J'?");                          // the other case is less than one
    CHECK(did_you_mean("vectr", {"vector", "victor"}) == " Did you mean 'vector'?");
    CHECK(did_you_mean("accumulate", {"acc", "scores"}).empty());
    CHECK(did_you_mean("x", {}).empty());
    CHECK(did_you_mean("", {"a"}) == " Did you mean 'a'?");
}

TEST_CASE("error: names are joined") {
    CHECK(join({"M", "N", "K"}) == "M, N, K");
    CHECK(join({"M"}) == "M");
    CHECK(join({}) == "none");
    CHECK(join({"a", "b"}, " -> ") == "a -> b");
}

}  // namespace tessera::test_error
