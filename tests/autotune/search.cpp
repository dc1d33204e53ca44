#include "autotune/search/search.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/reduction_trees.h"
#include "tests/autotune/kernels.h"
#include "tests/support/words.h"

namespace tessera::test_search {

using namespace tessera::test;

static SearchSpace space() {
    return {bind_extents(library::matmul({}), {{"M", 96}, {"N", 192}, {"K", 64}}), target_named("avx512"), {}, 1, {}, {}};
}

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
    small.restrictions =
        parse_restrictions({"split.K=none", "vector=N", "micro.N=16,32", "micro.M=2,3", "block.M=none", "block.N=none", "k.K=none",
                            "pack.x=none", "pack.w=none", "parallel=1", "order.micro=M:N", "unroll.K=1", "tail.M=mask", "tail.N=mask"});
    Search search(small, few(1), *model);
    CHECK(search.propose(64).size() == 4);
    CHECK(search.propose(64).empty());
}

TEST_CASE("code that would take minutes to compile is not proposed") {
    SearchSpace scalar = space();
    scalar.restrictions =
        parse_restrictions({"split.K=none", "block=none", "k=none", "pack=none", "vector=none", "parallel=1", "unroll.K=1"});
    for (const bool much : {false, true}) {
        SearchSpace s = scalar;
        s.mutators.push_back([much](const Algorithm &, const Extents &, const auto &, KnobsByStage &stages) {
            stages["y"].micro = {{"M", 8}, {"N", 16}}, stages["y"].unroll["K"] = much ? 8 : 2;
        });
        const auto model = roofline_model();
        Search search(s, few(1), *model);
        CHECK(search.propose(4).empty() == much);
    }
}

TEST_CASE("what is drafted faster than its own work can be done is not proposed, and is counted") {
    SearchSpace slow = space();
    slow.target.measured.emplace();
    slow.target.measured->read["l1"] = {1e3, 1e3};  // which only the bound goes by
    const auto model = roofline_model();
    Search search(slow, few(1), *model);
    CHECK(search.propose(4).empty());
    CHECK(search.made() > 20);
    CHECK(search.impossible() + search.refused() == search.made());
    CHECK(search.impossible() > search.made() / 2);
}

TEST_CASE("no candidate of any kernel is drafted faster than its own work can be done") {
    uint64_t seed = 0;
    for (const SmallKernel &kernel : small_kernels()) {
        const SearchSpace space{kernel.algorithm, target_named(++seed % 2 ? "avx2" : "avx512"), kernel.extents, 1, {}, {}};
        const auto model = roofline_model();
        SearchOptions options = few(seed);
        options.population = 16;  // of an encoder, three in four do not lower
        Search search(space, options, *model);
        INFO(kernel.name << " " << space.target.name);
        for (const Candidate &c : search.propose(4)) CHECK(c.features.draft >= c.features.own_bound);
        CHECK(search.made() > search.refused());
        CHECK(search.impossible() == 0);
    }
}

TEST_CASE("a search that keeps bits proposes no other trees, and counts what it did not") {
    const auto model = roofline_model();
    const Algorithm sums = bind_extents(library::softmax({}), {{"M", 64}, {"N", 4096}});
    const Algorithm windows = bind_extents(library::conv2d_nhwc({}, {{"stride", 1}, {"padding", 1}, {"dilation", 1}}),
                                           {{"N", 1}, {"H", 14}, {"W", 14}, {"C", 32}, {"R", 3}, {"S", 3}, {"O", 32}});
    size_t other_bits = 0;
    for (const Algorithm &a : {sums, windows})
        for (const bool is_plain : {true, false}) {
            const SearchSpace space{a, target_named("avx2"), {}, 1, {}, {}};
            const KnobsByStage base = is_plain ? KnobsByStage() : realize(space, most_likely);
            SearchOptions options = few(2);
            options.keep_bits = true;
            Search search(space, options, *model);
            search.keep_as(base);
            // As the search has it, with functions put in.
            const std::string bits = reduction_trees(expanded(a), base).hash;
            const std::vector<Candidate> batch = search.propose(6);
            CHECK(batch.size() == 6);
            for (const Candidate &c : batch) CHECK(reduction_trees(expanded(a), c.stages).hash == bits);
            CHECK(search.other_bits() + search.refused() < search.made());
            other_bits += search.other_bits();
        }
    CHECK(other_bits > 0);
}

