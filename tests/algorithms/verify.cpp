#include "algorithms/verify/verify.h"

#include <catch2/catch.hpp>
#include <functional>

#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_verify {

namespace {

constexpr DType f32 = DType::f32;

Expr v(const std::string &name) { return variable(name); }
Expr at(const std::string &tensor, const std::vector<Expr> &index, DType type = f32) { return load(tensor, type, index); }

// y = dot(x, w); z = y + b; an append to a state; every rule is broken by changing a part of it.
Algorithm legal() {
    Algorithm a;
    a.name = "mlp";
    a.dims = {symbolic_dim("M"), symbolic_dim("N"), symbolic_dim("K"), fixed_dim("FOUR", 4)};
    a.parameters = {{"scale", f32}};
    a.tensors = {{"x", f32, {"M", "K"}, Role::input, {}},
                 {"w", f32, {"K", "N"}, Role::input, {}},
                 {"b", f32, {"N"}, Role::input, {}},
                 {"cache", f32, {"M", "N"}, Role::state, {}},
                 {"c", f32, {"FOUR"}, Role::constant, std::vector<Scalar>(4, Scalar::of_real(f32, 1))}};
    a.steps = {Stage{"y", {"M", "N"}, Reduce{dot_monoid(f32), {"K"}, {at("x", {v("M"), v("K")}), at("w", {v("K"), v("N")})}, {}, {}}},
               Stage{"z", {"M", "N"}, Map{at("y", {v("M"), v("N")}) * parameter("scale", f32) + at("b", {v("N")})}},
               Stage{"append", {"M", "N"}, Map({"cache", {v("M"), v("N")}}, at("z", {v("M"), v("N")}))}};
    a.outputs = {"z"};
    a.updates_state = true;
    return a;
}

void fails(const std::function<void(Algorithm &)> &change, const std::string &message) {
    Algorithm a = legal();
    change(a);
    CHECK_THROWS_WITH(verify(a), "error[algorithm." + message);
}

void value(Algorithm &a, const Expr &e) { std::get<Map>(a.stages()[1].body).values[0].value = e; }
Reduce &reduce(Algorithm &a) { return std::get<Reduce>(a.stages()[0].body); }
Value &update(Algorithm &a) { return std::get<Map>(a.stages()[2].body).values[0]; }

Algorithm caller() {
    Algorithm a;
    a.name = "caller";
    a.dims = {symbolic_dim("A"), symbolic_dim("B"), symbolic_dim("C")};
    a.tensors = {{"p", f32, {"A", "B"}, Role::input, {}},
                 {"q", f32, {"B", "C"}, Role::input, {}},
                 {"r", f32, {"C"}, Role::input, {}},
                 {"s", f32, {"A", "C"}, Role::state, {}}};
    Call c;
    c.scope = "up";
    c.callee = std::make_shared<Algorithm>(legal());
    c.dims = {{"M", "A"}, {"N", "C"}, {"K", "B"}};
    c.tensors = {{"x", "p"}, {"w", "q"}, {"b", "r"}, {"cache", "s"}};
    c.parameters = {{"scale", constant(f32, 2)}};
    a.steps = {c, Stage{"out", {"A", "C"}, Map{at("up.z", {v("A"), v("C")}) + constant(f32, 1)}}};
    a.outputs = {"out"};
    a.updates_state = true;
    return a;
}

void call_fails(const std::function<void(Algorithm &)> &change, const std::string &message) {
    Algorithm a = caller();
    change(a);
    CHECK_THROWS_WITH(verify(a), "error[algorithm." + message);
}

void change_callee(Algorithm &a, const std::function<void(Algorithm &)> &change) {
    Algorithm callee = legal();
    change(callee);
    a.calls()[0].callee = std::make_shared<Algorithm>(callee);
}

}  // namespace

TEST_CASE("legal algorithms pass") {
    CHECK_NOTHROW(verify(legal()));
    CHECK_NOTHROW(verify(caller()));
}

