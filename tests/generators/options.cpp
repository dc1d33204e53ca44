#include "generators/registry/options.h"

#include "generators/registry/registry.h"

#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_options {

using namespace tessera::test;

TEST_CASE("a shape is a list of dims and extents") {
    CHECK(parse_shape({"N=768", "K.o=0", "M=2147418111"}) == std::map<std::string, int64_t>{{"N", 768}, {"K.o", 0}, {"M", 2147418111}});
    CHECK(parse_shape({}).empty());
}

TEST_CASE("a shape's errors") {
    for (const char *bad : {"N", "=3", "N=", "N=-1", "N=1x", "N= 3", "N=2147418112", "N=99999999999999999999", "matmul"})
        check_words([&] { parse_shape({bad}); }, {"error[command.shape]: --shape '" + std::string(bad) +
                                                  "': expected <dim>=<extent> with an extent in 0 ..= 2147418111, such as N=768"});
    check_words([] { parse_shape({"N=3", "N=4"}); }, {"error[command.shape]: --shape 'N=4': dim N is given twice; give it once."});
}

TEST_CASE("options are names with numbers or with names of values") {
    const std::vector<Option> declared = {
        {"stride", "step", 1, 1, 8}, {"offset", "of the first", 0, -4, 4}, {"activation", "last", 0, 0, 2, {"none", "relu", "gelu"}}};
    auto parsed = [&](const std::vector<std::string> &options) { return parse_options(options, "gemm", declared); };
    CHECK(parsed({"stride=2", "offset=-3"}) == Options{{"stride", 2}, {"offset", -3}});
    CHECK(parsed({"activation=gelu"}) == Options{{"activation", 2}});
    CHECK(parsed({"activation=1"}) == Options{{"activation", 1}});
    for (const char *bad : {"stride", "=3", "stride="})
        check_words([&] { parsed({bad}); },
                    {"error[command.option]: --option '" + std::string(bad) + "': expected <name>=<value>, such as stride=2"});
    for (const char *bad : {"two", "2x"})
        check_words([&] { parsed({"stride=" + std::string(bad)}); },
                    {"error[option.value]: gemm: option stride (step) = '" + std::string(bad) +
                     "': expected a whole number of 1 to 8; the default is 1."});
    check_words(
        [&] { parsed({"activation=rellu"}); },
        {"error[option.value]: gemm: option activation (last) = 'rellu': expected one of none, relu, gelu; the default is none. Did "
         "you mean 'relu'?"});
    check_words([&] { parsed({"activations=relu"}); },
                {"error[option.unknown]: gemm: there is no option 'activations'; the options are stride, offset, activation. Did you mean "
                 "'activation'?"});
    check_words(
        [&] {
            parsed({"stride=2", "stride=3"});
        },
        {"error[command.option]: --option 'stride=3': option stride is given twice; give it once."});
}

TEST_CASE("given schedule folders come before Tessera's own") {
    const auto folders = Registry().schedule_folders({"mine"});
    REQUIRE(!folders.empty());
    CHECK(folders.front() == "mine");
}

}  // namespace tessera::test_options
