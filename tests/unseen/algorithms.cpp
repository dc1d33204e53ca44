// Twenty algorithms that are nobody's pattern, as a user would declare them. No schedule is ever written for any of
// them: they show what Tessera makes of a stranger's kernel. loops.c has the same in plain C.
#include <array>
#include <cmath>

#include "algorithms/build/convolution.h"
#include "algorithms/build/ragged.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/functions.h"
#include "tests/unseen/algorithms.h"

using namespace tessera;

namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32;

Part part(const std::string &name, const Expr &identity) { return {name, identity->value, {}}; }
Expr infinity() { return constant(f32, INFINITY); }
Expr at_left(int p) { return left(p, f32); }
Expr at_right(int p) { return right(p, f32); }
Expr in(int i) { return input(i, f32); }

Dim at_least(Builder &f, const std::string &name, int64_t least) {
    Dim d = symbolic_dim(name);
    d.min = least;
    return f.dim(d);
}

// The row of a table that data names: clamped into it.
Expr row(const Tile &number, const Dim &of) { return bounded(cast(DType::index, number.value()), Expr(0), extent(of.name)); }

// Products of a semiring, and distances: every pair of a row of x and a column or row of the other operand.

Algorithm max_plus(const Numerics &n) {
    Builder f("max_plus", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = at_least(f, "K", 1);
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
    const Monoid first = argmax_monoid(f32);
    std::vector<Tile> best = f.fold(first, {x + w, cast(first.inputs[1], f.index(K))}, {"K"});  // (M, N) each
    return f.output("y", best[0]).output("at", cast(i32, best[1])).build();
}

Algorithm noisy_or(const Numerics &n) {
    Builder f("noisy_or", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), one = f.scalar(f32, 1);
    return f.output("y", one - product(one - x * w, K)).build();  // (M, N)
}

Algorithm l1_distance(const Numerics &n) {
    Builder f("l1_distance", n);
    Dim I = f.dim("I"), J = f.dim("J"), K = f.dim("K");
    Tile x = f.input("x", {I, K}), c = f.input("c", {J, K});
    Tile difference = x - c;                                             // (I, K, J)
    return f.output("y", sum(max(difference, -difference), K)).build();  // (I, J)
}

Algorithm pairwise_lse(const Numerics &n) {
    Builder f("pairwise_lse", n);
    Dim I = f.dim("I"), J = f.dim("J"), K = at_least(f, "K", 1);
    Tile x = f.input("x", {I, K}), c = f.input("c", {J, K});
    Tile t = x + c;                                                 // (I, K, J)
    Tile top = max(t, K).named("top");                              // (I, J)
    return f.output("y", log(sum(exp(t - top), K)) + top).build();  // (I, J)
}

// The nearest code of each vector, and what is left of the vector then.
Algorithm vector_quantize(const Numerics &n) {
    Builder f("vector_quantize", n);
    Dim M = f.dim("M"), N = at_least(f, "N", 1), K = f.dim("K");
    Tile x = f.input("x", {M, K}), codes = f.input("codes", {N, K});
    Tile difference = x - codes;                                        // (M, K, N)
    Tile distance = sum(difference * difference, K).named("distance");  // (M, N)
    Monoid nearest;
    nearest.name = "nearest";
    nearest.parts = {part("distance", infinity()), part("code", constant_int(i32, INT32_MAX))};
    nearest.inputs = {f32, i32};
    auto nearer = [](const Expr &d, const Expr &c) -> std::vector<Expr> {
        const Expr held = at_left(0), code = left(1, i32), take = d < held || (d == held && c < code);
        return {select(take, d, held), select(take, c, code)};
    };
    nearest.lift = {in(0), input(1, i32)};
    nearest.combine = nearer(at_right(0), right(1, i32));
    nearest.step = nearer(in(0), input(1, i32));
    Tile code = f.fold(nearest, {distance, cast(i32, f.index(N))}, {"N"})[1];  // (M)
    Tile left_over = x - codes.at({{"N", row(code, N)}}, {"M", "K"});          // (M, K)
    return f.output("code", code).output("y", left_over).build();
}

// The largest distance of a point of x to the nearest one of z, for each pair of clouds.
Algorithm hausdorff(const Numerics &n) {
    Builder f("hausdorff", n);
    Dim B = f.dim("B"), M = at_least(f, "M", 1), N = at_least(f, "N", 1), D = f.dim("D", 3);
    Tile x = f.input("x", {B, M, D}), z = f.input("z", {B, N, D});
    Tile difference = x - z;                                                              // (B, M, D, N)
    return f.output("y", sqrt(max(min(sum(difference * difference, D), N), M))).build();  // (B)
}

// Folds along one dim by monoids of several parts that do not commute.

// The product of K matrices of 2 by 2, in order.
Algorithm transfer_matrices(const Numerics &n) {
    Builder f("transfer_matrices", n);
    Dim M = f.dim("M"), K = f.dim("K"), P = f.dim("P", 2), Q = f.dim("Q", 2);
    Tile x = f.input("x", {M, K, P, Q});
    Monoid chain;
    chain.name = "chain", chain.commutative = false;
    std::vector<Tile> elements;  // (M, K) each
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++) {
            auto element = [&](auto of) { return fma(at_left(2 * p), of(q), at_left(2 * p + 1) * of(2 + q)); };
            chain.parts.push_back(part("p" + std::to_string(p) + std::to_string(q), constant(f32, p == q)));
            chain.inputs.push_back(f32);
            chain.lift.push_back(in(2 * p + q));
            chain.combine.push_back(element(at_right));
            chain.step.push_back(element(in));
            elements.push_back(x.at({{"P", Expr(p)}, {"Q", Expr(q)}}, {"M", "K"}));
        }
    std::vector<Tile> y = f.fold(chain, elements, {"K"});                                      // (M) each
    return f.output("y", stack({stack({y[0], y[2]}, P), stack({y[1], y[3]}, P)}, Q)).build();  // (M, P, Q)
}