TEST_CASE("the standard library passes, in every numerics policy") {
    std::vector<Numerics> all;
    for (const std::string &name : numerics_names()) all.push_back(numerics_named(name));
    // Monoids of one's own: each word other than the others.
    Numerics narrow_out = all[0], wide_out = numerics_named("bf16"), flushed = wide_out, states = all[0], up = wide_out;
    narrow_out.outputs = DType::bf16, wide_out.outputs = DType::f32, states.states = DType::f16;
    flushed.denormals = Denormals::flushed, up.rounding = Rounding::up, up.saturate = true;
    Numerics wide = all[0], wide_states = all[0];
    wide.compute = wide.accumulate = DType::f64, wide_states = wide, wide_states.states = DType::f64;
    for (const Numerics &own : {narrow_out, wide_out, flushed, states, up, wide, wide_states}) all.push_back(own), all.back().name = "own";
    for (const Numerics &numerics : all)
        for (auto make : {library::matmul, library::linear_gelu, library::gemv, library::softmax, library::residual_layernorm,
                          library::rmsnorm, library::attention, library::attention_causal, library::column_sum, library::cumulative_sum,
                          library::segmented_sum, library::ring_append, library::feed_forward, library::sgd_momentum}) {
            INFO(text_of(numerics));
            CHECK_NOTHROW(verify(make(numerics)));
        }
}

TEST_CASE("names") {
    std::string rule = "; a name has letters, digits and '_', in parts separated by '.', and begins with no digit.";
    fails([](Algorithm &a) { a.name = ""; }, "name]: : the algorithm is named ''" + rule);
    fails([](Algorithm &a) { a.dims.push_back(symbolic_dim("2H")); }, "name]: mlp: a dim is named '2H'" + rule);
    fails([](Algorithm &a) { a.tensors[0].name = "x-y"; }, "name]: mlp: a tensor is named 'x-y'" + rule);
    fails([](Algorithm &a) { a.stages()[0].name = "y..z"; }, "name]: mlp: a stage is named 'y..z'" + rule);
    fails([](Algorithm &a) { a.stages()[1].name = "x"; }, "name]: mlp: the name 'x' is used twice; rename a stage.");
    fails([](Algorithm &a) { a.dims.push_back(symbolic_dim("M")); }, "name]: mlp: the name 'M' is used twice; rename a dim.");
}

TEST_CASE("dims: constraints that nothing satisfies") {
    fails([](Algorithm &a) { a.dims[0].multiple_of = 0; }, "dim]: mlp.M: multiple_of is 0; give 1 or more.");
    fails([](Algorithm &a) { a.dims[3].value = -1; }, "dim]: mlp.FOUR: the fixed extent is -1; give one in 0..=2147483647.");
    fails([](Algorithm &a) { a.dims[3].multiple_of = 3; },
          "dim]: mlp.FOUR: the fixed extent 4 is no multiple of 3, as multiple_of says; change one of them.");
    fails([](Algorithm &a) { a.dims[0].min = 9, a.dims[0].max = 8; },
          "dim]: mlp.M: no extent lies in 9..=8; give 0 <= min <= max <= 2147483647.");
    fails([](Algorithm &a) { a.dims[0].min = 9, a.dims[0].max = 15, a.dims[0].multiple_of = 8; },
          "dim]: mlp.M: no extent is a multiple of 8 in 9..=15, which is what M ask of it; relax one of the constraints.");
    fails([](Algorithm &a) { a.dims[0].equals = "FOUR", a.dims[0].multiple_of = 8; },
          "dim]: mlp.M: no extent is a multiple of 8 in 4..=4, which is what M, FOUR ask of it; relax one of the constraints.");
    fails([](Algorithm &a) { a.dims[0].equals = "N", a.dims[1].equals = "M"; },
          "dim]: mlp.M: its equals form a cycle: M == N == M; leave one of them out.");
    fails([](Algorithm &a) { a.dims[0].equals = "NN"; },
          "unknown-dim]: mlp.M: there is no dim 'NN'; the dims are M, N, K, FOUR. Did you mean 'N'?");
    fails([](Algorithm &a) { a.dims[3].equals = "N"; }, "dim]: mlp.FOUR: only a symbolic dim can equal another; remove equals = 'N'.");
}

