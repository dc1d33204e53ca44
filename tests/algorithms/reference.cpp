#include "algorithms/evaluate/reference.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <random>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/functions.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera::test_reference {

namespace {

using Arrays = std::map<std::string, Array>;
constexpr DType f32 = DType::f32;

Expr v(const std::string &name) { return variable(name); }

std::vector<double> random_values(int64_t count, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<double> values;
    for (int64_t i = 0; i < count; i++) values.push_back(std::uniform_real_distribution<float>(-2, 2)(random));
    return values;
}

std::vector<double> integers(std::initializer_list<int> list) { return {list.begin(), list.end()}; }

float f(double x) { return static_cast<float>(x); }

struct Writer {
    Algorithm a;
    explicit Writer(const std::string &name) { a.name = name; }
    Writer &dims(const std::vector<std::string> &names) {
        for (const std::string &n : names) a.dims.push_back(symbolic_dim(n));
        return *this;
    }
    Writer &dim(const Dim &d) {
        a.dims.push_back(d);
        return *this;
    }
    Writer &tensor(const std::string &name, DType type, const std::vector<std::string> &dims, Role role = Role::input) {
        a.tensors.push_back({name, type, dims, role, {}});
        return *this;
    }
    Writer &map(const std::string &name, const std::vector<std::string> &dims, const Expr &value) {
        a.steps.push_back(Stage{name, dims, Map{value}});
        return *this;
    }
    Writer &reduce(const std::string &name, const std::vector<std::string> &dims, const Reduce &body) {
        a.steps.push_back(Stage{name, dims, body});
        return *this;
    }
    Algorithm outputs(const std::vector<std::string> &names) {
        a.outputs = names;
        return a;
    }
};

Expr at(const std::string &tensor, const std::vector<Expr> &index, DType type = f32) { return load(tensor, type, index); }

Algorithm matmul() {
    return Writer("matmul")
        .dims({"M", "N", "K"})
        .tensor("x", f32, {"M", "K"})
        .tensor("w", f32, {"K", "N"})
        .reduce("y", {"M", "N"}, {dot_monoid(f32), {"K"}, {at("x", {v("M"), v("K")}), at("w", {v("K"), v("N")})}, {}, {}})
        .outputs({"y"});
}

Algorithm softmax() {
    Expr x = at("x", {v("M"), v("N")});
    return Writer("softmax")
        .dims({"M", "N"})
        .tensor("x", f32, {"M", "N"})
        .reduce("m", {"M"}, {max_monoid(f32), {"N"}, {x}, {}, {}})
        .map("p", {"M", "N"}, exp(x - at("m", {v("M")})))
        .reduce("l", {"M"}, {sum_monoid(f32), {"N"}, {at("p", {v("M"), v("N")})}, {}, {}})
        .map("y", {"M", "N"}, at("p", {v("M"), v("N")}) / at("l", {v("M")}))
        .outputs({"y"});
}

// softmax(q k^T) v, masked to keys s <= t.
Algorithm attention() {
    Expr q = at("q", {v("T"), v("D")}), k = at("k", {v("S"), v("D")});
    Expr score = at("score", {v("T"), v("S")}), value = at("v", {v("S"), v("E")});
    Expr acc = at("o.acc", {v("T"), v("E")}), l = at("o.l", {v("T")});
    return Writer("attention")
        .dims({"T", "S", "D", "E"})
        .tensor("q", f32, {"T", "D"})
        .tensor("k", f32, {"S", "D"})
        .tensor("v", f32, {"S", "E"})
        .reduce("score", {"T", "S"}, {dot_monoid(f32), {"D"}, {q, k}, {}, {}})
        .reduce("o", {"T"}, {online_softmax_monoid(f32, "E"), {"S"}, {score, value}, v("S") <= v("T"), {}})
        .map("y", {"T", "E"}, acc / l)
        .outputs({"y"});
}

}  // namespace

