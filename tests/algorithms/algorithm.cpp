#include "algorithms/ir/algorithm.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/functions/functions.h"
#include "support/text/error.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_algorithm {

using namespace tessera::test;

namespace {

using Element = std::vector<Scalar>;

// The value of an expression of a monoid's definition.
Scalar evaluate(const Expr &e, const Element &l, const Element &r, const Element &in) {
    if (e.kind() == ExprKind::function) return evaluate(definition_of(e), l, r, in);
    auto at = [&](const Element &from) { return from.at(static_cast<size_t>(e->number)); };
    switch (e.kind()) {
    case ExprKind::constant: return e->value;
    case ExprKind::left: return at(l);
    case ExprKind::right: return at(r);
    case ExprKind::input: return at(in);
    default: break;
    }
    std::vector<Scalar> args;
    for (const Expr &arg : e->args) args.push_back(evaluate(arg, l, r, in));
    if (e.kind() == ExprKind::operation) return apply(e->op, args.data());
    if (e.kind() == ExprKind::bitcast) return bitcast(e.type(), args[0]);
    REQUIRE(e.kind() == ExprKind::cast);
    return convert(e.type(), e->rounding, e->saturate, args[0]);
}

Element evaluate(const std::vector<Expr> &list, const Element &l, const Element &r, const Element &in) {
    Element values;
    for (const Expr &e : list) values.push_back(evaluate(e, l, r, in));
    return values;
}

Element identity(const Monoid &m) {
    Element values;
    for (const Part &p : m.parts) values.push_back(p.identity);
    return values;
}
Element lift(const Monoid &m, const Element &in) { return evaluate(m.lift, {}, {}, in); }
Element combine(const Monoid &m, const Element &a, const Element &b) { return evaluate(m.combine, a, b, {}); }
Element step(const Monoid &m, const Element &a, const Element &in) { return evaluate(m.step, a, {}, in); }

bool close(const Element &a, const Element &b, double tolerance) {
    for (size_t i = 0; i < a.size(); i++) {
        if (a[i] == b[i]) continue;
        if (!is_float(a[i].type)) return false;
        if (!(std::fabs(a[i].real - b[i].real) <= tolerance * (1 + std::fabs(a[i].real) + std::fabs(b[i].real)))) return false;
    }
    return true;
}

struct Law {
    Monoid monoid;
    double tolerance;  // 0: exactly
};

std::vector<Law> laws() {
    std::vector<Law> all;
    for (DType type : {DType::f32, DType::f64}) {
        double eps = type == DType::f32 ? 1e-5 : 1e-13;
        all.push_back({sum_monoid(type), eps}), all.push_back({product_monoid(type), eps}), all.push_back({dot_monoid(type), eps});
        all.push_back({welford_monoid(type), eps * 10}), all.push_back({online_softmax_monoid(type, "V"), eps * 10});
        all.push_back({max_monoid(type), 0}), all.push_back({max_number_monoid(type), 0}), all.push_back({min_monoid(type), 0}),
            all.push_back({argmax_monoid(type), 0});
    }
    for (DType type : {DType::i32, DType::i64})
        for (auto make : {sum_monoid, product_monoid, max_monoid, max_number_monoid, min_monoid, dot_monoid, argmax_monoid})
            all.push_back({make(type), 0});
    for (size_t i = 0, n = all.size(); i < n; i++) all.push_back({segmented_monoid(all[i].monoid), all[i].tolerance});
    return all;
}

Element random_inputs(const Monoid &m, std::mt19937 &random) {
    Element in;
    for (DType type : m.inputs) {
        double unit = std::ldexp(static_cast<double>(random()), -32);
        // Few distinct integers, so that argmax meets equal values.
        if (type == DType::boolean) in.push_back(Scalar::of_integer(type, random() % 3 == 0));
        else if (is_float(type)) in.push_back(Scalar::of_real(type, random() % 4 ? 4 * unit - 2 : std::floor(4 * unit)));
        else in.push_back(Scalar::of_integer(type, random() % 2 ? random() % 5 : static_cast<int32_t>(random())));
    }
    return in;
}

Element fold(const Monoid &m, std::mt19937 &random, uint32_t count) {
    Element e = identity(m);
    for (uint32_t i = 0; i < count; i++) e = step(m, e, random_inputs(m, random));
    return e;
}

}  // namespace