// The largest sum of neighbours in each row; of none it is 0.
Algorithm max_subarray(const Numerics &n) {
    Builder f("max_subarray", n);
    Dim M = f.dim("M"), T = f.dim("T");
    Tile x = f.input("x", {M, T});
    const Expr zero = constant(f32, 0), gain = max(in(0), zero);
    enum { total, head, tail, best };
    Monoid neighbours;
    neighbours.name = "neighbours", neighbours.commutative = false;
    neighbours.parts = {part("total", zero), part("head", zero), part("tail", zero), part("best", zero)};
    neighbours.inputs = {f32};
    neighbours.lift = {in(0), gain, gain, gain};
    neighbours.combine = {at_left(total) + at_right(total), max(at_left(head), at_left(total) + at_right(head)),
                          max(at_right(tail), at_left(tail) + at_right(total)),
                          max(max(at_left(best), at_right(best)), at_left(tail) + at_right(head))};
    neighbours.step = {at_left(total) + in(0), max(at_left(head), at_left(total) + gain), max(gain, at_left(tail) + in(0)),
                       max(max(at_left(best), gain), at_left(tail) + gain)};
    return f.output("y", f.fold(neighbours, {x}, {"T"})[best]).build();  // (M)
}

// Scans of several parts.

// h = decay h + x: the parts are h and the product of the decays.
Monoid recurrence() {
    Monoid m;
    m.name = "recurrence", m.commutative = false;
    m.parts = {part("h", constant(f32, 0)), part("decay", constant(f32, 1))};
    m.inputs = {f32, f32};  // decay, x
    m.lift = {in(1), in(0)};
    m.combine = {fma(at_left(0), at_right(1), at_right(0)), at_left(1) * at_right(1)};
    m.step = {fma(at_left(0), in(0), in(1)), at_left(1) * in(0)};
    return m;
}

Algorithm linear_recurrence(const Numerics &n) {
    Builder f("linear_recurrence", n);
    Dim T = f.dim("T"), C = f.dim("C");
    Tile a = f.input("a", {T, C}), x = f.input("x", {T, C}), q = f.input("q", {T, C});
    Tile h = f.scan_parts(recurrence(), {a, x}, T)[0];  // (T, C)
    return f.output("y", dot(h, q, {C})).build();       // (T)
}

// h[T, C, S] = exp(dt[T, C] a[C, S]) h[T - 1, C, S] + dt[T, C] x[T, C] b[T, S]
Algorithm selective_scan(const Numerics &n) {
    Builder f("selective_scan", n);
    Dim T = f.dim("T"), C = f.dim("C"), S = f.dim("S");
    Tile x = f.input("x", {T, C}), dt = f.input("dt", {T, C}), a = f.input("a", {C, S});
    Tile b = f.input("b", {T, S}), c = f.input("c", {T, S});
    Tile decay = exp(dt * a), more = dt * x * b;               // (T, C, S)
    Tile h = f.scan_parts(recurrence(), {decay, more}, T)[0];  // (T, C, S)
    return f.output("y", dot(h, c, {S})).build();              // (T, C)
}

