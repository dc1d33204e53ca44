#include "autotune/search.h"

#include <catch2/catch.hpp>

#include "compiler/lower.h"
#include "tests/autotune/kernels.h"

using namespace tessera;
using namespace tessera::test;

static SearchSpace space() { return {bind_extents(library::matmul({}), {{"M", 96}, {"N", 192}, {"K", 64}}), target_named("avx512"), {}, 1, {}, {}}; }

static SearchOptions few(uint64_t seed) {
    SearchOptions o;
    o.seed = seed, o.population = 24;
    return o;
}

// The hashes of all proposals of a search whose measurements are the drafts.
static std::vector<std::string> proposals(uint64_t seed, int rounds) {
    const auto model = boosted_model();
    Search search(space(), few(seed), *model);
    std::vector<std::string> all;
    for (int round = 0; round < rounds; round++) {
        const auto batch = search.propose(6);
        std::vector<double> goodness;
        std::vector<Example> examples;
        for (const Candidate &c : batch) {
            all.push_back(c.resolved);
            goodness.push_back(1 / c.features.draft);
            examples.push_back({"matmul", c.features, c.features.draft});
        }
        search.learn(batch, goodness, examples);
    }
    return all;
}

TEST_CASE("proposals are a function of the seed and of what was measured") {
    const auto one = proposals(3, 4);
    CHECK(one.size() == 24);
    CHECK(proposals(3, 4) == one);
    CHECK(proposals(4, 4) != one);
}

TEST_CASE("nothing is proposed twice, and a small space ends") {
    auto all = proposals(5, 5);
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    const auto model = roofline_model();
    SearchSpace small = space();
    small.restrictions = parse_restrictions({"split.K=none", "vector=N", "micro.N=16,32", "micro.M=2,3", "block.M=none", "block.N=none", "k.K=none", "pack.x=none", "pack.w=none", "parallel=1", "order.micro=M:N", "unroll.K=1",
                                             "tail.M=mask", "tail.N=mask"});
    Search search(small, few(1), *model);
    CHECK(search.propose(64).size() == 4);
    CHECK(search.propose(64).empty());
}

TEST_CASE("exploration alone is random search") {
    SearchOptions options = few(7);
    options.exploration = 1;
    const auto model = roofline_model();
    Search search(space(), options, *model);
    for (int round = 0; round < 3; round++) {
        const auto batch = search.propose(4);
        REQUIRE(batch.size() == 4);
        for (const Candidate &c : batch) CHECK(c.origin == "sample");
        search.learn(batch, std::vector<double>(batch.size(), 1.0), {});
    }
}

// Of ten batches of two, an eighth is two or three candidates: what the best by score alone would not have been.
TEST_CASE("small batches explore too") {
    auto proposed = [](double exploration) {
        const auto model = roofline_model();
        SearchOptions options = few(7);
        options.exploration = exploration;
        Search search(space(), options, *model);
        std::vector<std::string> all;
        for (int round = 0; round < 10; round++)
            for (const Candidate &c : search.propose(2)) all.push_back(c.resolved);
        return all;
    };
    CHECK(proposed(0.12) != proposed(0));
    CHECK(proposed(0.12).size() == 20);
}

TEST_CASE("a planted schedule is proposed first, as the space has it") {
    const auto model = roofline_model();
    Search search(space(), few(1), *model);
    Knobs k;
    k.micro = {{"M", 7}, {"N", 48}}, k.vector = {{"N", 16}}, k.loops = {"micro.N", "micro.M"}, k.parallel = {"micro.N"};
    k.pack["w"] = {"micro.N", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}};
    search.plant({{"y", k}});
    const auto batch = search.propose(4);
    REQUIRE(batch.size() == 4);
    CHECK(batch[0].origin == "seed");
    CHECK(batch[0].stages.at("y") == k);
}