TEST_CASE("on one thread, a search that keeps parallel loops proposes no schedule that many threads would not make faster") {
    const auto model = roofline_model();
    const Algorithm product = bind_extents(library::matmul({}), {{"M", 4}, {"N", 1024}, {"K", 256}});
    const SearchSpace space{product, target_named("avx2"), {}, 1, {}, {}};
    // The most of all that is proposed that runs outside of parallel loops, as a part of the whole.
    const auto most_alone = [&](bool keep) {
        SearchOptions options = few(3);
        options.keep_parallel = keep;
        Search search(space, options, *model);
        Knobs strips;
        strips.micro = {{"M", 4}, {"N", 16}}, strips.vector = {{"N", 8}};
        strips.loops = {"micro.N", "micro.M", "K"}, strips.parallel = {"micro.N"};
        search.keep_as({{"y", strips}});
        double most = 0;
        for (const Candidate &c : search.propose(16)) {
            const Profile p = profile_of(c.program, all_extents(c.program, {}), space.target, 1);
            most = std::max(most, p.alone / p.core_time);
        }
        return most;
    };
    CHECK(most_alone(true) < 0.05);
    CHECK(most_alone(false) > 0.9);
}

TEST_CASE("exploration alone is random search") {
    SearchOptions options = few(7);
    options.exploration = 1, options.population = 48;  // that lower and differ are enough of the samples then
    const auto model = roofline_model();
    Search search(space(), options, *model);
    for (int round = 0; round < 3; round++) {
        const auto batch = search.propose(4);
        REQUIRE(batch.size() == 4);
        for (const Candidate &c : batch) CHECK(c.origin == "sample");
        search.learn(batch, std::vector<double>(batch.size(), 1.0), {});
    }
}

// In ten batches of two, an eighth is two or three candidates: what the best by score alone would not have been.
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

static Knobs good() {
    Knobs k;
    k.micro = {{"M", 7}, {"N", 48}}, k.vector = {{"N", 16}}, k.loops = {"micro.N", "micro.M"}, k.parallel = {"micro.N"};
    k.pack["w"] = {"micro.N", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}};
    return k;
}

TEST_CASE("a seed is proposed first, as the space has it") {
    const auto model = roofline_model();
    Search search(space(), few(1), *model);
    search.seed({{"y", good()}});
    const auto batch = search.propose(4);
    REQUIRE(batch.size() == 4);
    CHECK(batch[0].origin == "seed");
    CHECK(batch[0].stages.at("y") == good());
}

TEST_CASE("what was measured is not proposed again as a seed") {
    const auto model = roofline_model();
    Search search(space(), few(1), *model);
    search.seed({{"y", good()}});
    const std::optional<Candidate> base = search.candidate_of({{"y", good()}}, "base");
    REQUIRE(base);
    search.learn({*base}, {1.0}, {});
    for (const Candidate &c : search.propose(4)) {
        CHECK(c.origin != "seed");
        CHECK(c.features.values != base->features.values);
    }
}

TEST_CASE("a seed that the model thinks little of takes no trial") {
    const auto model = roofline_model();
    Search search(space(), few(1), *model);
    Knobs one_by_one;
    one_by_one.micro = {{"M", 1}, {"N", 1}};
    search.seed({{"y", one_by_one}});
    const auto batch = search.propose(4);
    REQUIRE(batch.size() == 4);
    for (const Candidate &c : batch) CHECK(c.origin != "seed");
}

