// What a gradient keeps and what it computes again: the same bits, whatever is chosen; and forward and backward parts as two algorithms.
#include <catch2/catch.hpp>

#include <functional>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/derivatives/forward_part.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"
#include "tests/algorithms/random_programs.h"

namespace tessera::test_residuals {

using namespace tessera::test;

namespace {

using Values = std::map<std::string, Array>;

Values run(const Algorithm &a, const Given &given, const Values &more = {}) {
    EvaluationOptions options;
    options.extents = given.extents;
    Values inputs;
    for (const Tensor &t : a.tensors) {
        if (t.role == Role::constant) continue;
        inputs.emplace(t.name, more.count(t.name) ? more.at(t.name) : given.tensors.at(t.name));
    }
    return evaluate(a, inputs, given.parameters, options);
}

void check_equal(const Values &expected, const Values &got) {
    for (const auto &[name, value] : expected) {
        INFO(name);
        REQUIRE(got.count(name));
        CHECK(got.at(name).data == value.data);
    }
}

// The sum of tanh(tanh(x w) v)
Algorithm two_layers() {
    Builder f("mlp", numerics_named("f32"));
    const Dim M = f.dim("M"), D = f.dim("D"), E = f.dim("E"), F = f.dim("F");
    const Tile x = f.input("x", {M, D}), w = f.input("w", {D, E}), v = f.input("v", {E, F});
    const Tile h = tanh(dot(x, w).named("up")).named("h");
    return f.output("y", sum(sum(tanh(dot(h, v).named("down")).named("z"), F), M)).build();
}

// For vjp: inputs of f, and y.grad.
Given random_given_of_vjp(const Algorithm &f, const Extents &extents, std::mt19937 &random) {
    Given given = random_given(f, extents, random);
    for (const auto &[name, value] : run(f, given)) {
        if (!is_float(value.dtype)) continue;
        Array gradient(value.dtype, value.extents);
        for (int64_t i = 0; i < gradient.size(); i++)
            gradient.set(i, Scalar::of_real(value.dtype, static_cast<double>(random() % 64) / 32 - 1));
        given.tensors[name + ".grad"] = gradient;
    }
    return given;
}

Extents extents_for(const Algorithm &f, std::mt19937 &random) {
    Extents extents = random_extents(random);
    if (f.find_dim("L")) extents["L"] = static_cast<int64_t>(random() % 4);
    return extents;
}

size_t index_of(const Algorithm &a, const std::string &stage) {
    size_t i = 0;
    for (const Stage &s : a.stages()) {
        if (s.name == stage) return i;
        i++;
    }
    return SIZE_MAX;
}

}  // namespace

TEST_CASE("residuals: a stage is computed again just before it is read, and called as it was where nothing else needs it") {
    By by{{"x", "w", "v"}, {}, {}};
    by.residuals.choices = {{"up", true}, {"*", false}};
    const Algorithm again = value_and_grad(two_layers(), by), saved = value_and_grad(two_layers(), {{"x", "w", "v"}, {}, {}});
    INFO(to_text(again));
    CHECK(again.find_stage("h"));        // forward, for `down`
    CHECK(again.find_stage("h.again"));  // for v.grad, and h' = 1 - h h
    CHECK(!again.find_stage("up.again"));
    CHECK(!saved.find_stage("h.again"));
    CHECK(index_of(again, "h.again") > index_of(again, "z"));
    CHECK(again.stages().size() == saved.stages().size() + 3);  // z.again, of down.again
    // The gradient alone needs no result, so there the copies are all that there is.
    const Algorithm alone = vjp(two_layers(), by), alone_saved = vjp(two_layers(), {{"x", "w", "v"}, {}, {}});
    CHECK(alone.stages().size() == alone_saved.stages().size());
}

TEST_CASE("residuals: what is computed again has the bits of what is kept, in 200 random programs and choices") {
    std::mt19937 random(23);
    size_t copies = 0;
    for (int i = 0; i < 200; i++) {
        const Algorithm f = random_program(random);
        const Given given = random_given_of_vjp(f, extents_for(f, random), random);
        const Values expected = run(vjp(f), given);
        for (const bool everything : {true, false}) {
            By by;
            if (!everything)
                for (const ForwardStage &s : forward_part(f, {}).stages)
                    if (random() % 2) by.residuals.choices.push_back({s.name, true});
            by.residuals.choices.push_back({"*", false});
            const Algorithm g = vjp(f, by);
            INFO(to_text(f));
            INFO(to_text(g));
            check_equal(expected, run(g, given));
            for (const Stage &s : g.stages()) copies += s.name.ends_with(".again");
        }
    }
    CHECK(copies > 100);
}

TEST_CASE("residuals: forward and backward as two algorithms have the bits of one, in 200 random programs and choices") {
    std::mt19937 random(29);
    size_t residuals = 0;
    for (int i = 0; i < 200; i++) {
        const Algorithm f = random_program(random);
        const Given given = random_given_of_vjp(f, extents_for(f, random), random);
        By by;
        if (i % 2)
            for (const ForwardStage &s : forward_part(f, {}).stages) by.residuals.choices.push_back({s.name, random() % 2 > 0});
        const ForwardBackward parts = forward_backward(f, by);
        INFO(to_text(f));
        INFO(to_text(parts.forward));
        INFO(to_text(parts.backward));
        const Values made = run(parts.forward, given);
        check_equal(run(f, given), made);
        check_equal(run(vjp(f), given), run(parts.backward, given, made));
        residuals += parts.residuals.size();
        for (const std::string &name : parts.residuals) CHECK(made.count(name));
        // By place: the backward part takes residuals in the order in which the forward part gives them.
        std::vector<std::string> given_in_order, taken;
        for (const std::string &name : parts.forward.outputs)
            if (parts.backward.find_tensor(name)) given_in_order.push_back(name);
        for (const Tensor &t : parts.backward.tensors)
            if (std::find(parts.forward.outputs.begin(), parts.forward.outputs.end(), t.name) != parts.forward.outputs.end())
                taken.push_back(t.name);
        CHECK(taken == given_in_order);
        CHECK(taken == parts.residuals);
    }
    CHECK(residuals > 200);
}

TEST_CASE("residuals: the two parts of an encoder, and groups of rounds as a choice") {
    const Numerics f32 = numerics_named("f32");
    const Options two = complete_options("", library::encoder_options(), {{"heads", 2}});
    const Algorithm f = bind_extents(library::encoder(f32, two), {{"L", 4}});
    const Extents extents = {{"B", 1}, {"T", 3}, {"D", 4}, {"F", 3}};
    std::mt19937 random(3);
    By by{{"x", "w_up"}, {}, {}};
    const Given given = random_given_of_vjp(f, extents, random);
    const Values expected = run(vjp(f, by), given);
    const ForwardBackward parts = forward_backward(f, by);
    CHECK(parts.forward.name == "encoder.forward");
    CHECK(parts.backward.name == "encoder.backward");
    CHECK(parts.residuals == std::vector<std::string>{"layers.x.before"});
    check_equal(expected, run(parts.backward, given, run(parts.forward, given)));

    By grouped = by;
    grouped.residuals.groups = {{"layers", 2}};
    check_equal(expected, run(vjp(f, grouped), given));
    grouped.residuals.choices = {{"layers.each.ffn.up.acc", true}};
    check_equal(expected, run(vjp(f, grouped), given));
    const Algorithm in_groups = vjp(f, grouped);
    CHECK(in_groups.calls().size() == 2);

    const ForwardPart part = forward_part(f, by);
    CHECK(part.stages.empty());
    REQUIRE(part.within.size() == 1);
    const auto find = [](const ForwardPart &p, const std::string &name) {
        for (const ForwardStage &s : p.stages)
            if (s.name == name) return s;
        FAIL(name);
        return ForwardStage();
    };
    CHECK(find(part.within[0], "layers.ffn.up.acc").is_read);
    CHECK(!find(part.within[0], "layers.ffn.down.y").is_read);
    CHECK(!find(part.within[0], "layers.ffn.up.acc").reads.empty());
    REQUIRE(part.within[0].within.size() == 1);  // attention, for each of the batch
    CHECK(part.within[0].within[0].call.repeat->dim == "B");
}

TEST_CASE("residuals: a pattern that fits no stage is refused with what there is") {
    const auto refused = [](const Algorithm &f, const std::string &stages, const std::vector<std::string> &words) {
        By by{{"x"}, {}, {}};
        by.residuals.choices = {{stages, true}};
        for (const auto &make : {std::function<void()>([&] { vjp(f, by); }), std::function<void()>([&] { value_and_grad(f, by); }),
                                 std::function<void()>([&] { forward_backward(f, by); })})
            try {
                make();
                FAIL("no stage is called " << stages);
            } catch (const UserError &e) {
                CHECK(e.id() == "derivative.residuals");
                for (const std::string &word : words) CHECK_THAT(e.message(), Catch::Contains(word));
            }
    };
    refused(two_layers(), "upp", {"mlp: residuals name the stages 'upp', which fit none", "down", "up", "'up'?"});
    refused(two_layers(), "layer.*", {"'layer.*'"});
    const Options two = complete_options("", library::encoder_options(), {{"heads", 2}});
    const Algorithm f = library::encoder(numerics_named("f32"), two);
    By by{{"x"}, {}, {}};
    by.residuals.choices = {{"layers.ffn.up.ac", true}};
    CHECK_THROWS_WITH(vjp(f, by), Catch::Contains("layers.ffn.up.acc"));
    by.residuals.choices = {{"layers.ffn.up.acc", true}, {"*.acc", false}, {"*", false}};
    CHECK_NOTHROW(vjp(f, by));
}

TEST_CASE("residuals: a state that the forward part writes cannot be read by the backward part alone") {
    Builder f("counted", numerics_named("f32"));
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), scale = f.state("scale", {N});
    const Tile y = (x * scale).named("product");
    f.output("y", y);
    f.update("halved", scale, {f.index(N)}, scale * 0.5);
    const Algorithm counted = f.build();
    try {
        forward_backward(counted, {{"x"}, {}, {}});
        FAIL("the scale is another one by then");
    } catch (const UserError &e) {
        CHECK(e.id() == "derivative.write");
        CHECK_THAT(e.message(), Catch::Contains("the backward part reads the state 'scale'") && Catch::Contains("value_and_grad"));
    }
}

}  // namespace tessera::test_residuals