TEST_CASE("matmul equals its loops bit for bit, and in f64 the loops in double") {
    int64_t M = 5, N = 7, K = 11;
    auto x = random_values(M * K, 1), w = random_values(K * N, 2);
    Arrays in{{"x", Array(f32, {M, K}, x)}, {"w", Array(f32, {K, N}, w)}};
    Array y = evaluate(matmul(), in).at("y"), wide = evaluate(matmul(), in, {}, Precision::f64).at("y");
    CHECK(y.dtype == f32);
    CHECK(wide.dtype == DType::f64);
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            float sum = 0;
            double sum64 = 0;
            for (int64_t k = 0; k < K; k++) {
                double a = x[static_cast<size_t>(m * K + k)], b = w[static_cast<size_t>(k * N + n)];
                sum = std::fma(f(a), f(b), sum);
                sum64 = std::fma(a, b, sum64);
            }
            CHECK(y.get(m * N + n).real == static_cast<double>(sum));
            CHECK(wide.get(m * N + n).real == sum64);
        }
}

TEST_CASE("softmax equals its loops") {
    int64_t M = 3, N = 9;
    auto x = random_values(M * N, 3);
    Arrays in{{"x", Array(f32, {M, N}, x)}};
    auto y = evaluate(softmax(), in).at("y").values(), wide = evaluate(softmax(), in, {}, Precision::f64).at("y").values();
    for (size_t m = 0; m < 3; m++) {
        double top = -INFINITY, sum = 0;
        for (size_t n = 0; n < 9; n++) top = std::max(top, x[m * 9 + n]);
        for (size_t n = 0; n < 9; n++) sum += std::exp(x[m * 9 + n] - top);
        for (size_t n = 0; n < 9; n++) {
            double expected = std::exp(x[m * 9 + n] - top) / sum;
            CHECK(y[m * 9 + n] == Approx(expected).epsilon(1e-6));
            CHECK(wide[m * 9 + n] == Approx(expected).epsilon(1e-14));
        }
    }
}

TEST_CASE("layernorm by Welford equals its loops") {
    size_t M = 4, N = 33;
    auto x = random_values(4 * 33, 4);
    Expr load_x = at("x", {v("M"), v("N")});
    Algorithm a = Writer("layernorm")
                      .dims({"M", "N"})
                      .tensor("x", f32, {"M", "N"})
                      .reduce("s", {"M"}, {welford_monoid(f32), {"N"}, {load_x}, {}, {}})
                      .map("y", {"M", "N"},
                           (load_x - at("s.mean", {v("M")})) / sqrt(at("s.m2", {v("M")}) / cast(f32, extent("N")) + constant(f32, 1e-5)))
                      .outputs({"y"});
    Arrays in{{"x", Array(f32, {4, 33}, x)}};
    auto y = evaluate(a, in).at("y").values(), wide = evaluate(a, in, {}, Precision::f64).at("y").values();
    for (size_t m = 0; m < M; m++) {
        double mean = 0, variance = 0;
        for (size_t n = 0; n < N; n++) mean += x[m * N + n] / 33;
        for (size_t n = 0; n < N; n++) variance += (x[m * N + n] - mean) * (x[m * N + n] - mean) / 33;
        for (size_t n = 0; n < N; n++) {
            double expected = (x[m * N + n] - mean) / std::sqrt(variance + f(1e-5));
            CHECK(y[m * N + n] == Approx(expected).margin(2e-6));
            CHECK(wide[m * N + n] == Approx(expected).margin(1e-13));
        }
    }
}

TEST_CASE("attention by online softmax equals its loops, with a part over an extra dim and a mask") {
    size_t T = 5, S = 6, D = 3, E = 4;
    auto q = random_values(15, 5), k = random_values(18, 6), value = random_values(24, 7);
    Arrays in{{"q", Array(f32, {5, 3}, q)}, {"k", Array(f32, {6, 3}, k)}, {"v", Array(f32, {6, 4}, value)}};
    auto y = evaluate(attention(), in).at("y").values();
    auto wide = evaluate(attention(), in, {}, Precision::f64).at("y").values();
    for (size_t t = 0; t < T; t++) {
        std::vector<double> p(S);
        double sum = 0;
        for (size_t s = 0; s <= t && s < S; s++) {
            double score = 0;
            for (size_t d = 0; d < D; d++) score += q[t * D + d] * k[s * D + d];
            sum += p[s] = std::exp(score);
        }
        for (size_t e = 0; e < E; e++) {
            double expected = 0;
            for (size_t s = 0; s < S; s++) expected += p[s] / sum * value[s * E + e];
            CHECK(y[t * E + e] == Approx(expected).margin(1e-5));
            CHECK(wide[t * E + e] == Approx(expected).margin(1e-13));
        }
    }
}