// Each channel normalized by the mean and variance of what it was until now.
Algorithm running_moments(const Numerics &n) {
    Builder f("running_moments", n);
    Dim T = f.dim("T"), C = f.dim("C");
    Tile x = f.input("x", {T, C});
    std::vector<Tile> seen = f.scan_parts(welford_monoid(f32), {x}, T);             // n, mean, m2: (T, C) each
    return f.output("y", (x - seen[1]) * rsqrt(seen[2] / seen[0] + 1e-5)).build();  // (T, C)
}

// Windows.

// The mean of a window by weights that fall with distance, as g says, and with difference from the pixel in its middle.
Algorithm bilateral(const Numerics &n) {
    Builder f("bilateral", n);
    Dim H = f.dim("H"), W = f.dim("W"), R = at_least(f, "R", 1), S = at_least(f, "S", 1);
    Dim P = positions_dim("P", H, R, {}), Q = positions_dim("Q", W, S, {});
    Tile x = f.input("x", {H, W}), g = f.input("g", {R, S});
    Tile sharpness = f.parameter("sharpness", f32);
    Tile seen = windows(windows(x, H, P, R, {}), W, Q, S, {});  // (P, Q, R, S)
    Tile middle = x.at({{"H", variable("P") + extent("R") / Expr(2)}, {"W", variable("Q") + extent("S") / Expr(2)}}, {"P", "Q"});
    Tile d = seen - middle;  // (P, Q, R, S)
    Monoid mean;
    mean.name = "weighted";
    mean.parts = {part("sum", constant(f32, 0)), part("weight", constant(f32, 0))};
    mean.inputs = {f32, f32};  // weight, value
    mean.lift = {in(0) * in(1), in(0)};
    mean.combine = {at_left(0) + at_right(0), at_left(1) + at_right(1)};
    mean.step = {fma(in(0), in(1), at_left(0)), at_left(1) + in(0)};
    std::vector<Tile> parts = f.fold(mean, {exp(g - d * d * sharpness), seen}, {"R", "S"});  // (P, Q) each
    return f.output("y", parts[0] / parts[1]).build();                                       // (P, Q)
}

Algorithm erosion(const Numerics &n) {
    Builder f("erosion", n);
    Dim H = f.dim("H"), W = f.dim("W"), C = f.dim("C"), R = at_least(f, "R", 1), S = at_least(f, "S", 1);
    Tile x = f.input("x", {H, W, C}), k = f.input("k", {R, S});
    Tile seen = windows(windows(x, H, positions_dim("P", H, R, {}), R, {}), W, positions_dim("Q", W, S, {}), S, {});  // (P, Q, C, R, S)
    return f.output("y", f.fold(min_monoid(f32), {seen - k}, {"R", "S"})[0]).build();                                 // (P, Q, C)
}

// Small fixed dims: the points of each body turned by its quaternion.

Algorithm rotate(const Numerics &n) {
    Builder f("rotate", n);
    Dim B = f.dim("B"), N = f.dim("N"), D = f.dim("D", 3), E = f.dim("E", 4);
    Tile x = f.input("x", {B, N, D}), q = f.input("q", {B, E});
    using Vector = std::array<Tile, 3>;
    auto cross = [](const Vector &a, const Vector &b) -> Vector {
        return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    };
    auto point = [&](int i) { return x.at({{"D", Expr(i)}}, {"B", "N"}); };
    auto turn = [&](int i) { return q.at({{"E", Expr(i)}}, {"B"}); };
    const Vector v = {point(0), point(1), point(2)}, u = {turn(1), turn(2), turn(3)};
    const Vector once = cross(u, v), twice = cross(u, once);  // (B, N) each
    std::vector<Tile> y;
    for (size_t i = 0; i < 3; i++) y.push_back(v[i] + (once[i] * turn(0) + twice[i]) * 2);
    return f.output("y", stack(y, D)).build();  // (B, N, D)
}

// Maps between two products.

Algorithm group_glu(const Numerics &n) {
    Builder f("group_glu", n);
    Dim M = f.dim("M"), G = f.dim("G"), K = f.dim("K"), F = f.dim("F"), N = f.dim("N");
    Tile x = f.input("x", {M, G, K}), gate = f.input("gate", {G, K, F}), up = f.input("up", {G, K, F}), down = f.input("down", {G, F, N});
    Tile hidden = (silu(dot(x, gate).named("gated")) * dot(x, up).named("raised")).named("hidden");  // (M, G, F)
    return f.output("y", dot(hidden, down)).build();                                                 // (M, G, N)
}

