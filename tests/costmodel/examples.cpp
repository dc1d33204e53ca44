#include "costmodel/model/examples.h"

#include <catch2/catch.hpp>

#include <sstream>

#include "tests/support/words.h"

namespace tessera::test_examples {

using namespace tessera::test;

static Example example() {
    Example e;
    e.task = "matmul/f32/avx2 M8", e.seconds = 1.25e-5, e.features.draft = 1e-5, e.features.bound = 5e-6;
    for (size_t i = 0; i < feature_table().size(); i++) e.features.values.push_back(static_cast<float>(i) / 8);
    return e;
}

TEST_CASE("examples come back as they were written") {
    Example failed = example();
    failed.seconds = 0;
    std::stringstream text;
    write_examples(text, {example(), failed});
    const auto all = read_examples(text, "here");
    REQUIRE(all.size() == 2);
    CHECK(all[0].task == example().task);
    CHECK(all[0].seconds == example().seconds);
    CHECK(all[0].features.draft == example().features.draft);
    CHECK(all[0].features.values == example().features.values);
    CHECK(all[1].seconds == 0);
}

TEST_CASE("what are no examples is refused with its line") {
    std::stringstream good;
    write_examples(good, {example()});
    const std::string text = good.str(), heading = text.substr(0, text.find('\n') + 1);
    auto refuse = [](const std::string &all, const std::string &part) {
        std::stringstream in(all);
        check_words([&] { read_examples(in, "here"); }, {part});
    };
    refuse("", "error[examples.format]: here: expected a first line");
    refuse("task\tseconds\tother\n", "error[examples.features]: here");
    refuse(heading + "a\t1\n", "here:2: expected");
    refuse(heading + text.substr(heading.size(), text.size() - heading.size() - 2) + "x\n", "expected a number");
    refuse(heading + "t\t-1" + text.substr(text.find("\t1e-05")), "expected times above 0");

    // As numbers they are finite, and not as what a model makes of them.
    auto with = [&](size_t field, const std::string &value) {
        std::stringstream line(text.substr(heading.size()));
        std::string all = heading, word;
        for (size_t i = 0; std::getline(line, word, '\t'); i++) all += (i > 0 ? "\t" : "") + (i == field ? value : word);
        return all;
    };
    refuse(with(7, "1e300"), "here:2: expected a number, got '1e300'");
    refuse(with(7, "-3e38"), "here:2: expected a number, got '-3e38'");
    refuse(with(7, "inf"), "here:2: expected a number, got 'inf'");
    for (const auto &[seconds, bound] :
         std::vector<std::pair<std::string, std::string>>{{"1e-300", "1e300"}, {"1e300", "1e-300"}, {"0", "1e-305"}})
        refuse(heading + "t\t" + seconds + "\t1e5\t" + bound + text.substr(text.find("\t", text.find("\t5e-06") + 1)),
               "here:2: expected times of one kernel, got " + seconds);
}

}  // namespace tessera::test_examples
