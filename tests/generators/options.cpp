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

TEST_CASE("options are names and integers") {
    CHECK(parse_options({"stride=2", "offset=-3"}) == std::map<std::string, int64_t>{{"stride", 2}, {"offset", -3}});
    for (const char *bad : {"stride", "=3", "stride=", "stride=two", "stride=2x"})
        check_words([&] { parse_options({bad}); },
                    {"error[command.option]: --option '" + std::string(bad) + "': expected <name>=<integer>, such as stride=2"});
    check_words(
        [] {
            parse_options({"stride=2", "stride=3"});
        },
        {"error[command.option]: --option 'stride=3': option stride is given twice; give it once."});
}

TEST_CASE("given schedule folders come before Tessera's own") {
    const auto folders = Registry().schedule_folders({"mine"});
    REQUIRE(!folders.empty());
    CHECK(folders.front() == "mine");
}

}  // namespace tessera::test_options