TEST_CASE("dims: derived sizes") {
    fails([](Algorithm &a) { a.dims.push_back(derived_dim("P", constant(f32, 1))); },
          "dim]: mlp.P: a derived dim needs a size of type index, got f32; cast it to index.");
    fails([](Algorithm &a) { a.dims.push_back(derived_dim("P", Expr())); },
          "dim]: mlp.P: a derived dim needs a size of type index, got none; cast it to index.");
    fails(
        [](Algorithm &a) {
            a.dims.push_back(derived_dim("P", extent("Q") + 1));
            a.dims.push_back(derived_dim("Q", extent("P") - 1));
        },
        "dim]: mlp.P: its size depends on itself: P -> Q -> P; break the cycle.");
    fails([](Algorithm &a) { a.dims.push_back(derived_dim("P", v("P") + 1)); },
          "dim]: mlp.P: its size uses its own index; use those of outer dims.");
    fails([](Algorithm &a) { a.dims.push_back(ragged_dim("R", "w", f32, "M")); },
          "rank]: mlp.R: w[M + 1] has 1 indices, but 'w' has the dims K, N.");
    fails([](Algorithm &a) { a.dims.push_back(ragged_dim("R", "b", f32, "N")); },
          "bounds]: mlp.R: b[N + 1]: cannot prove N + 1 < |N|; guard it with load_or, clamp it with bounded, or constrain the dims.");
}

TEST_CASE("dims: ragged ones stay inside their parent and are no axes") {
    auto ragged = [](Algorithm &a) {
        a.dims.push_back(derived_dim("R", v("M") + 1));
        return Expr(constant(f32, 1));
    };
    fails([&](Algorithm &a) { ragged(a), a.tensors[0].dims[0] = "R"; },
          "ragged]: mlp.x: the dim 'R' is ragged and cannot be an axis of a tensor; store the rows one after the other along a dim of "
          "their total.");
    fails(
        [&](Algorithm &a) {
            a.stages()[1] = {"z", {"M", "R"}, Map{ragged(a)}};
        },
        "ragged]: mlp.z: its result would have the ragged dim 'R' as an axis; reduce over 'R', map over the flat dim that it "
        "divides, or keep its rows there (Builder::rows).");
    fails(
        [&](Algorithm &a) {
            a.stages()[1] = {"z", {"N"}, Reduce{sum_monoid(f32), {"R"}, {ragged(a)}, {}, {}}};
        },
        "ragged]: mlp.z: the extent of 'R' varies with the index of 'M'; 'R' can only be inside 'M', and the dims around it are N.");
    fails(
        [&](Algorithm &a) {
            ragged(a), a.stages()[1] = {"z", {"N"}, Map{cast(f32, extent("R"))}};
        },
        "ragged]: mlp.z: |R| varies with the index of 'M', which is not defined here; use it inside 'M'.");
    Algorithm a = legal();
    Expr one = ragged(a);
    a.stages()[1] = {"z", {"M", "N"}, Reduce{sum_monoid(f32), {"R"}, {one}, {}, {}}};
    CHECK_NOTHROW(verify(a));
}

TEST_CASE("tensors and parameters") {
    fails([](Algorithm &a) { a.tensors[0].dtype = DType::index; },
          "type]: mlp.x: an index is never stored; declare the tensor i32 or i64.");
    fails([](Algorithm &a) { a.tensors[0].dims[0] = "H"; },
          "unknown-dim]: mlp.x: there is no dim 'H'; the dims are M, N, K, FOUR. Did you mean 'M'?");
    fails([](Algorithm &a) { a.tensors[4].values.pop_back(); },
          "type]: mlp.c: a constant of the dims FOUR needs 4 values of type f32, got 3.");
    fails([](Algorithm &a) { a.tensors[4].values[0] = Scalar::of_integer(DType::i32, 1); },
          "type]: mlp.c: a constant of the dims FOUR needs 4 values of type f32, got 4, some of another type.");
    fails([](Algorithm &a) { a.tensors[4].dims[0] = "M"; }, "dim]: mlp.c: a constant has fixed dims only; fix 'M'.");
    fails([](Algorithm &a) { a.tensors[0].values = a.tensors[4].values; }, "type]: mlp.x: only a constant has values; remove them.");
    fails([](Algorithm &a) { a.parameters[0].dtype = DType::bf16; },
          "type]: mlp.scale: a parameter of type bf16; declare it f32, f64, i32, i64 or bool.");
}