TEST_CASE("algorithm: monoids obey their laws") {
    std::mt19937 random(11);
    for (const Law &law : laws()) {
        const Monoid &m = law.monoid;
        INFO(m.name << " of " << name_of(m.inputs[0]));
        for (int trial = 0; trial < 200; trial++) {
            Element a = fold(m, random, random() % 6), b = fold(m, random, random() % 6), c = fold(m, random, random() % 6);
            Element in = random_inputs(m, random);
            REQUIRE(close(combine(m, identity(m), a), a, law.tolerance));
            REQUIRE(close(combine(m, a, identity(m)), a, law.tolerance));
            REQUIRE(close(combine(m, combine(m, a, b), c), combine(m, a, combine(m, b, c)), law.tolerance));
            REQUIRE(close(step(m, a, in), combine(m, a, lift(m, in)), law.tolerance));
            if (m.commutative) REQUIRE(close(combine(m, a, b), combine(m, b, a), law.tolerance));
        }
    }
}

TEST_CASE("algorithm: the identity is exact, down to the sign of zero and for infinities") {
    for (double value : {-0.0, 0.0, 3.5, static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
        for (const Monoid &m : {product_monoid(DType::f32), max_monoid(DType::f32), min_monoid(DType::f32)}) {
            INFO(m.name << " " << value);
            Element a = {Scalar::of_real(DType::f32, value)};
            CHECK(combine(m, identity(m), a) == a);
            CHECK(combine(m, a, identity(m)) == a);
        }
        // For sums, which are never -0.0 since they begin at +0.0.
        for (const Monoid &m : {sum_monoid(DType::f32), dot_monoid(DType::f32)}) {
            const Element a = combine(m, identity(m), {Scalar::of_real(DType::f32, value)});
            INFO(m.name << " " << value);
            CHECK(a[0].real == value);
            CHECK_FALSE((value == 0 && std::signbit(a[0].real)));
            CHECK(combine(m, identity(m), a) == a);
            CHECK(combine(m, a, identity(m)) == a);
        }
    }
}

TEST_CASE("algorithm: the sum of nothing is +0.0, by every fold that adds") {
    for (DType type : {DType::f32, DType::f64})
        for (const Monoid &m : {sum_monoid(type), dot_monoid(type), welford_monoid(type), online_softmax_monoid(type, "V")})
            for (const Part &p : m.parts) CHECK_FALSE((p.identity.real == 0 && std::signbit(p.identity.real)));
}

TEST_CASE("algorithm: folds of nothing, and of masked scores, are not NaN") {
    Monoid m = online_softmax_monoid(DType::f32, "V");
    Element empty = identity(m), masked = {Scalar::of_real(DType::f32, -INFINITY), Scalar::of_real(DType::f32, 2)};
    CHECK(combine(m, empty, empty) == empty);
    Element all_masked = step(m, step(m, empty, masked), masked);
    CHECK(all_masked[1] == Scalar::of_real(DType::f32, 0));
    CHECK(all_masked[2] == Scalar::of_real(DType::f32, 0));
    Monoid w = welford_monoid(DType::f32);
    CHECK(combine(w, identity(w), identity(w)) == identity(w));
}

TEST_CASE("algorithm: argmax gives the first of equals, in any order of combining") {
    Monoid m = argmax_monoid(DType::f32);
    auto at = [](double value, int64_t position) {
        return Element{Scalar::of_real(DType::f32, value), Scalar::of_integer(DType::i64, position)};
    };
    CHECK(combine(m, at(1, 7), at(1, 3)) == at(1, 3));
    CHECK(combine(m, at(1, 3), at(1, 7)) == at(1, 3));
    CHECK(step(m, at(2, 3), at(1, 0)) == at(2, 3));
}

TEST_CASE("algorithm: welford is the mean and the sum of squares about it") {
    Monoid m = welford_monoid(DType::f64);
    Element e = identity(m);
    for (double x : {1.0, 2.0, 4.0, 9.0}) e = step(m, e, {Scalar::of_real(DType::f64, x)});
    CHECK(e[0].real == 4);
    CHECK(e[1].real == Approx(4));
    CHECK(e[2].real == Approx(38));
}

TEST_CASE("algorithm: a batch names passes that exist, with operands from before") {
    for (const Law &law : laws()) {
        const Monoid &m = law.monoid;
        INFO(m.name);
        CHECK((m.batch.empty() || m.batch_parts.size() == m.parts.size()));
        for (int part : m.batch_parts) CHECK((part >= 0 && static_cast<size_t>(part) < m.batch.size()));
        for (size_t i = 0; i < m.batch.size(); i++)
            for (const Expr &value : m.batch[i].values)
                walk(value, [&](const Expr &e) {
                    CHECK(e.kind() != ExprKind::left);
                    if (e.kind() == ExprKind::right) CHECK(static_cast<size_t>(e->number) < i);
                    if (e.kind() == ExprKind::input) CHECK(static_cast<size_t>(e->number) < m.inputs.size());
                });
    }
}

TEST_CASE("algorithm: results_of names and shapes what a stage defines") {
    auto names = [](const Stage &stage) {
        std::vector<std::string> list;
        for (const Tensor &t : results_of(stage)) list.push_back(t.name + "[" + join(t.dims) + "]:" + name_of(t.dtype));
        return join(list);
    };
    CHECK(names(std::get<Stage>(matmul().steps[0])) == "acc[M, N]:f32");
    CHECK(names(std::get<Stage>(layernorm().steps[1])) == "y[M, K]:bf16");
    CHECK(names(std::get<Stage>(attention().steps[1])) == "o.m[Q]:f32, o.l[Q]:f32, o.acc[Q, V]:f32");
    CHECK(names(std::get<Stage>(argmax().steps[0])) == "best.value[M]:f32, best.position[M]:i64");
    CHECK(names(std::get<Stage>(prefix_sums().steps[0])) == "y[M, N]:f64");
    CHECK(names(std::get<Stage>(ring_buffer().steps[0])) == "none");
}

TEST_CASE("algorithm: things are found by name") {
    Algorithm a = attention();
    CHECK(a.find_dim("Q") == &a.dims[0]);
    CHECK(a.find_dim("X") == nullptr);
    CHECK(a.find_tensor("k") == &a.tensors[1]);
    CHECK(a.find_tensor("o") == nullptr);
    CHECK(a.find_stage("o") == &a.stages()[1]);
    CHECK(a.find_stage("o.acc") == nullptr);
    CHECK(defining_stage(a, "o.acc") == &a.stages()[1]);
    CHECK(defining_stage(a, "q") == nullptr);
    CHECK(reduced_dims(a.stages()[1]) == std::vector<std::string>{"S"});
    CHECK(reduced_dims(a.stages()[2]).empty());
    CHECK(a.dim("D").value == 64);
    CHECK_THROWS_WITH(a.dim("X"), Catch::Contains("no dim X in attention"));
}

TEST_CASE("algorithm: every expression of a stage is visited and can be replaced") {
    auto count = [](const Stage &stage) { return expressions_of(stage).size(); };
    CHECK(count(std::get<Stage>(matmul().steps[0])) == 2);
    CHECK(count(std::get<Stage>(matmul().steps[1])) == 1);
    CHECK(count(std::get<Stage>(histogram().steps[0])) == 3);
    CHECK(count(std::get<Stage>(prefix_sums().steps[0])) == 1);
    CHECK(count(std::get<Stage>(ring_buffer().steps[0])) == 3);
    for (const Algorithm &a : samples())
        for (const Stage &stage : a.stages()) {
            Stage zeros = map_expressions(stage, [](const Expr &e) { return constant(e.type(), 0); });
            CHECK(count(zeros) == count(stage));
            for (const Expr &e : expressions_of(zeros)) CHECK(e.is_constant());
        }
}

TEST_CASE("algorithm: a stage's monoid is reached apart from its own expressions") {
    auto to_zero = [](const Expr &e) { return constant(e.type(), 0); };
    Stage fold{"sum", {"M"}, Reduce{dot_monoid(DType::f32), {"K"}, {load("a", DType::f32, {variable("K")})}, {}, {}}};
    const Monoid &declared = monoid_of(fold);
    CHECK(equal(monoid_of(map_expressions(fold, to_zero)).step[0], declared.step[0]));
    const Stage changed = map_monoid(fold, [&](const Monoid &m) { return map_expressions(m, to_zero); });
    CHECK(equal(inputs_of(changed)[0], inputs_of(fold)[0]));
    const Monoid &zeros = monoid_of(changed);
    for (const auto *list : {&zeros.lift, &zeros.combine, &zeros.step, &zeros.batch[0].values})
        for (const Expr &e : *list) CHECK(e.is_constant());
    CHECK(is_fold(fold));
    CHECK(folded_dims(fold) == std::vector<std::string>{"K"});
    CHECK(scanned_dim(fold).empty());
    const Stage scan{"sums", {"M", "K"}, Scan{sum_monoid(DType::f32), "K", true, {variable("K")}, {}, {}}};
    CHECK(folded_dims(scan) == std::vector<std::string>{"K"});
    CHECK(scanned_dim(scan) == "K");
    const Stage map{"copy", {"M"}, Map{variable("M")}};
    CHECK_FALSE(is_fold(map));
    CHECK(folded_dims(map).empty());
    CHECK_THROWS_AS(monoid_of(map), InternalError);
}

TEST_CASE("algorithm: the expressions of an algorithm are the sizes of its dims, its stages' and its calls' parameters") {
    Algorithm a;
    a.dims = {symbolic_dim("M"), derived_dim("H", extent("M") / 2)};
    a.steps = {Stage{"y", {"M"}, Map{cast(DType::f32, variable("M"))}},
               Call{"f", std::make_shared<const Algorithm>(), {}, {}, {{"scale", parameter("s", DType::f32)}}}};
    int met = 0;
    const Algorithm b = map_expressions(a, [&](const Expr &e) { return met++, constant(e.type(), 1); });
    CHECK(met == 3);
    CHECK(b.dims[1].size.is_constant(1));
    CHECK_FALSE(b.dims[0].size.defined());
    CHECK(std::get<Map>(b.stages()[0].body).values[0].value.is_constant());
    CHECK(b.calls()[0].parameters.at("scale").is_constant());
}

TEST_CASE("algorithm: numerics are found by name") {
    CHECK(numerics_named("bf16").storage == DType::bf16);
    CHECK(numerics_named("bf16").accumulate == DType::f32);
    CHECK(join(numerics_names()) ==
          "f32, f64, bf16, f16, training, inference, int8, nvfp4, tf32, fast_bf16, bf16_products, bf16_machine, f16_machine");
    CHECK_THROWS_WITH(numerics_named("bf61"),
                      "error[numerics.unknown]: there is no numerics policy 'bf61'; the policies are f32, f64, bf16, f16, training, "
                      "inference, int8, nvfp4, tf32, fast_bf16, bf16_products, bf16_machine, f16_machine. Did you mean 'bf16'? One of your "
                      "own is a file (*.json), or "
                      "registered in a "
                      "generator of your own.");
}

TEST_CASE("algorithm: derived dims say their sizes") {
    CHECK(to_string(ragged_dim("R", "offsets", DType::i32, "S").size) == "max(index(offsets[S + 1]) - index(offsets[S]), 0)");
    CHECK(to_string(counted_dim("C", load("count", DType::i32, {variable("S")}), extent("T")).size) == "max(min(index(count[S]), |T|), 0)");
    CHECK(fixed_dim("K", 7).value == 7);
    CHECK(symbolic_dim("M").kind == DimKind::symbolic);
}

}  // namespace tessera::test_algorithm