TEST_CASE("cumulative sums, inclusive and exclusive, along an outer dim") {
    auto x = random_values(12, 8);
    for (bool inclusive : {true, false}) {
        Writer w("cumsum");
        w.dims({"T", "C"}).tensor("x", f32, {"T", "C"});
        w.a.steps.push_back(Stage{"y", {"T", "C"}, Scan{sum_monoid(f32), "T", inclusive, {at("x", {v("T"), v("C")})}}});
        auto y = evaluate(w.outputs({"y"}), {{"x", Array(f32, {4, 3}, x)}}).at("y").values();
        for (size_t c = 0; c < 3; c++) {
            float sum = 0;
            for (size_t t = 0; t < 4; t++) {
                if (!inclusive) CHECK(y[t * 3 + c] == static_cast<double>(sum));
                sum += f(x[t * 3 + c]);
                if (inclusive) CHECK(y[t * 3 + c] == static_cast<double>(sum));
            }
        }
    }
}

TEST_CASE("scans in both directions begin anew where a segment begins") {
    std::vector<double> x = {1, 2, 4, 8, 16, 32, 64}, begins = {0, 0, 1, 0, 1, 1, 0};
    for (bool inclusive : {true, false})
        for (ScanDirection direction : {ScanDirection::forward, ScanDirection::backward}) {
            Writer w("anew");
            w.dims({"T"}).tensor("x", f32, {"T"}).tensor("begins", DType::boolean, {"T"});
            Expr where = at("begins", {v("T")}, DType::boolean);
            w.a.steps.push_back(Stage{"y", {"T"}, Scan{sum_monoid(f32), "T", inclusive, {at("x", {v("T")})}, direction, where}});
            Arrays in{{"x", Array(f32, {7}, x)}, {"begins", Array(DType::boolean, {7}, begins)}};
            std::vector<double> expected(7);
            bool forward = direction == ScanDirection::forward;
            double sum = 0;
            for (size_t n = 0; n < 7; n++) {
                size_t i = forward ? n : 6 - n;
                if (begins[i] != 0) sum = 0;
                expected[i] = sum + (inclusive ? x[i] : 0);
                sum += x[i];
            }
            CHECK(evaluate(w.outputs({"y"}), in).at("y").values() == expected);
            CHECK(evaluate(w.a, in, {}, Precision::f64).at("y").values() == expected);
        }
}

TEST_CASE("a segmented sum over a ragged dim") {
    Writer w("segments");
    w.dims({"B", "T"}).dim(symbolic_dim("B1")).tensor("x", f32, {"T"}).tensor("offsets", DType::i32, {"B1"});
    w.dim(ragged_dim("R", "offsets", DType::i32, "B"));
    Expr row = cast(DType::index, at("offsets", {v("B")}, DType::i32)) + v("R");
    Algorithm a = w.reduce("y", {"B"}, {sum_monoid(f32), {"R"}, {at("x", {bounded(row, 0, extent("T"))})}, {}, {}})
                      .map("size", {"B"}, at("y", {v("B")}) * constant(f32, 2))
                      .outputs({"y", "size"});
    Arrays in{{"x", Array(f32, {6}, {1, 2, 4, 8, 16, 32})}, {"offsets", Array(DType::i32, {5}, integers({0, 2, 2, 5, 4}))}};
    EvaluationOptions options;
    options.extents["B"] = 4;
    Arrays out = evaluate(a, in, {}, options);
    CHECK(out.at("y").values() == std::vector<double>{3, 0, 28, 0});
    CHECK(out.at("size").values() == std::vector<double>{6, 0, 56, 0});
    CHECK_FALSE(std::signbit(out.at("y").get(1).real));  // the sum of nothing
}

TEST_CASE("an extent is found from a derived one, and derived ones are checked") {
    auto make = [](const Expr &size) {
        Writer w("rows");
        w.dims({"B"}).dim(derived_dim("B1", size)).tensor("offsets", DType::i32, {"B1"});
        return w.map("y", {"B"}, at("offsets", {v("B") + 1}, DType::i32) - at("offsets", {v("B")}, DType::i32)).outputs({"y"});
    };
    Arrays in{{"offsets", Array(DType::i32, {4}, integers({0, 2, 3, 7}))}};
    CHECK(evaluate(make(extent("B") + 1), in).at("y").values() == std::vector<double>{2, 1, 4});
    EvaluationOptions options;
    options.extents["B"] = 2;
    CHECK_THROWS_WITH(evaluate(make(extent("B") + 1), in, {}, options),
                      "error[reference.extent]: rows.B1: the size |B| + 1 is 3, but 4 in offsets.");
}