TEST_CASE("expressions: what they name") {
    fails(
        [](Algorithm &a) {
            value(a, at("xx", {v("M"), v("N")}));
        },
        "unknown-tensor]: mlp.z: there is no tensor 'xx'; there are b, c, cache, w, x, y, z. Did you mean 'x'?");
    fails(
        [](Algorithm &a) {
            value(a, at("z", {v("M"), v("N")}));
        },
        "order]: mlp.z: it loads 'z', which is not computed before it; move the stage that makes 'z' forward.");
    fails([](Algorithm &a) { std::swap(a.steps[0], a.steps[1]); },
          "order]: mlp.z: it loads 'y', which is not computed before it; move the stage that makes 'y' forward.");
    fails([](Algorithm &a) { value(a, parameter("scala", f32)); },
          "unknown-parameter]: mlp.z: there is no parameter 'scala'; the parameters are scale. Did you mean 'scale'?");
    fails([](Algorithm &a) { value(a, cast(f32, parameter("scale", DType::f64))); },
          "type]: mlp.z: the parameter 'scale' is f32, but is used as f64; cast it.");
    fails([](Algorithm &a) { value(a, cast(f32, v("K"))); },
          "variable]: mlp.z: the index 'K' is not defined here; the indices here are those of M, N. Add the dim to the stage, or "
          "reduce over it.");
    fails([](Algorithm &a) { value(a, cast(f32, v("L"))); },
          "unknown-dim]: mlp.z: there is no dim 'L'; the dims are M, N, K, FOUR. Did you mean 'M'?");
    fails([](Algorithm &a) { value(a, cast(f32, extent("L"))); },
          "unknown-dim]: mlp.z: there is no dim 'L'; the dims are M, N, K, FOUR. Did you mean 'M'?");
    fails([](Algorithm &a) { value(a, left(0, f32)); },
          "expression]: mlp.z: left.0 is an operand of a monoid's definition and means nothing here; use a load, an index, an extent or "
          "a parameter.");
}

TEST_CASE("expressions: ranks and types") {
    fails([](Algorithm &a) { value(a, at("y", {v("M")})); }, "rank]: mlp.z: y[M] has 1 indices, but 'y' has the dims M, N.");
    fails(
        [](Algorithm &a) {
            value(a, at("y", {v("M"), v("N")}, DType::f64));
        },
        "type]: mlp.z: y[M, N] is loaded as f64, but 'y' holds f32; load that and cast it.");
    fails([](Algorithm &a) { value(a, at("b", {constant_int(DType::i32, 0)})); },
          "type]: mlp.z: b[0:i32]: the index 0:i32 is i32; cast it to index.");
    fails([](Algorithm &a) { value(a, load_or("b", f32, {v("N")}, v("N") < 1, constant(DType::f64, 0))); },
          "type]: mlp.z: b[N]: the guard must be bool and the fill f32, got bool and f64; convert them.");
    fails([](Algorithm &a) { value(a, v("N")); },
          "type]: mlp.z: its value is of type index, which is never stored; cast it to i32 or i64.");
    fails([](Algorithm &a) { value(a, Expr()); }, "type]: mlp.z: its value is missing.");
}

