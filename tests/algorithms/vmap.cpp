// vmap: at each index of the dim the bits of a call of the algorithm itself.
#include "algorithms/transform/vmap/vmap.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"

namespace tessera::test_vmap {

using namespace tessera::test;

namespace {

const Numerics f32 = numerics_named("f32");
constexpr int64_t count = 3;

// The part at an index of the first axis.
Array at(const Array &all, int64_t index) {
    Array one(all.dtype, std::vector<int64_t>(all.extents.begin() + 1, all.extents.end()));
    std::memcpy(one.data.data(), all.data.data() + one.data.size() * static_cast<size_t>(index), one.data.size());
    return one;
}

void check(const Algorithm &f, const Extents &extents, const std::vector<std::string> &mapped = {},
           const std::map<std::string, Array> &fixed = {}) {
    const Algorithm g = vmap(f, symbolic_dim("Z"), mapped);
    INFO(to_text(f));
    INFO(to_text(g));
    std::mt19937 random(3);
    Extents all = {{"Z", count}};
    for (const auto &[dim, extent] : extents)
        if (f.find_dim(dim)) all[dim] = extent;
    Given given = random_given(g, all, random, fixed);
    EvaluationOptions options;
    options.extents = given.extents;
    const auto whole = evaluate(g, given.tensors, given.parameters, options);
    options.extents.erase("Z");
    REQUIRE(!whole.empty());
    for (int64_t z = 0; z < count; z++) {
        Given one;
        const auto is_mapped = [&](const std::string &name) {
            const Tensor *t = g.find_tensor(name);
            return t && !t->dims.empty() && t->dims[0] == "Z";
        };
        for (const Tensor &t : f.tensors)
            if (t.role != Role::constant)
                one.tensors[t.name] = is_mapped(t.name) ? at(given.tensors.at(t.name), z) : given.tensors.at(t.name);
        for (const Parameter &p : f.parameters)
            one.parameters[p.name] = is_mapped(p.name) ? at(given.tensors.at(p.name), z).get(0) : given.parameters.at(p.name);
        const auto made = evaluate(f, one.tensors, one.parameters, options);
        REQUIRE(made.size() == whole.size());
        for (const auto &[name, value] : made) {
            INFO(name << " at " << z);
            if (f.find_tensor(name) && !is_mapped(name)) continue;  // a state that nothing writes
            const Array part = at(whole.at(name), z);
            CHECK(part.extents == value.extents);
            CHECK(part.data == value.data);
        }
    }
}

std::string refusal(const Algorithm &f, const std::vector<std::string> &mapped, const std::string &dim = "Z") {
    try {
        vmap(f, symbolic_dim(dim), mapped);
    } catch (const UserError &e) { return e.id() + " " + e.message(); }
    return "none";
}

// y = x w + g, and its rows' largest.
Algorithm layer() {
    Builder f("layer", f32);
    const Dim M = f.dim("M"), D = f.dim("D"), E = f.dim(derived_dim("E", extent("D")));
    const Tile x = f.input("x", {M, D}), w = f.input("w", {D, E}), g = f.input("g", {D});
    const Tile y = (dot(x, w).at({{"E", variable("D")}}, {"M", "D"}) * f.parameter("scale", DType::f32) + g).named("both");
    return f.output("y", y).output("most", max(y, D)).build();
}

Algorithm layers() {
    Builder f("layers", f32);
    const Dim M = f.dim("M"), D = f.dim("D"), E = f.dim(derived_dim("E", extent("D"))), L = f.dim("L");
    const std::vector<Tile> made =
        f.repeat("layer", layer(), {"L", {{"x", "y"}}, {"most"}, ""}, {f.input("x", {M, D}), f.input("w", {L, D, E}), f.input("g", {D})},
                 {{"scale", f.parameter("scale", DType::f32) * f.input("scales", {L})}});
    return f.output("y", made[0]).output("most", made[1]).build();
}

}  // namespace

TEST_CASE("vmap: what ships is what a loop gives") {
    const Extents extents = {{"M", 3}, {"N", 4}, {"K", 5}};
    check(library::linear(f32), extents);
    check(library::linear(f32), extents, {"x"});
    check(library::linear(f32), extents, {"w", "b"});
    check(library::linear_gelu(numerics_named("bf16")), extents, {"x"});
    check(library::softmax(f32), extents);
    check(library::layernorm(f32), extents, {"x"});
    check(library::cross_entropy(f32), extents);
    check(library::attention_causal(f32), {{"H", 2}, {"S", 3}, {"T", 4}, {"D", 2}, {"E", 3}});
    check(library::attention(f32), {{"H", 2}, {"S", 3}, {"T", 4}, {"D", 2}, {"E", 3}}, {"q"});
    check(library::embedding(f32), {{"T", 5}, {"V", 3}, {"D", 2}});
    check(library::embedding(f32), {{"T", 5}, {"V", 3}, {"D", 2}}, {"ids"});
    check(library::embedding_gradient(f32), {{"T", 5}, {"V", 3}, {"D", 2}});
    check(library::cumulative_sum(f32), extents);
    check(library::segmented_cumulative_sum(f32), extents);
    check(library::top_k(f32, complete_options("", library::top_k_options(), {{"k", 2}})), {{"M", 3}, {"N", 4}});
    check(library::concat(f32), {{"M", 2}, {"A", 3}, {"B", 2}}, {"a"});
    check(library::adamw(f32, {{"narrow", 0}}), {{"N", 4}});
    check(library::segmented_sum(f32), {{"B", 3}, {"T", 6}, {"N", 2}}, {"x"}, {{"offsets", Array(DType::i64, {4}, {0, 2, 2, 5})}});
}

TEST_CASE("vmap: calls, rounds, parameters, and outputs that are all alike") {
    for (const int64_t rounds : {0, 1, 3}) {
        const Extents extents = {{"M", 2}, {"D", 3}, {"L", rounds}};
        for (const std::vector<std::string> &mapped :
             {std::vector<std::string>{}, {"x"}, {"w"}, {"g"}, {"scale"}, {"scales"}, {"x", "w", "g", "scale", "scales"}})
            check(layers(), extents, mapped);
    }
    const Options two = complete_options("", library::encoder_options(), {{"heads", 2}});
    check(library::encoder(f32, two), {{"B", 2}, {"T", 3}, {"D", 4}, {"F", 3}, {"L", 2}}, {"x"});

    Builder f("two", f32);
    const Dim N = f.dim("N");
    const Tile a = f.input("a", {N}), b = f.input("b", {N});
    const Algorithm two_outputs = f.output("p", exp(a)).output("q", a + b).build();
    check(two_outputs, {{"N", 3}}, {"b"});
}

TEST_CASE("vmap: it composes with derivatives in either order") {
    const By by{{"x", "g"}, {"y", "most"}};
    const Extents extents = {{"M", 2}, {"D", 3}, {"L", 2}};
    const Algorithm g = vjp(layers(), by);
    check(g, extents, {"x", "g", "y.grad", "most.grad"});
    check(jvp(layers(), {{"w"}, {}}), extents, {"x", "w.tangent"});
    const Algorithm inside = vmap(g, symbolic_dim("Z"), {"x", "g", "y.grad", "most.grad"}),
                    outside = vjp(vmap(layers(), symbolic_dim("Z"), {"x", "g"}), by);
    std::mt19937 random(4);
    Extents all = extents;
    all["Z"] = count;
    const Given given = random_given(inside, all, random);
    EvaluationOptions options;
    options.extents = all;
    const auto a = evaluate(inside, given.tensors, given.parameters, options),
               b = evaluate(outside, given.tensors, given.parameters, options);
    for (const std::string name : {"x.grad", "g.grad"}) CHECK(a.at(name).values() == b.at(name).values());
    Extents twice = extents;
    twice["Y"] = 2;
    check(vmap(layers(), symbolic_dim("Y"), {"x"}), twice, {"w"});
    check(vmap(layers(), symbolic_dim("Y"), {"x", "w"}), twice, {"x", "scale"});
}

TEST_CASE("vmap: what no mapped tensor decides is computed once") {
    Builder f("once", f32);
    const Dim N = f.dim("N");
    const Tile table = exp(f.input("t", {N})).named("table");
    const Algorithm g = vmap(f.output("y", f.input("x", {N}) * table).build(), symbolic_dim("Z"), {"x"});
    CHECK(g.find_stage("table")->dims == std::vector<std::string>{"N"});
    CHECK(g.find_stage("y")->dims == std::vector<std::string>{"Z", "N"});
}

TEST_CASE("vmap: what it refuses") {
    CHECK_THAT(refusal(library::linear(f32), {"v"}), Catch::StartsWith("vmap.unknown linear: 'v' is to be mapped"));
    CHECK_THAT(refusal(library::linear(f32), {"x"}, "M"), Catch::StartsWith("vmap.dim linear: it has a dim 'M' already"));
    CHECK_THAT(refusal(library::segmented_sum(f32), {"offsets"}), Catch::StartsWith("vmap.extent segmented_sum: the extent of its dim"));
    CHECK_THAT(refusal(library::sgd_momentum(f32), {"g"}), Catch::StartsWith("vmap."));
}

}  // namespace tessera::test_vmap
