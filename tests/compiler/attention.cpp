// A query that sees no key gives 0, in every attention of the library: of no keys at all, and where a mask leaves it none.
#include <catch2/catch.hpp>

#include <cmath>

#include "algorithms/library/library.h"
#include "tests/compiler/harness.h"

namespace tessera::test_attention {

using namespace tessera::test;

namespace {

struct Attention {
    Algorithm algorithm;
    Extents extents;
};

Options grouped(int64_t causal, int64_t window, int64_t mask) { return {{"causal", causal}, {"window", window}, {"mask", mask}}; }

std::vector<Attention> attentions(int64_t keys) {
    const Extents heads = {{"H", 2}, {"S", 3}, {"T", keys}, {"D", 4}, {"E", 5}};
    Extents groups = heads, decoding = {{"H", 2}, {"G", 2}, {"T", keys}, {"D", 4}, {"E", 5}};
    groups["G"] = 2;
    std::vector<Attention> all = {{library::attention({}), heads},
                                  {library::attention_causal({}), heads},
                                  {library::attention_kept({}), heads},
                                  {library::attention_decode({}), decoding}};
    for (const Options &o : {grouped(0, 0, 0), grouped(1, 0, 0), grouped(1, 2, 0), grouped(0, 0, 1), grouped(1, 2, 1)})
        all.push_back({library::attention_grouped({}, o), groups});
    return all;
}

// As declared, by its definition, and with folds in chunks and lanes.
std::vector<Arrays> results(const Attention &a, const Arrays &inputs, const Parameters &parameters) {
    std::vector<Arrays> all = {run_reference(a.algorithm, a.extents, inputs, parameters)};
    for (const Split::How how : {Split::How::online, Split::How::chunks, Split::How::lanes}) {
        KnobsByStage stages;
        for (const Stage &s : a.algorithm.stages())
            if (is_fold(s) && monoid_of(s).parts.size() == 3) stages[s.name].split = {{"T", {how, 2}}};
        all.push_back(run_interpreter(lowered("attention", a.algorithm, stages, target_named("avx2")), a.extents, inputs, parameters));
    }
    return all;
}

void check_zeros(const Arrays &got) {
    const Array &o = got.at("o");
    for (int64_t i = 0; i < o.size(); i++) CHECK(o.get(i).real == 0);
}

}  // namespace

TEST_CASE("attention: over no keys the result is 0") {
    for (const Attention &a : attentions(0)) {
        INFO(a.algorithm.name);
        const Parameters parameters = make_parameters(a.algorithm, 1);
        for (const Arrays &got : results(a, make_inputs(a.algorithm, a.extents, 1), parameters)) check_zeros(got);
    }
}

TEST_CASE("attention: a query of which every key is masked gives 0") {
    for (const Attention &a : attentions(7)) {
        Arrays inputs = make_inputs(a.algorithm, a.extents, 1);
        const Parameters parameters = make_parameters(a.algorithm, 1);
        if (inputs.count("keep")) inputs["keep"] = Array(DType::boolean, {7});
        else if (inputs.count("mask"))
            for (int64_t i = 0; i < inputs["mask"].size(); i++) inputs["mask"].set(i, Scalar::of_real(DType::f32, -INFINITY));
        else continue;
        INFO(a.algorithm.name);
        for (const Arrays &got : results(a, inputs, parameters)) check_zeros(got);
    }
}

TEST_CASE("attention: a NaN in the keys is in the result of each query that sees it") {
    for (const Attention &a : attentions(7)) {
        Arrays inputs = make_inputs(a.algorithm, a.extents, 1);
        for (int64_t i = 0; inputs.count("keep") && i < 7; i++) inputs["keep"].set(i, Scalar::of_integer(DType::boolean, 1));
        inputs["k"].set(0, Scalar::of_real(DType::f32, NAN));  // the first key of the first head
        Parameters parameters = make_parameters(a.algorithm, 1);
        if (parameters.count("position")) parameters["position"] = Scalar::of_integer(DType::i32, 0);
        INFO(a.algorithm.name);
        for (const Arrays &got : results(a, inputs, parameters)) {
            const Array &o = got.at("o");
            CHECK(std::isnan(o.get(0).real));
            CHECK(std::isfinite(o.get(o.size() - 1).real));
        }
    }
}

}  // namespace tessera::test_attention
