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
    CHECK_THROWS_WITH(
        complete_options("conv", declared, {{"stride", 0}}),
        "error[option.range]: conv: option stride (step between windows) = 0: expected a whole number of 1 to 16; the default is 1.");
    CHECK_THROWS_WITH(complete_options("matmul", {}, {{"stride", 2}}),
                      "error[option.unknown]: matmul: there is no option 'stride'; it has no options.");
}

TEST_CASE("a value has a name where the option names its values") {
    const Option activation{"activation", "what is applied last", 0, 0, 2, {"none", "relu", "gelu"}}, stride{"stride", "step", 1, 1, 8};
    CHECK(value_text(activation, 1) == "relu");
    CHECK(value_text(activation, 7) == "7");
    CHECK(value_text(stride, 2) == "2");
    CHECK(parse_value(activation, "gelu") == 2);
    CHECK(parse_value(activation, "2") == 2);
    CHECK(parse_value(stride, "-3") == -3);
    for (const char *text : {"relu6", "", "1x", "99999999999999999999"}) CHECK(!parse_value(activation, text));
    CHECK(values_text(activation) == "one of none, relu, gelu");
    CHECK(values_text(stride) == "a whole number of 1 to 8");
    CHECK(yes_or_no("bias", "b is added").values == std::vector<std::string>{"no", "yes"});
    CHECK_THROWS_WITH(complete_options("gemm", {activation}, {{"activation", 3}}),
                      "error[option.range]: gemm: option activation (what is applied last) = 3: expected one of none, relu, gelu; the "
                      "default is none.");
}

}  // namespace tessera::test_option
