// Ranges and a priori bounds: what is computed from inputs within the declared ranges lies within them.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/inline_calls.h"
#include "compiler/interpret/range_analysis.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"

namespace tessera::test_range_analysis {

using namespace tessera::test;

// Every input of floats in lo ..= hi.
static std::map<std::string, RealInterval> all_in(const Algorithm &a, double lo, double hi) {
    std::map<std::string, RealInterval> given;
    for (const Tensor &t : a.tensors)
        if (is_float(t.dtype) && t.role != Role::constant) given[t.name] = {lo, hi};
    for (const Parameter &p : a.parameters)
        if (is_float(p.dtype)) given[p.name] = {0.25, 2.25};  // as make_parameters has them
    return given;
}

static std::map<std::string, StageRange> analysed(const Algorithm &a, const Extents &extents, double lo, double hi) {
    std::map<std::string, StageRange> all;
    for (const StageRange &s : analyse_ranges(a, extents, all_in(a, lo, hi))) all[s.stage] = s;
    return all;
}

TEST_CASE("results and their errors lie within what is found for all inputs: every algorithm") {
    std::set<std::string> seen;
    int64_t stages = 0, known = 0, bounded = 0;
    for (const Case &c : library_cases(8)) {
        const Algorithm a = inline_calls(c.algorithm, keeps_repeats(c.algorithm));
        if (a.updates_state || a.calls().begin() != a.calls().end() || !seen.insert(a.name + c.algorithm.numerics.name).second) continue;
        const Extents &shape = c.shapes.front();
        const Extents extents = complete(a, shape);
        const auto found = analysed(a, extents, -3, 3);
        for (uint32_t seed = 1; seed <= 3; seed++) {
            Arrays inputs = make_inputs(a, shape, seed);
            for (auto &[name, array] : inputs)
                for (int64_t i = 0; i < array.size() && is_float(array.dtype); i++) {
                    const double v = 3 * array.get(i).real;  // the last seed: corners
                    double chosen = seed < 3 ? v : v < 0 ? -3 : 3;
                    if (!traits_of(array.dtype).is_signed) chosen = std::ldexp(2, seed < 3 ? -static_cast<int>(i % 5) : 0);  // a power
                    array.set(i, Scalar::of_real(array.dtype, chosen));
                }
            const Parameters parameters = make_parameters(a, seed);
            const Arrays got = evaluate(a, inputs, parameters, {Precision::policy, extents, true});
            const Arrays exact = evaluate(a, inputs, parameters, {Precision::f64, extents, true});
            for (const Stage &s : a.stages()) {
                const StageRange &of = found.at(s.name);
                stages++, known += !of.range.is_lost, bounded += std::isfinite(of.range.error);
                if (of.range.is_lost) continue;
                for (const std::string &name : names_of_results(s)) {
                    if (name.empty() || !got.count(name)) continue;
                    const std::vector<double> values = got.at(name).values(), truth = exact.at(name).values();
                    for (size_t i = 0; i < values.size(); i++) {
                        INFO(a.name << " " << s.name << " " << name << "[" << i << "] is " << values[i] << ", exactly " << truth[i]
                                    << "; found " << of.range.values.lo << " to " << of.range.values.hi << " within " << of.range.error
                                    << " " << of.trouble);
                        if (std::isinf(values[i])) {
                            if (!(values[i] < 0 ? of.range.has_lowest : of.range.has_highest)) FAIL("an infinity that is not known of");
                        } else if (!of.range.values.contains(values[i])) {
                            FAIL("outside");
                        } else if (std::isfinite(truth[i]) && !(std::fabs(values[i] - truth[i]) <= of.range.error)) {
                            FAIL("further off");
                        }
                    }
                }
            }
        }
    }
    INFO(stages << " stages, " << known << " with ranges, " << bounded << " with bounds");
    CHECK(known * 10 >= stages * 7);
    CHECK(bounded * 2 >= stages);
}

TEST_CASE("softmax is stable, whatever its inputs") {
    const auto found = analysed(library::softmax({}), {{"M", 5}, {"N", 1000}}, -1e4, 1e4);
    for (const auto &[name, s] : found) {
        INFO(name << ": " << s.trouble);
        CHECK(s.trouble.empty());
    }
    CHECK(found.at("y").range.values.lo >= 0);
    CHECK(found.at("y").range.values.hi <= 1.00001);
    CHECK(found.at("sum").range.values.lo >= 0.99999);
}

TEST_CASE("attention is stable, with masks and without, in one pass over keys") {
    const Extents extents = {{"H", 2}, {"S", 8}, {"T", 100}, {"D", 64}, {"E", 16}};
    for (const Algorithm &a : {library::attention({}), library::attention_causal({})}) {
        const auto found = analysed(a, complete(a, extents), -100, 100);
        for (const auto &[name, s] : found) {
            INFO(a.name << " " << name << ": " << s.trouble);
            CHECK(s.trouble.empty());
            CHECK(!s.range.is_lost);
        }
        CHECK(found.at("o").range.values.magnitude() <= 100 * 101);
        CHECK(std::isfinite(analysed(a, complete(a, extents), -1, 1).at("o").range.error));
    }
}

// The variance of equal elements is 0: what is added to it has to be more than it may be off.
TEST_CASE("a norm by Welford's fold has a bound on its errors") {
    const auto found = analysed(library::layernorm({}), {{"M", 4}, {"N", 256}}, -1, 1);
    CHECK(std::isfinite(found.at("y").range.error));
    CHECK(found.at("y").range.error < 10);
}

TEST_CASE("an exponential of what has no maximum taken off may overflow, and the stage is named") {
    Builder f("unsafe");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile e = exp(f.input("x", {M, N})).named("e");
    const Algorithm a = f.output("y", e / sum(e, N).named("s")).build();
    const auto wide = analysed(a, {{"M", 2}, {"N", 8}}, -100, 100), near = analysed(a, {{"M", 2}, {"N", 8}}, -20, 20);
    CHECK_THAT(wide.at("e").trouble, Catch::StartsWith("may overflow f32: exp("));
    CHECK(near.at("e").trouble.empty());
    INFO(near.at("s").trouble << near.at("y").trouble);
    CHECK(near.at("y").trouble.empty());
}

TEST_CASE("activations of wide ranges have tight ones") {
    Builder f("activation");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    const Algorithm a = f.output("g", gelu(x)).output("t", gelu_tanh(x)).output("s", silu(x)).output("c", cos(x)).build();
    const auto found = analysed(a, {{"N", 3}}, -2000, 2000);
    for (const char *name : {"g", "t", "s"}) {
        INFO(name << " " << found.at(name).range.values.lo << " " << found.at(name).range.values.hi << " " << found.at(name).range.error);
        CHECK(found.at(name).trouble.empty());
        CHECK(found.at(name).range.values.lo >= -0.3);
        CHECK(found.at(name).range.values.hi <= 4000);
        CHECK(found.at(name).range.error <= 0.01);
    }
    CHECK(found.at("c").range.values.magnitude() <= 1.000001);
}

TEST_CASE("the a priori bound of a product is gamma_n times the sum of sizes") {
    const auto found = analysed(library::matmul({}), {{"M", 2}, {"N", 2}, {"K", 1000}}, -1, 1);
    const double error = found.at("y").range.error, gamma = 1001 * 0x1p-24 / (1 - 1001 * 0x1p-24);
    CHECK(error >= 1000 * gamma);
    CHECK(error <= 1000 * gamma * 1.01);
    CHECK(found.at("y").range.values.lo <= -1000);
    CHECK(found.at("y").range.values.hi <= 1001);
    // f16 ends at 65504.
    const auto narrow = analysed(library::matmul(numerics_named("f16")), {{"M", 2}, {"N", 2}, {"K", 1000}}, -10, 10);
    bool overflows = false;
    for (const auto &[name, s] : narrow) overflows |= s.trouble.starts_with("may overflow f16");
    CHECK(overflows);
}

}  // namespace tessera::test_range_analysis