TEST_CASE("a ring buffer is updated in stage order, and later stages see the new version") {
    Writer w("ring");
    w.dims({"T"}).dim(symbolic_dim("W")).tensor("x", f32, {"T"}).tensor("ring", f32, {"W"}, Role::state);
    w.a.parameters.push_back({"position", DType::i32});
    Expr slot = (cast(DType::index, parameter("position", DType::i32)) + v("T")) % extent("W");
    w.map("old", {"W"}, at("ring", {v("W")}));
    w.a.steps.push_back(Stage{"append", {"T"}, Map({"ring", {slot}}, at("x", {v("T")}))});
    w.map("new", {"W"}, at("ring", {v("W")}));
    Arrays in{{"x", Array(f32, {3}, {1, 2, 3})}, {"ring", Array(f32, {4}, {10, 11, 12, 13})}};
    Arrays out = evaluate(w.outputs({"old", "new"}), in, {{"position", Scalar::of_integer(DType::i32, 3)}});
    CHECK(out.at("ring").values() == std::vector<double>{2, 3, 12, 1});
    CHECK(out.at("new") == out.at("ring"));
    CHECK(out.at("old").values() == std::vector<double>{10, 11, 12, 13});
}

TEST_CASE("an update reads its state as it was before") {
    Writer w("shift");
    w.dims({"W"}).tensor("s", f32, {"W"}, Role::state);
    Expr previous = load_or("s", f32, {v("W") - 1}, v("W") >= 1, constant(f32, 7));
    w.a.steps.push_back(Stage{"shift", {"W"}, Map({"s", {v("W")}}, previous)});
    CHECK(evaluate(w.outputs({}), {{"s", Array(f32, {3}, {1, 2, 3})}}).at("s").values() == std::vector<double>{7, 1, 2});
}

TEST_CASE("a histogram drops what falls outside, and where excludes points") {
    Expr bin = cast(DType::index, at("x", {v("T")}, DType::i32));
    Algorithm a =
        Writer("histogram")
            .dims({"T"})
            .dim(fixed_dim("BINS", 4))
            .tensor("x", DType::i32, {"T"})
            .reduce("y", {"BINS"}, {sum_monoid(DType::i32), {"T"}, {constant_int(DType::i32, 1)}, v("T") < extent("T") - 1, {bin}})
            .outputs({"y"});
    Arrays in{{"x", Array(DType::i32, {8}, integers({0, 3, 3, -1, 4, 1, 3, 0}))}};
    CHECK(evaluate(a, in).at("y").values() == std::vector<double>{1, 1, 0, 3});
}

TEST_CASE("a convolution pads by load_or, over a derived dim") {
    size_t H = 6;
    auto x = random_values(6, 9), k = random_values(3, 10);
    Dim p = derived_dim("P", (extent("H") + 1) / 2);
    Expr place = v("P") * 2 + v("R") - 1;
    Expr padded = load_or("x", f32, {place}, place >= 0 && place < extent("H"), constant(f32, 0));
    Algorithm a = Writer("conv")
                      .dims({"H"})
                      .dim(fixed_dim("R", 3))
                      .dim(p)
                      .tensor("x", f32, {"H"})
                      .tensor("k", f32, {"R"})
                      .reduce("y", {"P"}, {dot_monoid(f32), {"R"}, {padded, at("k", {v("R")})}, {}, {}})
                      .outputs({"y"});
    auto y = evaluate(a, {{"x", Array(f32, {6}, x)}, {"k", Array(f32, {3}, k)}}).at("y").values();
    REQUIRE(y.size() == 3);
    for (size_t i = 0; i < 3; i++) {
        float sum = 0;
        for (size_t r = 0; r < 3; r++) {
            auto h = static_cast<int>(i * 2 + r) - 1;
            sum = std::fma(h >= 0 && h < static_cast<int>(H) ? f(x[static_cast<size_t>(h)]) : 0.0f, f(k[r]), sum);
        }
        CHECK(y[i] == static_cast<double>(sum));
    }
}

