#include "support/text/line_changes.h"

#include <catch2/catch.hpp>

namespace tessera::test_line_changes {

TEST_CASE("line changes") {
    CHECK(line_changes("a\nb\n", "a\nb\n") == "");
    CHECK(line_changes("", "a\n") == "+ a\n");
    CHECK(line_changes("a\n", "") == "- a\n");
    CHECK(line_changes("a\nb\nc\n", "a\nx\nc\n") == "  …\n- b\n+ x\n  …\n");
    CHECK(line_changes("a\nb\n", "b\na\nb\n") == "+ b\n  …\n");
}

}  // namespace tessera::test_line_changes
