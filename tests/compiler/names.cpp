#include "compiler/lower/context/names.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"

namespace tessera::test_names {

TEST_CASE("names: each is given once, and is free again where it was forgotten") {
    Names names(library::matmul({}));
    CHECK(names.unique("x") == "x2");  // a tensor
    CHECK(names.unique("k") == "k");
    CHECK(names.unique("k") == "k2");
    CHECK(names.made() == std::vector<std::string>{"x2", "k", "k2"});
    const std::vector<std::string> forgotten = names.forget(1);
    CHECK(forgotten == std::vector<std::string>{"k", "k2"});
    CHECK(names.unique("k") == "k");
    names.take(forgotten);
    CHECK(names.made() == std::vector<std::string>{"x2", "k", "k2"});
    CHECK(names.unique("k") == "k3");
}

}  // namespace tessera::test_names