TEST_CASE("loads are proved inside, guarded or clamped") {
    std::string remedy = "; guard it with load_or, clamp it with bounded, or constrain the dims.";
    Expr next = v("N") + 1, zero = constant(f32, 0);
    fails([&](Algorithm &a) { value(a, at("b", {next})); }, "bounds]: mlp.z: b[N + 1]: cannot prove N + 1 < |N|" + remedy);
    fails([&](Algorithm &a) { value(a, at("b", {v("N") - 1})); }, "bounds]: mlp.z: b[N - 1]: cannot prove 0 <= N - 1" + remedy);
    fails([&](Algorithm &a) { value(a, at("b", {v("M")})); }, "bounds]: mlp.z: b[M]: cannot prove M < |N|" + remedy);
    fails([&](Algorithm &a) { value(a, load_or("b", f32, {next}, v("N") < extent("N"), zero)); },
          "bounds]: mlp.z: b[N + 1]: cannot prove N + 1 < |N|" + remedy);
    const Expr data = cast(DType::index, at("b", {v("N")})), product = data * extent("N") * extent("M"),
               inside = Expr(0) <= product && product < extent("N");
    fails([&](Algorithm &a) { value(a, load_or("b", f32, {product}, inside, zero)); },
          "bounds]: mlp.z: index(b[N])*|N|*|M|: what is loaded there may be any number of 32 bits, and the product may then be beyond 64; "
          "clamp what is "
          "loaded with bounded.");
}

TEST_CASE("loads that are legal") {
    Expr next = v("N") + 1, zero = constant(f32, 0);
    auto passes = [](const Expr &e, const std::function<void(Algorithm &)> &change = {}) {
        Algorithm a = legal();
        if (change) change(a);
        value(a, e);
        CHECK_NOTHROW(verify(a));
    };
    passes(load_or("b", f32, {next}, next < extent("N"), zero));
    passes(load_or("b", f32, {v("M")}, v("M") < extent("N"), zero));
    passes(at("b", {bounded(cast(DType::i32, at("b", {v("N")})), 0, extent("N"))}));
    passes(at("b", {min(next, extent("N") - 1)}));
    fails([&](Algorithm &a) { value(a, at("c", {bounded(v("N"), 0, extent("M") - 2)})); },
          "bounds]: mlp.z: bounded(N, 0, |M| - 2): cannot prove 0 < |M| - 2, and nothing can be clamped into an empty range; guard it "
          "with load_or, or constrain the dims.");
    passes(load_or("c", f32, {bounded(v("N"), 0, extent("M") - 2)}, extent("M") == 4, zero));
    passes(at("b", {v("M")}), [](Algorithm &a) { a.dims[0].equals = "N"; });
    passes(at("c", {v("M")}), [](Algorithm &a) { a.dims[0].max = 4; });
    passes(at("b", {v("N") / 4 * 4}));
    passes(at("b", {extent("N") - 1 - v("N")}));
    Expr inner = cast(DType::index, cast(DType::i32, load_or("b", f32, {next}, next < extent("N"), zero)));
    passes(load_or("b", f32, {inner}, Expr(0) <= inner && inner < extent("N"), zero));
}

TEST_CASE("reductions") {
    fails([](Algorithm &a) { reduce(a).dims = {"N"}; }, "dim]: mlp.y: it has the dim 'N' twice; rename one of them.");
    fails([](Algorithm &a) { reduce(a).inputs.pop_back(); }, "type]: mlp.y: the monoid 'dot' takes 2 inputs, got 1.");
    fails([](Algorithm &a) { reduce(a).inputs[1] = constant(DType::f64, 1); },
          "type]: mlp.y: input 1 of the monoid 'dot' is f64, but must be f32; cast it.");
    fails([](Algorithm &a) { reduce(a).where = constant(f32, 1); }, "type]: mlp.y: where is f32, but must be bool; cast it.");
    fails([](Algorithm &a) { reduce(a).at = {v("K")}, reduce(a).inputs[0] = reduce(a).inputs[1] = constant(f32, 1); },
          "rank]: mlp.y: `at` has 1 positions, but the stage has the dims M, N.");
    fails(
        [](Algorithm &a) {
            a.stages()[0].dims = {"N"};
            reduce(a).dims = {"M", "K"};
            reduce(a).at = {at("b", {v("K")})};
        },
        "variable]: mlp.y: the index 'N' is not defined here; the indices here are those of M, K. Add the dim to the stage, or reduce "
        "over it.");
    fails([](Algorithm &a) { a.numerics = numerics_named("f64"); },
          "accumulate]: mlp.y: part 'value' of the monoid 'dot' accumulates in f32, but the policy 'f64' accumulates in f64; cast the "
          "inputs to f64 and use its monoid.");
    fails(
        [](Algorithm &a) {
            a.stages()[1].body = Scan{sum_monoid(f32), "K", true, {constant(f32, 1)}};
        },
        "dim]: mlp.z: it scans along 'K', which is none of its dims, M, N.");
    auto segments = [](const Expr &where) {
        return [=](Algorithm &a) {
            a.stages()[1].body = Scan{sum_monoid(f32), "N", true, {constant(f32, 1)}, ScanDirection::backward, where};
        };
    };
    fails(segments(v("N")), "type]: mlp.z: the beginning of segments is index, but must be bool; cast it.");
    fails(segments(at("b", {v("N") + 1}) == constant(f32, 0)),
          "bounds]: mlp.z: b[N + 1]: cannot prove N + 1 < |N|; guard it with load_or, clamp it with bounded, or constrain the dims.");
}