TEST_CASE("argmax finds the first of equals") {
    Algorithm a = Writer("argmax")
                      .dims({"M", "N"})
                      .tensor("x", f32, {"M", "N"})
                      .reduce("y", {"M"}, {argmax_monoid(f32), {"N"}, {at("x", {v("M"), v("N")}), cast(DType::i64, v("N"))}, {}, {}})
                      .outputs({"y.value", "y.position"});
    Arrays out = evaluate(a, {{"x", Array(f32, {2, 4}, {1, 5, 5, 2, -3, -4, -3, -9})}});
    CHECK(out.at("y.position").values() == std::vector<double>{1, 0});
    CHECK(out.at("y.value").values() == std::vector<double>{5, -3});
}

TEST_CASE("narrow storage is rounded at every cast, and not at all in f64") {
    Expr x = cast(f32, at("x", {v("N")}, DType::bf16));
    Algorithm a = Writer("narrow")
                      .dims({"N"})
                      .tensor("x", DType::bf16, {"N"})
                      .map("t", {"N"}, cast(DType::bf16, x * constant(f32, 1.01)))
                      .map("y", {"N"}, cast(f32, at("t", {v("N")}, DType::bf16)) + constant(f32, 1))
                      .outputs({"y"});
    Arrays in{{"x", Array(DType::bf16, {1}, {1.5})}};
    CHECK(evaluate(a, in).at("y").values()[0] == 2.515625);
    CHECK(evaluate(a, in, {}, Precision::f64).at("y").values()[0] == Approx(1.5 * f(1.01) + 1).epsilon(1e-15));
}

TEST_CASE("stages and calls run in the order in which they are declared") {
    Builder k("add");
    const Dim X = k.dim("X");
    const Tile total = k.state("total", {X});
    k.update("put", total, {k.index(X)}, total + k.input("more", {X}));
    const Algorithm add = k.build();

    Builder f("turns");
    const Dim N = f.dim("N");
    const Tile s = f.state("s", {N}), x = f.input("x", {N});
    const Tile before = (s + 0.0).named("before");
    f.call("one", add, {s, x});
    const Tile between = (s * 2.0).named("between");
    f.call("two", add, {s, between});
    const Algorithm a = f.output("y", s * 100.0 + between * 10.0 + before).build();
    const Arrays out = evaluate(a, {{"s", Array(f32, {1}, {1})}, {"x", Array(f32, {1}, {3})}});
    CHECK(out.at("s").values() == std::vector<double>{12});             // 1 + 3 = 4, and 2 * 4 more
    CHECK(out.at("y").values() == std::vector<double>{1200 + 80 + 1});  // before: 1, between: 8
    CHECK(semantic_hash(a) == semantic_hash(algorithm_from_json(to_json(a))));
}

// y[] sums over as many elements of x as the state says, which the update makes 3.
static Algorithm counted(bool update_first) {
    Algorithm a;
    a.name = "counted";
    const Expr s = load("s", DType::i32, {});
    a.dims = {symbolic_dim("T"), counted_dim("C", s, extent("T"))};
    a.tensors = {{"x", f32, {"T"}, Role::input, {}}, {"s", DType::i32, {}, Role::state, {}}};
    a.steps = {Stage{"y", {}, Reduce{sum_monoid(f32), {"C"}, {at("x", {v("C")})}, {}, {}}},
               Stage{"put", {}, Map({"s", {}}, constant(DType::i32, 3))}};
    if (update_first) std::swap(a.steps[0], a.steps[1]);
    a.outputs = {"y"};
    a.updates_state = true;
    return a;
}

TEST_CASE("an extent that a state gives is that of its step") {
    for (bool first : {false, true}) {
        verify(counted(first));
        const Arrays out = evaluate(counted(first), {{"x", Array(f32, {3}, {1, 10, 100})}, {"s", Array(DType::i32, {}, {2})}});
        CHECK(out.at("y").values() == std::vector<double>{first ? 111.0 : 11.0});
    }
    CHECK(semantic_hash(counted(false)) != semantic_hash(counted(true)));
}

TEST_CASE("an extent is read from what is computed before it") {
    Algorithm a = counted(true);
    a.tensors.pop_back();
    a.updates_state = false;
    a.steps[0] = Stage{"s", {}, Map(constant(DType::i32, 2))};
    CHECK_NOTHROW(verify(a));
    std::swap(a.steps[0], a.steps[1]);
    CHECK_THROWS_WITH(verify(a),
                      "error[algorithm.order]: counted.y: the extent of 'C' is read from 's', which is not computed before it; "
                      "move the stage that makes 's' forward.");
}

