#include "autotune/search/derive.h"

#include <sched.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/given_extents.h"
#include "autotune/search/tuned_schedule.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "schedules/knobs/condition.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_derive {

using namespace tessera::test;

static Derivation derived(const Algorithm &algorithm, const std::string &target, const Extents &known = {}) {
    const auto model = roofline_model();
    return derive(algorithm, target_named(target), expected_workloads(algorithm, known), *model);
}

static nlohmann::json documents_of(const Derivation &d) {
    nlohmann::json all = {document_of(d.stages)};
    for (const TunedVariant &v : d.variants) all.push_back(document_of(v.stages));
    return all;
}

TEST_CASE("workloads are of middle, large and small extents, and of each dim alone small") {
    const std::vector<ExpectedWorkload> all = expected_workloads(library::matmul({}));
    CHECK(all.size() <= max_workloads);
    CHECK(all[0].workload.extents == Extents{{"M", 256}, {"N", 256}, {"K", 256}});
    CHECK(all[0].workload.threads == 1);
    CHECK(all[1].workload.extents.at("M") % 2 == 1);
    CHECK(all[1].workload.threads > 1);
    CHECK(all[0].when.empty());
    CHECK(all[1].when.empty());
    const auto small = std::find_if(all.begin(), all.end(), [](const ExpectedWorkload &w) { return w.workload.extents.at("N") == 16; });
    REQUIRE(small != all.end());
    CHECK(small->when.size() == 3);
    const auto skinny = std::find_if(all.begin(), all.end(), [](const ExpectedWorkload &w) {
        return w.workload.extents == Extents{{"M", 1}, {"N", 256}, {"K", 256}};
    });
    REQUIRE(skinny != all.end());
    REQUIRE(skinny->when.size() == 1);
    CHECK(holds(skinny->when[0], 1));
    CHECK(!holds(skinny->when[0], 16));
}

TEST_CASE("rows of segments: segments of some rows are expected, and what is derived can be lowered") {
    const Target target = target_named("avx2");
    const Options whole = complete_options("attention_segments", library::attention_segments_options(), {{"causal", 0}});
    for (const Algorithm &a : {library::grouped_matmul({}), library::attention_segments({}, whole), library::segmented_softmax({}),
                               library::segmented_mean({}), library::embedding_bag({}), library::spmv({}), library::spmm({})}) {
        INFO(a.name);
        for (const ExpectedWorkload &w : expected_workloads(a))
            if (w.when.empty()) CHECK(w.workload.extents.at("T") >= 32 * (w.workload.extents.at("O") - 1));
        const Derivation d = derived(a, "avx2");
        CHECK(is_proved(lower(a, d.stages, target)));
        for (const auto &[stage, knobs] : d.stages) {
            CHECK(knobs.vector.count("B") + knobs.micro.count("B") == 0);
            // Offsets stay at root, alone or beside other ones.
            if (stage.ends_with("offsets.made")) CHECK((!knobs.place || knobs.place->kind == Place::Kind::beside));
        }
        if (d.stages.count("y") && a.name != "spmv") CHECK(!d.stages.at("y").vector.empty());
    }
}

TEST_CASE("a window is expected to be small") {
    const Algorithm conv = library::conv2d_nhwc({}, complete_options("window", window_options(), {}));
    for (const ExpectedWorkload &w : expected_workloads(conv)) {
        CHECK(w.workload.extents.at("R") == 3);
        CHECK(w.workload.extents.at("S") == 3);
        CHECK(w.workload.extents.at("C") != 3);
    }
}

TEST_CASE("workloads keep the dims' constraints, and what is known") {
    Builder f("scaled", {});
    Dim rows = symbolic_dim("M"), columns = symbolic_dim("N");
    rows.multiple_of = 24, columns.min = 2;
    const Dim M = f.dim(rows), N = f.dim(columns);
    const Tile x = f.input("x", {M, N});
    const Algorithm a = f.output("y", x + x).build();
    for (const ExpectedWorkload &w : expected_workloads(a)) {
        CHECK(w.workload.extents.at("M") % 24 == 0);
        CHECK(w.workload.extents.at("N") >= 2);
    }
    for (const ExpectedWorkload &w : expected_workloads(a, {{"N", 7}})) CHECK(w.workload.extents.at("N") == 7);
    const Algorithm fixed = bind_extents(a, {{"M", 48}, {"N", 5}});
    const std::vector<ExpectedWorkload> all = expected_workloads(fixed);
    CHECK(all.size() == 2);
    CHECK(all[0].workload.extents.empty());
}