TEST_CASE("monoids") {
    fails([](Algorithm &a) { reduce(a).monoid.parts.clear(); }, "monoid]: mlp.y: the monoid 'dot' has no parts; give at least one.");
    fails([](Algorithm &a) { reduce(a).monoid.batch[0].monoid = "sums"; },
          "monoid]: mlp.y: pass 'value' of the batch form of the monoid 'dot' folds by 'sums'; expected one of sum, product, max, min, "
          "max_number, dot, \"\" for a value for each element, or each. Did you mean 'sum'?");
    fails([](Algorithm &a) { reduce(a).monoid.batch[0].values.pop_back(); },
          "monoid]: mlp.y: pass 'value' of the batch form of the monoid 'dot' has 1 values; expected 2.");
    fails([](Algorithm &a) { reduce(a).monoid.batch[0].values[0] = right(0, DType::f32); },
          "monoid]: mlp.y: pass 'value' of the batch form of the monoid 'dot' uses right.0; it may use input(i), right(k) of passes before "
          "it and constants.");
    fails([](Algorithm &a) { reduce(a).monoid.lift.clear(); },
          "monoid]: mlp.y: the monoid 'dot' has 1 parts and 0 expressions in lift; give one for each part.");
    fails([](Algorithm &a) { reduce(a).monoid.step[0] = constant(DType::f64, 1); },
          "monoid]: mlp.y: step of part 'value' of the monoid 'dot' is f64, but its identity is f32; make them agree.");
    fails([](Algorithm &a) { reduce(a).monoid.combine[0] = input(0, f32); },
          "monoid]: mlp.y: combine of part 'value' of the monoid 'dot' uses in.0; it may use left(p) right(p) and constants.");
    fails([](Algorithm &a) { reduce(a).monoid.step[0] = input(2, f32); },
          "monoid]: mlp.y: step of part 'value' of the monoid 'dot' uses in.2, but there are only 2 inputs.");
    fails([](Algorithm &a) { reduce(a).monoid.step[0] = cast(f32, left(0, DType::f64)); },
          "monoid]: mlp.y: step of part 'value' of the monoid 'dot' uses left.0 as f64, but it is f32.");
    fails([](Algorithm &a) { reduce(a).monoid.batch_parts = {7}; },
          "monoid]: mlp.y: the batch form of the monoid 'dot' must name one of its 1 passes for each of the 1 parts in batch_parts.");
    fails([](Algorithm &a) { reduce(a).monoid.parts[0].identity = Scalar::of_real(DType::bf16, 0); },
          "monoid]: mlp.y: part 'value' of the monoid 'dot' is bf16; accumulate in f32, f64, i32, i64 or bool.");
    auto online = [](Algorithm &a) -> Monoid & {
        a.dims.push_back(symbolic_dim("E"));
        a.steps = {
            Stage{"o", {"M"}, Reduce{online_softmax_monoid(f32, "E"), {"K"}, {at("x", {v("M"), v("K")}), cast(f32, v("E"))}, {}, {}}}};
        a.outputs = {"o.acc"};
        a.updates_state = false;
        return reduce(a).monoid;
    };
    Algorithm good = legal();
    online(good);
    CHECK_NOTHROW(verify(good));
    fails([&](Algorithm &a) { online(a).step[1] = left(2, f32); },
          "monoid]: mlp.o: step of part 'l' of the monoid 'online_softmax' uses part 'acc', which has the extra dims E; a part may use "
          "parts of its own extra dims, none, and those without.");
    auto last = [](Algorithm &a) {
        a.dims.back().max = 4;
        return at("c", {extent("E") - 1});
    };
    fails([&](Algorithm &a) { online(a), reduce(a).inputs[0] = last(a); },
          "bounds]: mlp.o: c[|E| - 1]: cannot prove 0 <= |E| - 1; guard it with load_or, clamp it with bounded, or constrain the dims.");
    Algorithm inhabited = legal();
    online(inhabited), reduce(inhabited).inputs[1] = last(inhabited) * cast(f32, v("E"));
    CHECK_NOTHROW(verify(inhabited));
    fails([&](Algorithm &a) { online(a), reduce(a).inputs[0] = cast(f32, v("E")); },
          "variable]: mlp.o: part 'm' of the monoid 'online_softmax' uses input 0, which varies with 'E'; the part's extra dims are none.");
    fails([&](Algorithm &a) { online(a).parts[2].dims = {"K"}; },
          "dim]: mlp.o: the extra dim 'K' of part 'acc' is already a dim of the stage; use another.");
    fails([&](Algorithm &a) { online(a).parts[1].name = "m"; }, "name]: mlp: the name 'o.m' is used twice; rename a result.");
}