TEST_CASE("calls are inlined") {
    Algorithm inner = matmul(), outer;
    outer.name = "outer";
    outer.dims = {symbolic_dim("A"), symbolic_dim("B"), symbolic_dim("C")};
    outer.tensors = {{"a", f32, {"A", "B"}, Role::input, {}}, {"b", f32, {"B", "C"}, Role::input, {}}};
    Call call;
    call.scope = "mm";
    call.callee = std::make_shared<Algorithm>(inner);
    call.dims = {{"M", "A"}, {"K", "B"}, {"N", "C"}};
    call.tensors = {{"x", "a"}, {"w", "b"}};
    outer.steps = {call, Stage{"z", {"A", "C"}, Map{at("mm.y", {v("A"), v("C")}) + constant(f32, 1)}}};
    outer.outputs = {"z"};
    Arrays out = evaluate(outer, {{"a", Array(f32, {1, 2}, {1, 2})}, {"b", Array(f32, {2, 1}, {3, 4})}});
    CHECK(out.at("z").values() == std::vector<double>{12});
}

TEST_CASE("every stage on request; empty extents give empty results") {
    EvaluationOptions options;
    options.every_stage = true;
    Arrays out = evaluate(softmax(), {{"x", Array(f32, {2, 0})}}, {}, options);
    CHECK(out.size() == 4);
    CHECK(out.at("y").size() == 0);
    CHECK(out.at("m").values() == std::vector<double>{-INFINITY, -INFINITY});
}

TEST_CASE("errors of the reference interpreter name what is wanted") {
    Array x(f32, {2, 3}), w(f32, {4, 5});
    CHECK_THROWS_WITH(evaluate(matmul(), {{"x", x}, {"w", w}}),
                      "error[reference.extent]: matmul.K: the extent is 4, but 3 in x of shape (2, 3).");
    CHECK_THROWS_WITH(evaluate(matmul(), {{"x", x}}), "error[reference.tensor]: matmul wants x, w; 'w' is not given.");
    CHECK_THROWS_WITH(evaluate(matmul(), {{"x", x}, {"ww", w}}),
                      "error[reference.tensor]: matmul has no input or state 'ww'; it has x, w. Did you mean 'w'?");
    CHECK_THROWS_WITH(evaluate(matmul(), {{"x", Array(DType::f64, {2, 3})}, {"w", w}}),
                      "error[reference.tensor]: matmul.x: expected f32 of rank 2, got f64 of rank 2.");
    Algorithm a = matmul();
    a.dims[0].multiple_of = 4;
    CHECK_THROWS_WITH(evaluate(a, {{"x", x}, {"w", Array(f32, {3, 5})}}),
                      "error[reference.extent]: matmul.M: expected a multiple of 4, got 2.");
    a = matmul();
    a.parameters = {{"scale", f32}};
    Arrays good{{"x", x}, {"w", Array(f32, {3, 5})}};
    CHECK_THROWS_WITH(evaluate(a, good), "error[reference.parameter]: matmul wants the parameter 'scale' of type f32; it is not given.");
    CHECK_THROWS_WITH(evaluate(a, good, {{"scale", Scalar::of_real(DType::f64, 1)}}),
                      "error[reference.parameter]: matmul wants the parameter 'scale' of type f32; got f64.");
    Algorithm free = Writer("iota").dims({"N"}).map("y", {"N"}, cast(DType::i32, v("N"))).outputs({"y"});
    CHECK_THROWS_WITH(evaluate(free, {}),
                      "error[reference.extent]: iota.N: no given tensor has this dim; give its extent in "
                      "EvaluationOptions::extents.");
    CHECK_THROWS_AS(Array(f32, {2}, {1}), InternalError);
}

TEST_CASE("the interpreter is fast enough for tests of useful size", "[.speed]") {
    int64_t n = 192;
    Arrays in{{"x", Array(f32, {n, n}, random_values(n * n, 1))}, {"w", Array(f32, {n, n}, random_values(n * n, 2))}};
    auto start = std::chrono::steady_clock::now();
    evaluate(matmul(), in);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    WARN(static_cast<double>(n * n * n) / taken.count() / 1e6 << " million steps/s");
}

}  // namespace tessera::test_reference
