#include "algorithms/build/option.h"

#include <catch2/catch.hpp>

#include "support/text/error.h"

namespace tessera::test_option {

TEST_CASE("option: what is not given has its standard value") {
    std::vector<Option> declared = {{"stride", "step between windows", 1, 1, 16}, {"padding", "zeros at each end", 0, 0, 8}};
    CHECK(complete_options("conv", declared, {}) == Options{{"stride", 1}, {"padding", 0}});
    CHECK(complete_options("conv", declared, {{"padding", 8}}) == Options{{"stride", 1}, {"padding", 8}});
    CHECK_THROWS_WITH(complete_options("conv", declared, {{"strides", 2}}),
                      "error[option.unknown]: conv: there is no option 'strides'; the options are stride, padding. Did you mean 'stride'?");
    CHECK_THROWS_WITH(complete_options("conv", declared, {{"stride", 0}}),
                      "error[option.range]: conv: option stride (step between windows) = 0: expected 1 ..= 16; the standard value is 1.");
    CHECK_THROWS_WITH(complete_options("matmul", {}, {{"stride", 2}}),
                      "error[option.unknown]: matmul: there is no option 'stride'; it has no options.");
}

}  // namespace tessera::test_option