// A token goes to the two experts with the best scores, by shares that are the softmax of the two; an expert's answer is its vector.
Algorithm top2_routing(const Numerics &n) {
    Builder f("top2_routing", n);
    Dim M = f.dim("M"), K = f.dim("K"), E = at_least(f, "E", 2), N = f.dim("N");
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, E}), expert = f.input("expert", {E, N});
    Tile score = dot(x, w).named("score");  // (M, E)
    struct Best {
        Expr score, at;
    };
    // A NaN is above all, the first of equals is better: the same in every order.
    auto better = [](const Best &a, const Best &b) {
        const Expr a_nan = a.score != a.score, b_nan = b.score != b.score;
        return b.score < a.score || (a_nan && !b_nan) || ((a.score == b.score || (a_nan && b_nan)) && a.at < b.at);
    };
    auto pick = [](const Expr &take, const Best &a, const Best &b) -> Best {
        return {select(take, a.score, b.score), select(take, a.at, b.at)};
    };
    const Best first{at_left(0), left(1, i32)}, second{at_left(2), left(3, i32)};
    const Best right_first{at_right(0), right(1, i32)}, right_second{at_right(2), right(3, i32)}, next{in(0), input(1, i32)};
    auto merged = [&](const Best &other, const Best &others_second) -> std::vector<Expr> {
        const Expr wins = better(first, other);
        const Best top = pick(wins, first, other), loser = pick(wins, other, first), runner_up = pick(wins, second, others_second);
        const Best then = pick(better(loser, runner_up), loser, runner_up);
        return {top.score, top.at, then.score, then.at};
    };
    const Best none{constant(f32, -INFINITY), constant_int(i32, INT32_MAX)};
    Monoid top2;
    top2.name = "top2";
    top2.parts = {part("first", none.score), part("first_at", none.at), part("second", none.score), part("second_at", none.at)};
    top2.inputs = {f32, i32};
    top2.lift = {next.score, next.at, none.score, none.at};
    top2.combine = merged(right_first, right_second);
    top2.step = merged(next, none);
    std::vector<Tile> best = f.fold(top2, {score, cast(i32, f.index(E))}, {"E"});  // (M) each
    Tile share = sigmoid(best[0] - best[2]).named("share");                        // (M)
    auto answer = [&](const Tile &at) { return expert.at({{"E", row(at, E)}}, {"M", "N"}); };
    Tile y = answer(best[1]) * share + answer(best[3]) * (f.scalar(f32, 1) - share);  // (M, N)
    return f.output("y", y).output("first", best[1]).output("second", best[3]).build();
}

// Ragged rows and gathers.

struct Bags {  // rows of T that belong to one of B bags
    explicit Bags(Builder &f) : B(f.dim("B")), B1(f.dim(derived_dim("B1", extent("B") + 1))), T(at_least(f, "T", 1)) {
        offsets = f.input("offsets", {B1}, DType::i64);
        RaggedRows rows = ragged_rows("R", "offsets", DType::i64, "B", "T");
        R = f.dim(rows.dim), row = rows.row;
    }
    // x[T, …] as rows of bags.
    Tile of(const Tile &x, std::vector<std::string> dims) const { return x.at({{"T", row}}, std::move(dims)); }
    Dim B, B1, T, R;
    Tile offsets;
    Expr row;
};

Algorithm weighted_bag(const Numerics &n) {
    Builder f("weighted_bag", n);
    Bags bags(f);
    Dim V = at_least(f, "V", 1), N = f.dim("N");
    Tile id = f.input("id", {bags.T}, i32), weight = f.input("weight", {bags.T}), table = f.input("table", {V, N});
    Tile rows = table.at({{"V", row(bags.of(id, {"B", "R"}), V)}}, {"B", "R", "N"});
    return f.output("y", sum(rows * bags.of(weight, {"B", "R"}), bags.R)).build();  // (B, N)
}

