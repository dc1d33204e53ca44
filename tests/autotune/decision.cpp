#include "autotune/space/decision.h"

#include <catch2/catch.hpp>

#include "tests/support/words.h"

namespace tessera::test_decision {

using namespace tessera::test;

static const Decision extents{"y", "micro.N", {{"none", 1}, {"16", 2}, {"32", 1}, {"64", 1}}, true};

TEST_CASE("samples follow the priors") {
    RandomNumbers random(1);
    const Choose choose = sampling(random);
    int taken[4] = {};
    for (int i = 0; i < 5000; i++) taken[choose(extents)]++;
    CHECK(taken[1] > 1850);
    CHECK(taken[1] < 2150);
    CHECK(taken[0] > 850);
    CHECK(most_likely(extents) == 1);
}

TEST_CASE("a trace answers with what it has, or with what is nearest to it") {
    auto answer = [](const std::string &value) { return extents.answers[replaying({{"y.micro.N", value}}, most_likely)(extents)].value; };
    CHECK(answer("32") == "32");
    CHECK(answer("none") == "none");
    CHECK(answer("40") == "32");
    CHECK(answer("4096") == "64");
    CHECK(answer("unheard of") == "16");
    CHECK(extents.answers[replaying({}, most_likely)(extents)].value == "16");
}

TEST_CASE("what is answered is recorded") {
    Trace trace;
    std::vector<Decision> asked;
    recording(most_likely, trace, &asked)(extents);
    CHECK(trace == Trace{{"y.micro.N", "16"}});
    CHECK(asked.size() == 1);
    check_words([&] { recording(most_likely, trace)(extents); },
                {"error[tune.decision]: the decision 'y.micro.N' is asked twice in one walk; give what a mutator asks a name of its own."});
}

TEST_CASE("a decision that nobody can answer is refused: the words") {
    CHECK_NOTHROW(check_decision(extents));
    const std::string begin =
        "error[tune.decision]: the decision 'y.odd': expected at least one answer, each once and with a prior above 0; ";
    check_words([] { check_decision({"y", "odd", {}}); }, {begin + "got none. Ask only where there is something to choose."});
    check_words([] { check_decision({"y", "odd", {{"a", 1}, {"b", 1}, {"a", 2}}}); }, {begin + "got 'a' twice. Leave one of them out."});
    check_words([] { check_decision({"y", "odd", {{"a", 1}, {"b", 0}}}); }, {begin + "got a prior of 0.000000 for 'b'."});
}

TEST_CASE("restrictions are read, and refuse what they cannot meet") {
    const Restrictions r = parse_restrictions({"micro.N=16,64", "y.block.M=none"});
    CHECK(r.at("micro.N") == std::vector<std::string>{"16", "64"});
    CHECK(restricted(extents, r).answers.size() == 2);
    check_words([] { restricted(extents, parse_restrictions({"micro.N=5"})); },
                {"error[tune.space]: --space 'micro.N=5': it allows none of the answers to y.micro.N."});
    CHECK(restricted(extents, parse_restrictions({"micro.M=5"})).answers.size() == 4);
    for (const char *wrong : {"micro.N", "=3", "micro.N=", "micro.N=1,,2"})
        check_words([&] { parse_restrictions({wrong}); }, {"error[tune.space]", std::string("--space '") + wrong + "'", "--dry-run lists"});
    check_words([] { parse_restrictions({"a=1", "a=2"}); }, {"error[tune.space]", "'a' is restricted twice"});
}

}  // namespace tessera::test_decision