TEST_CASE("updates") {
    fails([](Algorithm &a) { update(a).to->state = "w"; }, "update]: mlp.append: it updates 'w', which is no state; the states are cache.");
    fails([](Algorithm &a) { update(a).to->index.pop_back(); },
          "rank]: mlp.append: it writes 'cache' by 1 indices, but that has the dims M, N.");
    fails([](Algorithm &a) { update(a).value = constant(DType::f64, 1); },
          "type]: mlp.append: the value for 'cache' is f64, but must be f32; cast it.");
    fails([](Algorithm &a) { update(a).to->index[0] = v("M") + 1; },
          "bounds]: mlp.append: cache[M + 1, N]: cannot prove M + 1 < |M|; guard it with load_or, clamp it with bounded, or constrain "
          "the dims.");
    fails(
        [](Algorithm &a) {
            update(a).value = at("cache", {v("M"), extent("N") - 1 - v("N")});
        },
        "update]: mlp.append: it reads cache[M, |N| - 1 - N] while it writes other elements of 'cache'; read the element it "
        "writes, or copy the state in a stage before.");
    Algorithm a = legal();
    update(a).value = at("cache", {v("M"), v("N")}) * constant(f32, 2);
    CHECK_NOTHROW(verify(a));
}

TEST_CASE("outputs and effects") {
    fails([](Algorithm &a) { a.outputs = {"zz"}; }, "output]: mlp.zz: no stage computes it; the results are y, z. Did you mean 'z'?");
    fails([](Algorithm &a) { a.outputs = {"x"}; }, "output]: mlp.x: no stage computes it; the results are y, z. Did you mean 'y'?");
    fails([](Algorithm &a) { a.outputs = {"z", "z"}; }, "output]: mlp.z: it is an output twice; remove one.");
    fails([](Algorithm &a) { a.outputs.clear(), a.steps.pop_back(), a.updates_state = false; },
          "output]: mlp: it has no output and updates no state; name the tensors that it computes in outputs.");
    fails([](Algorithm &a) { a.updates_state = false; },
          "effects]: mlp: it updates a state and does not declare the effect 'memory'; add it.");
    fails([](Algorithm &a) { a.steps.pop_back(); },
          "effects]: mlp: it declares the effect 'memory' and updates no state; remove the effect.");
}