// The mean of each bag's rows by the softmax of their scores; of an empty bag it is 0.
Algorithm ragged_pool(const Numerics &n) {
    Builder f("ragged_pool", n);
    Bags bags(f);
    Dim N = f.dim("N");
    Tile score = bags.of(f.input("score", {bags.T}), {"B", "R"}), value = bags.of(f.input("value", {bags.T, N}), {"B", "R", "N"});
    Tile top = max(score, bags.R).named("top");                                                // (B)
    Tile weight = exp(score - top);                                                            // (B, R)
    Tile total = sum(weight, bags.R).named("total");                                           // (B), at least 1 where there are rows
    return f.output("y", sum(value * weight, bags.R) / max(total, f.scalar(f32, 1))).build();  // (B, N)
}

// Mixed types.

// Distances to vectors that are stored as G codes of a byte, looked up in tables: product quantization.
Algorithm code_distance(const Numerics &n) {
    Builder f("code_distance", n);
    Dim M = f.dim("M"), N = f.dim("N"), G = f.dim("G"), V = f.dim("V", 256);
    Tile code = f.input("code", {N, G}, DType::u8), table = f.input("table", {M, G, V});
    return f.output("y", sum(table.at({{"V", row(code, V)}}, {"M", "N", "G"}), G)).build();  // (M, N)
}

// Sums of bytes within a group, exact; between groups in f32, by a scale for each.
Algorithm grouped_int8(const Numerics &n) {
    Builder f("grouped_int8", n);
    Dim M = f.dim("M"), N = f.dim("N"), G = f.dim("G"), K = f.dim("K");
    Tile x = f.input("x", {M, G, K}, DType::i8), w = f.input("w", {N, G, K}, DType::i8);
    Tile x_scale = f.input("x_scale", {M, G}), w_scale = f.input("w_scale", {N, G});
    Tile inner = dot(x, w, {K}).named("inner");                                  // (M, G, N)
    return f.output("y", sum(cast(f32, inner) * x_scale * w_scale, G)).build();  // (M, N)
}

}  // namespace

Registry tessera::test::unseen_algorithms() {
    Registry registry;
    registry.add("max_plus", "y[M, N], at[M, N] = max over K of x[M, K] + w[K, N], and the first K that has it", max_plus)
        .add("noisy_or", "y[M, N] = 1 - product over K of (1 - x[M, K] w[K, N])", noisy_or)
        .add("l1_distance", "y[I, J] = sum over K of |x[I, K] - c[J, K]|", l1_distance)
        .add("pairwise_lse", "y[I, J] = log of the sum over K of exp(x[I, K] + c[J, K])", pairwise_lse)
        .add("vector_quantize", "code[M] = the nearest of codes[N, K] to x[M, K]; y[M, K] = x - codes[code]", vector_quantize)
        .add("hausdorff", "y[B] = max over M of the min over N of |x[B, M, 3] - z[B, N, 3]|", hausdorff)
        .add("transfer_matrices", "y[M, 2, 2] = the product over K, in order, of x[M, K, 2, 2]", transfer_matrices)
        .add("max_subarray", "y[M] = the largest sum of neighbours in x[M, T]", max_subarray)
        .add("linear_recurrence", "y[T] = sum over C of q h, h[T, C] = a[T, C] h[T - 1, C] + x[T, C]", linear_recurrence)
        .add("selective_scan", "y[T, C] = sum over S of c h, h[T, C, S] = exp(dt a) h[T - 1] + dt x b", selective_scan)
        .add("running_moments", "y[T, C] = x normalized by the mean and variance of x[0 ..= T, C]", running_moments)
        .add("bilateral", "y[P, Q] = mean of x[P + R, Q + S] by weights exp(g[R, S] - sharpness (x - middle)^2)", bilateral)
        .add("erosion", "y[P, Q, C] = min over R, S of x[P + R, Q + S, C] - k[R, S]", erosion)
        .add("rotate", "y[B, N, 3] = x[B, N, 3] turned by the quaternion q[B, 4]", rotate)
        .add("group_glu", "y[M, G, N] = (silu(x gate) * (x up)) down, for each group G", group_glu)
        .add("top2_routing", "y[M, N] = the vectors of the two best experts of x[M, K] w[K, E], by shares", top2_routing)
        .add("weighted_bag", "y[B, N] = sum over the rows of a bag of weight[T] table[id[T], N]", weighted_bag)
        .add("ragged_pool", "y[B, N] = mean over the rows of a bag of value[T, N], by the softmax of score[T]", ragged_pool)
        .add("code_distance", "y[M, N] = sum over G of table[M, G, code[N, G]]", code_distance)
        .add("grouped_int8", "y[M, N] = sum over G of x_scale w_scale (sum over K of x[M, G, K] w[N, G, K])", grouped_int8);
    return registry;
}