TEST_CASE("workloads keep the constraints of equal dims, and variants have conditions that some extents break") {
    Builder f("scaled", {});
    Dim N = symbolic_dim("N"), N2 = symbolic_dim("N2"), J = symbolic_dim("J");
    N.min = 2, N2.equals = "N", N2.multiple_of = 4, J.max = 9;
    N = f.dim(N), N2 = f.dim(N2), J = f.dim(J);
    const Tile x = f.input("x", {N, J}), w = f.input("w", {N2});
    const Algorithm a = f.output("y", x * w.at({{"N2", variable("N")}}, {"N"})).build();  // (N, J)
    for (const ExpectedWorkload &workload : expected_workloads(a)) {
        CHECK(given_extents(a, workload.workload.extents).at("N2") % 4 == 0);
        CHECK(workload.workload.extents.at("J") <= 9);
        for (const Condition &c : workload.when) CHECK((c.dim != "J" || c.bound < 9));
    }
}

TEST_CASE("a derived schedule is the same every time, is proved, and is better than the first guess") {
    for (const SmallKernel &kernel : small_kernels()) {
        if (kernel.name != "matmul" && kernel.name != "layernorm" && kernel.name != "cumulative_sum" && kernel.name != "column_sum")
            continue;
        CAPTURE(kernel.name);
        const Derivation first = derived(kernel.algorithm, "avx2"), second = derived(kernel.algorithm, "avx2");
        CHECK(documents_of(first) == documents_of(second));
        CHECK(first.candidates == second.candidates);
        CHECK(first.candidates > 96);
        CHECK(first.variants.size() <= 3);
        for (const TunedVariant &v : first.variants) {
            CHECK(!v.when.empty());
            CHECK(is_proved(lower(kernel.algorithm, v.stages, target_named("avx2"))));
        }
        const auto model = roofline_model();
        const Extents usual = expected_workloads(kernel.algorithm)[0].workload.extents;
        const SearchSpace space = {kernel.algorithm, target_named("avx2"), usual, 1, {}, {}};
        const Search search(space, {}, *model);
        const Candidate chosen = search.made_of(first.stages, "derived"), guess = search.made_of(first_stages(space), "first");
        CHECK(is_proved(chosen.program));
        CHECK(draft_score(chosen.features) >= draft_score(guess.features) - 0.25);  // it serves other workloads too
    }
}

TEST_CASE("what is known of extents decides what a derived schedule is for") {
    const Algorithm matmul = library::matmul({});
    CHECK(derived(matmul, "avx2", {{"M", 1}, {"N", 512}, {"K", 512}}).variants.empty());
    CHECK(documents_of(derived(matmul, "avx2", {{"M", 1}, {"N", 512}, {"K", 512}})) !=
          documents_of(derived(matmul, "avx2", {{"M", 512}, {"N", 512}, {"K", 512}})));
}

TEST_CASE("a derived schedule for a processor with fragments computes products of bf16 by them") {
    const Algorithm matmul = bind_extents(library::matmul(numerics_named("bf16")), {{"N", 768}, {"K", 768}});
    const Derivation d = derived(matmul, "amx", {{"M", 256}});
    CHECK(d.stages.at("dot").instruction == "amx_bf16");
    CHECK(is_proved(lower(matmul, d.stages, target_named("amx"))));
}

TEST_CASE("of a GPU, whose programs no model knows, the space's most likely schedule is taken") {
    const Derivation d = derived(library::softmax({}), "opencl");
    CHECK(d.candidates == 1);
    CHECK(d.variants.empty());
    CHECK(is_proved(lower(library::softmax({}), d.stages, target_named("opencl"))));
}

// n layers, each takes from every row its largest element.
static Algorithm layers(int n) {
    Builder f("layers" + std::to_string(n), {});
    const Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    for (int i = 0; i < n; i++) x = (x - max(x, N)).named("layer" + std::to_string(i));
    return f.output("y", x).build();
}

TEST_CASE("a derived schedule does not depend on how many processors there are") {
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    for (const Algorithm &a : {library::softmax({}), layers(24)}) {
        const Derivation by_all = derived(a, "avx2");
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
        const Derivation by_one = derived(a, "avx2");
        REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
        CHECK(documents_of(by_all) == documents_of(by_one));
        CHECK(by_all.candidates == by_one.candidates);
        CHECK(by_all.work == by_one.work);
    }
}

TEST_CASE("of more stages fewer candidates are judged, and deriving tells how many so far") {
    const auto model = roofline_model();
    size_t told = 0;
    auto judged = [&](int n) {
        const Algorithm a = layers(n);
        told = 0;
        const Derivation d = derive(a, target_named("avx2"), expected_workloads(a), *model, [&](size_t candidates) {
            CHECK(candidates > told);
            told = candidates;
        });
        CHECK(told == d.candidates);
        CHECK(d.work < 8'000'000);
        return d.candidates;
    };
    const size_t few = judged(2), many = judged(24);
    CHECK(few >= 96);
    CHECK(many < few);
    CHECK(many >= 16);
}

}  // namespace tessera::test_derive