TEST_CASE("calls") {
    call_fails([](Algorithm &a) { a.calls()[0].callee = nullptr; }, "call]: caller.up: it has no callee; give one.");
    call_fails([](Algorithm &a) { a.calls()[0].parameters.clear(); },
               "call]: caller.up: the parameter 'scale' of mlp is not bound; give an expression of type f32.");
    call_fails([](Algorithm &a) { a.calls()[0].parameters.at("scale") = constant(DType::f64, 1); },
               "call]: caller.up: the parameter 'scale' of mlp is f32, but is bound to 1.0:f64 of type f64; cast it.");
    call_fails([](Algorithm &a) { a.calls()[0].dims.erase("K"); },
               "call]: caller.up: the dim 'K' of mlp is not bound; bind it to a dim of caller.");
    call_fails([](Algorithm &a) { a.calls()[0].dims["L"] = "A"; },
               "call]: caller.up: it binds the dim 'L', which mlp does not have; it has M, N, K, FOUR. Did you mean 'M'?");
    call_fails([](Algorithm &a) { a.calls()[0].dims["FOUR"] = "A"; },
               "call]: caller.up: the dim 'FOUR' of mlp is bound to 'A', whose extent is not known to be 4; fix it.");
    call_fails([](Algorithm &a) { change_callee(a, [](Algorithm &c) { c.dims[0].multiple_of = 8; }); },
               "call]: caller.up: the dim 'M' of mlp is bound to 'A', which is not known to be a multiple of 8; constrain it.");
    call_fails([](Algorithm &a) { change_callee(a, [](Algorithm &c) { c.dims[0].min = 1; }); },
               "call]: caller.up: the dim 'M' of mlp is bound to 'A', which is not known to be at least 1; constrain it.");
    call_fails([](Algorithm &a) { change_callee(a, [](Algorithm &c) { c.dims[0].equals = "N"; }); },
               "call]: caller.up: the dim 'M' of mlp is bound to 'A', and 'N', which has the same extent, to 'C'; those are not known to "
               "be equal. Bind both to one dim.");
    call_fails([](Algorithm &a) { a.calls()[0].tensors.erase("w"); },
               "call]: caller.up: 'w' of mlp is not bound; bind it to a tensor of caller.");
    call_fails([](Algorithm &a) { a.calls()[0].tensors["w"] = "qq"; },
               "call]: caller.up: 'w' of mlp is bound to 'qq', which does not exist; there are out, p, q, r, s, up.z. Did you mean 'q'?");
    call_fails([](Algorithm &a) { a.calls()[0].tensors["cache"] = "p"; },
               "call]: caller.up: 'cache' of mlp is bound to 'p', which is no state; bind it to one.");
    call_fails([](Algorithm &a) { a.tensors[0].dtype = DType::f64; },
               "call]: caller.up: 'x' of mlp is bound to 'p', which holds f64 where f32 is wanted; cast it in a stage before.");
    call_fails([](Algorithm &a) { a.calls()[0].tensors["b"] = "q"; },
               "call]: caller.up: 'b' of mlp is bound to 'q', which has the dims B, C where N are wanted.");
    call_fails([](Algorithm &a) { a.tensors[2].dims = {"A"}; },
               "call]: caller.up: 'b' of mlp is bound to 'r', whose axis 0 is 'A' where 'C' is wanted, for 'N'; bind that to 'A'.");
    call_fails([](Algorithm &a) { a.updates_state = false; },
               "effects]: caller: it updates a state and does not declare the effect 'memory'; add it.");
    call_fails([](Algorithm &a) { change_callee(a, [](Algorithm &c) { c.outputs = {"q"}; }); },
               "output]: mlp.q: no stage computes it; the results are y, z. Did you mean 'y'?");
    call_fails([](Algorithm &a) { a.calls()[0].tensors["x"] = "out"; },
               "call]: caller.up: 'x' of mlp is bound to 'out', which is computed later; a call takes only earlier results.");
    call_fails([](Algorithm &a) { std::swap(a.steps[0], a.steps[1]); },
               "order]: caller.out: it loads 'up.z', which is not computed before it; move the stage that makes 'up.z' forward.");
    call_fails(
        [](Algorithm &a) {
            a.stages()[0].body = Map{at("up.y", {v("A"), v("C")})};
        },
        "unknown-tensor]: caller.out: there is no tensor 'up.y'; there are out, p, q, r, s, up.z. Did you mean 'up.z'?");
}

}  // namespace tessera::test_verify