TEST_CASE("what is bred is better than the best of as many samples") {
    const SearchSpace wide{bind_extents(library::layernorm({}), {{"M", 64}, {"N", 384}}), target_named("avx512"), {}, 1, {}, {}};
    const auto model = roofline_model();
    double gains = 0;
    for (uint64_t seed : {1, 2}) {
        SearchOptions options;
        options.seed = seed;
        Search search(wide, options, *model);
        const Candidate bred = search.propose(1).at(0);
        RandomNumbers random(seed);
        double best = 1e9;
        for (size_t i = 0; i < search.made(); i++)
            if (const auto c = search.candidate_of(realize(wide, sampling(random)), "sample")) best = std::min(best, c->features.draft);
        gains += std::log2(best / bred.features.draft);
    }
    CHECK(gains > 0.15);
}

TEST_CASE("what a batch leaves over stays in the running") {
    auto second_of = [](const std::vector<size_t> &counts) {
        const auto model = roofline_model();
        Search search(space(), few(1), *model);
        Candidate last;
        for (size_t count : counts) last = search.propose(count).back();
        return last.score;
    };
    CHECK(second_of({1, 1}) >= second_of({2}));
}

// y = sum of so many different multiples of x, in pairs, pairs of pairs, …: one wide formula that is not deep.
static SearchSpace one_point_of(int terms) {
    Builder f("terms");
    Dim N = f.dim("N");
    Tile x = f.input("x", {N});
    const std::function<Tile(int, int)> sum = [&](int begin, int end) {
        return end - begin == 1 ? x * (1.5 + begin) : sum(begin, (begin + end) / 2) + sum((begin + end) / 2, end);
    };
    return {bind_extents(f.output("y", sum(0, terms)).build(), {{"N", 256}}), target_named("avx2"), {}, 1, {}, {}};
}

TEST_CASE("a campaign without a schedule to beat begins with what fits, and says what does not") {
    const auto model = roofline_model();
    const SearchSpace small = one_point_of(20), large = one_point_of(6400);
    CHECK(!first_stages(small).empty());
    CHECK_NOTHROW(Search(small, few(1), *model).made_of(first_stages(small), "base"));
    CHECK(first_stages(large).empty());
    const Search search(large, few(1), *model);
    CHECK(!search.candidate_of({}, "base"));
    check_words([&] { search.made_of({}, "base"); }, {"error[schedule.formula]: schedule 'candidate': terms.y: its formula takes ",
                                                      " instructions for each element; expected at most 12000"});
}

TEST_CASE("maps that read several points of one another are inlined as far as that can be compiled") {
    Builder f("blurs");
    Dim N = f.dim("N");
    Tile x = f.input("x", {N});
    for (int i = 0; i < 16; i++) {
        const Tile before = x;
        const auto from = [&](int64_t right) { return before.at({{"N", min(variable("N") + Expr(right), extent("N") - 1)}}, {"N"}); };
        x = (from(0) + from(1) + from(2) * 0.5f).named("blur" + std::to_string(i));
    }
    const SearchSpace blurs{bind_extents(f.output("y", x * 0.5f).build(), {{"N", 4096}}), target_named("avx2"), {}, 1, {}, {}};
    const auto all_inlined = [](const Decision &d) {
        const auto yes =
            std::find_if(d.answers.begin(), d.answers.end(), [&](const Answer &a) { return d.knob == "inline" && a.value == "yes"; });
        return yes == d.answers.end() ? most_likely(d) : static_cast<size_t>(yes - d.answers.begin());
    };
    size_t inlined = 0;
    for (const auto &[stage, knobs] : realize(blurs, all_inlined)) inlined += knobs.place && knobs.place->kind == Place::Kind::inlined;
    CHECK(inlined > 4);
    CHECK(inlined < 16);
}

}  // namespace tessera::test_search
