// Ragged dims as axes: stages over rows of segments, whose results lie flat. Each is compared with plain loops here.
#include "algorithms/ir/rows.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/index/prove.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/vmap/vmap.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_rows {

using Offsets = std::vector<int64_t>;

// Ascending ones, and all kinds that are not.
static std::vector<Offsets> all_offsets(int64_t T) {
    return {{0, T},
            {0, 2, 2, 5, T},
            {3, 4, 4, 4, T - 2},
            {0, 5, 3, T},
            {-7, 2, INT64_MIN, 4, INT64_MAX, 1},
            {T, 0, 0},
            {INT64_MAX, INT64_MAX},
            {INT64_MIN, INT64_MIN, 0, T + 1},
            {4}};
}

// What segments have: each offset is taken into 0 ..= T, and counts as no less than those before.
static Offsets made_of(const Offsets &offsets, int64_t T) {
    Offsets made;
    int64_t most = 0;
    for (int64_t o : offsets) made.push_back(most = std::max(most, std::clamp<int64_t>(o, 0, T)));
    return made;
}

static Array integers(const Offsets &values) {
    Array a(DType::i64, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); i++) a.set(static_cast<int64_t>(i), Scalar::of_integer(DType::i64, values[i]));
    return a;
}

// Small whole numbers, whose sums and products are exact.
static Array whole_numbers(const std::vector<int64_t> &extents, unsigned seed) {
    std::mt19937 random(seed);
    Array a(DType::f32, extents);
    for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_real(DType::f32, static_cast<double>(random() % 9) - 4));
    return a;
}

struct Rows3 {  // dims of a test's algorithm, and its segments
    Dim B, T, R;
    Segments s;
};

static Rows3 rows_in(Builder &f, const std::string &flat = "T", const std::string &rows = "R", const std::string &offsets = "offsets") {
    Dim B = f.dim("B"), B1 = f.dim(derived_dim("B1", extent("B") + 1)), T = f.dim(flat);
    const Segments s = f.segments(f.input(offsets, {B1}, DType::i64), B, T);
    return {B, T, f.rows(rows, s), s};
}

static Algorithm grouped_product() {
    Builder f("grouped");
    auto [B, T, R, s] = rows_in(f);
    Dim K = f.dim("K"), N = f.dim("N");
    Tile x = f.input("x", {T, K}), w = f.input("w", {B, K, N});
    return f.output("y", flat(dot(x.rows(R), w, {K}))).build();  // (T, N)
}

TEST_CASE("a grouped product: the rows of a segment times its own matrix") {
    const Algorithm a = grouped_product();
    const int64_t T = 11, K = 3, N = 2;
    for (const Offsets &offsets : all_offsets(T)) {
        const int64_t B = static_cast<int64_t>(offsets.size()) - 1;
        const Array x = whole_numbers({T, K}, 1), w = whole_numbers({B, K, N}, 2);
        const Offsets made = made_of(offsets, T);
        std::vector<double> expected(static_cast<size_t>(T * N));
        for (int64_t b = 0; b < B; b++)
            for (int64_t t = made[static_cast<size_t>(b)]; t < made[static_cast<size_t>(b) + 1]; t++)
                for (int64_t n = 0; n < N; n++)
                    for (int64_t k = 0; k < K; k++)
                        expected[static_cast<size_t>(t * N + n)] += x.get(t * K + k).real * w.get((b * K + k) * N + n).real;
        EvaluationOptions options;
        options.extents["N"] = N, options.extents["K"] = K;
        INFO(B);
        CHECK(evaluate(a, {{"x", x}, {"offsets", integers(offsets)}, {"w", w}}, {}, options).at("y").values() == expected);
    }
}

static Algorithm attention_of_lengths() {
    Builder f("attention_of_lengths");
    auto [B, S, Q, queries] = rows_in(f, "S", "Q", "queries");
    Dim B1 = f.dim_named("B1"), T = f.dim("T"), H = f.dim("H"), D = f.dim("D"), E = f.dim("E");
    Dim R = f.rows("R", f.segments(f.input("keys", {B1}, DType::i64), B, T));
    Tile q = f.input("q", {S, H, D}), k = f.input("k", {T, H, D}), v = f.input("v", {T, H, E});
    Tile scores = dot(q.rows(Q), k.rows(R), {D}).named("scores");  // (B, Q, H, R)
    Tile sees = f.tile(variable("R") - extent("R") <= variable("Q") - extent("Q"), {B, Q, R});
    return f.output("o", flat(online_softmax(scores, v.rows(R), R, E, sees))).build();  // (S, H, E)
}

TEST_CASE("attention of sequences of their own lengths, causal from the end") {
    const Algorithm a = attention_of_lengths();
    const int64_t S = 9, T = 12, H = 2, D = 3, E = 2;
    const Array q = whole_numbers({S, H, D}, 1), k = whole_numbers({T, H, D}, 2), v = whole_numbers({T, H, E}, 3);
    const std::vector<std::pair<Offsets, Offsets>> cases = {
        {{0, 4, 4, 9}, {0, 6, 8, 12}}, {{1, 3, 2, 8}, {0, 0, 5, 5}}, {{-3, 99, 4}, {5, 1, INT64_MAX}}, {{0, S}, {0, T}}};
    for (const auto &[queries, keys] : cases) {
        const Offsets mine = made_of(queries, S), theirs = made_of(keys, T);
        std::vector<double> expected(static_cast<size_t>(S * H * E));
        for (size_t b = 0; b + 1 < mine.size(); b++)
            for (int64_t s = mine[b]; s < mine[b + 1]; s++)
                for (int64_t h = 0; h < H; h++) {
                    std::vector<double> weights;
                    double total = 0;
                    for (int64_t t = theirs[b]; t < theirs[b + 1]; t++) {
                        double score = 0;
                        for (int64_t d = 0; d < D; d++) score += q.get((s * H + h) * D + d).real * k.get((t * H + h) * D + d).real;
                        weights.push_back(t - theirs[b + 1] <= s - mine[b + 1] ? std::exp(score) : 0);
                        total += weights.back();
                    }
                    for (size_t i = 0; i < weights.size(); i++)
                        for (int64_t e = 0; e < E; e++)
                            expected[static_cast<size_t>((s * H + h) * E + e)] +=
                                total > 0 ? weights[i] / total * v.get(((theirs[b] + static_cast<int64_t>(i)) * H + h) * E + e).real : 0;
                }
        const auto got =
            evaluate(a, {{"q", q}, {"k", k}, {"v", v}, {"queries", integers(queries)}, {"keys", integers(keys)}}).at("o").values();
        REQUIRE(got.size() == expected.size());
        for (size_t i = 0; i < got.size(); i++) CHECK(got[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
    }
}

TEST_CASE("softmax, mean and norm over the rows of segments") {
    Builder f("segments");
    auto [B, T, R, s] = rows_in(f);
    Dim N = f.dim("N");
    Tile x = f.input("x", {T, N}), rows = x.rows(R);
    f.output("share", flat(softmax(rows, R)));                                                            // (T, N)
    Tile mean = (sum(rows, R) / cast(DType::f32, f.tile(max(extent("R"), Expr(1)), {B}))).named("mean");  // (B, N)
    f.output("pooled", mean);
    f.output("centred", rows - mean);  // (T, N)
    const Algorithm a = f.build();
    const int64_t T_ = 11, N_ = 2;
    const Array given = whole_numbers({T_, N_}, 4);
    for (const Offsets &offsets : all_offsets(T_)) {
        const Offsets made = made_of(offsets, T_);
        const auto got = evaluate(a, {{"x", given}, {"offsets", integers(offsets)}});
        std::vector<double> share(static_cast<size_t>(T_ * N_)), centred = share;
        for (size_t b = 0; b + 1 < made.size(); b++)
            for (int64_t n = 0; n < N_; n++) {
                double total = 0, all = 0;
                for (int64_t t = made[b]; t < made[b + 1]; t++)
                    total += std::exp(given.get(t * N_ + n).real), all += given.get(t * N_ + n).real;
                const double m = all / static_cast<double>(std::max<int64_t>(made[b + 1] - made[b], 1));
                CHECK(got.at("pooled").get(static_cast<int64_t>(b) * N_ + n).real == Approx(m));
                for (int64_t t = made[b]; t < made[b + 1]; t++) {
                    const auto at = static_cast<size_t>(t * N_ + n);
                    share[at] = std::exp(given.get(t * N_ + n).real) / total, centred[at] = given.get(t * N_ + n).real - m;
                }
            }
        for (size_t i = 0; i < share.size(); i++) {
            CHECK(got.at("share").get(static_cast<int64_t>(i)).real == Approx(share[i]).epsilon(1e-5).margin(1e-30));
            CHECK(got.at("centred").get(static_cast<int64_t>(i)).real == Approx(centred[i]).margin(1e-6));
        }
    }
}

TEST_CASE("a scan along the rows of each segment, and a flat tensor that a later stage reads") {
    Builder f("sums");
    auto [B, T, R, s] = rows_in(f);
    Tile x = f.input("x", {T});
    Tile sums = f.scan(sum_monoid(DType::f32), x.rows(R), R).named("sums");  // (B, R)
    Tile all = flat(sums);                                                   // (T)
    f.output("sums", all);
    f.output("more", all + x);
    const Algorithm a = f.build();
    CHECK(std::count_if(a.stages().begin(), a.stages().end(), [](const Stage &) { return true; }) == 3);  // made, sums, more
    const int64_t T_ = 11;
    const Array given = whole_numbers({T_}, 5);
    for (const Offsets &offsets : all_offsets(T_)) {
        const Offsets made = made_of(offsets, T_);
        std::vector<double> expected(static_cast<size_t>(T_)), more = given.values();
        for (size_t b = 0; b + 1 < made.size(); b++) {
            double sum = 0;
            for (int64_t t = made[b]; t < made[b + 1]; t++) expected[static_cast<size_t>(t)] = sum += given.get(t).real;
        }
        for (size_t t = 0; t < more.size(); t++) more[t] += expected[t];
        const auto got = evaluate(a, {{"x", given}, {"offsets", integers(offsets)}});
        CHECK(got.at("sums").values() == expected);
        CHECK(got.at("more").values() == more);
    }
}

TEST_CASE("an output in another type is cast row by row, with no stage between") {
    Numerics n;
    n.storage = DType::bf16, n.name = "bf16";
    Builder f("cast", n);
    auto [B, T, R, s] = rows_in(f);
    f.output("y", flat(softmax(f.input("x", {T}).rows(R), R)));
    const Algorithm a = f.build();
    const Stage &y = *a.find_stage("y");
    CHECK(y.dims == std::vector<std::string>{"B", "R"});
    CHECK(results_of(y)[0].dims == std::vector<std::string>{"T"});
    CHECK(results_of(y)[0].dtype == DType::bf16);
}

TEST_CASE("offsets that ascend: what follows of them, and what is read off which stages") {
    const Algorithm a = grouped_product();
    const std::vector<Ascending> found = ascending_results(a);
    REQUIRE(found.size() == 1);
    CHECK(found[0].tensor == "offsets.made");
    CHECK(to_string(found[0].most) == "|T|");
    CHECK(ascending_results(test::prefix_sums()).empty());

    Bounds facts(a.dims);
    facts.set_ascending(found[0]);
    auto made = [](const Expr &i) { return cast(DType::index, load("offsets.made", DType::i32, {i})); };
    const Expr b = variable("b"), c = variable("c"), r = variable("r"), s = variable("s");
    facts.set("b", 0, extent("B") - 1);
    facts.set("c", b + 1, extent("B") - 1);
    facts.set("r", 0, made(b + 1) - made(b) - 1);
    facts.set("s", 0, made(c + 1) - made(c) - 1);
    CHECK(prove(made(b) <= made(c), facts));
    CHECK(prove(made(b) + r < made(c) + s, facts));
    CHECK(prove(made(b) + r < extent("T"), facts));
    CHECK(prove(made(b) + r >= 0, facts));
    CHECK(simplify(max(made(b + 1) - made(b), Expr(0)), facts).is_operation(Op::sub));
    CHECK_FALSE(prove(made(b) < made(c), facts));
    CHECK_FALSE(prove(made(c) <= made(b), facts));
    CHECK_FALSE(prove(made(b) + r < made(b) + s, facts));
    CHECK_FALSE(prove(made(b + 1) < extent("T"), facts));

    // What is proved holds: random claims, with random offsets that ascend.
    std::mt19937 random(7);
    auto number = [&](int64_t below) { return static_cast<int64_t>(random() % static_cast<unsigned>(below)); };
    int proved = 0;
    for (int round = 0; round < 3000; round++) {
        auto element = [&] {
            const Expr i[] = {b, c, b + 1, c + 1, Expr(0), extent("B")};
            return made(i[number(6)]);
        };
        Expr left = element(), right = element();
        if (number(2)) left = left + (number(2) ? r : s);
        if (number(2)) right = right + (number(2) ? r : s);
        if (number(3) == 0) right = right + element() - element();
        left = left + Expr(number(3) - 1);
        if (!prove(left <= right, facts)) continue;
        proved++;
        for (int draw = 0; draw < 20; draw++) {
            const int64_t B = 2 + number(4), T = number(7);
            Offsets offsets;
            for (int64_t i = 0; i <= B; i++) offsets.push_back(number(T + 3) - 1);
            const Offsets values = made_of(offsets, T);
            std::map<std::string, int64_t> at;
            at["b"] = number(B - 1), at["c"] = at["b"] + 1 + number(B - 1 - at["b"]);
            auto size = [&](const char *v) { return values[static_cast<size_t>(at[v] + 1)] - values[static_cast<size_t>(at[v])]; };
            if (size("b") == 0 || size("c") == 0) continue;
            at["r"] = number(size("b")), at["s"] = number(size("c"));
            auto value = [&](const Expr &e) {
                Expr known = rewrite(e, [&](const Expr &n) -> Expr {
                    if (n.kind() == ExprKind::variable) return Expr(at.at(n->name));
                    if (n.kind() == ExprKind::extent) return Expr(n->name == "B" ? B : T);
                    return {};
                });
                known = rewrite(known, [&](const Expr &n) -> Expr {
                    if (n.kind() != ExprKind::cast) return {};
                    return Expr(values[static_cast<size_t>(simplify(n->args[0]->args[0], {})->value.integer)]);
                });
                return simplify(known, {})->value.integer;
            };
            INFO(to_string(left) << " <= " << to_string(right));
            REQUIRE(value(left) <= value(right));
        }
    }
    CHECK(proved > 100);
}

TEST_CASE("points and elements of a stage that keeps rows") {
    const Algorithm a = grouped_product();
    const Stage &y = *a.find_stage("y");
    CHECK(results_of(y)[0].dims == std::vector<std::string>{"T", "N"});
    CHECK(point_dims(y, results_of(y)[0]) == std::vector<std::string>{"B", "R", "N"});
    const std::vector<Expr> index = element_of(y, {variable("p"), variable("i") * Expr(8) + 3, variable("n")});
    CHECK(to_string(index[0]) == "index(offsets.made[p]) + (i*8 + 3)");
    const auto point = point_of(y, index);
    REQUIRE(point);
    CHECK(equal((*point)[0], variable("p")));
    CHECK(to_string(simplify((*point)[1], {})) == "i*8 + 3");
    CHECK_FALSE(point_of(y, {variable("t"), variable("n")}));
    CHECK_FALSE(point_of(y, {index[0] + index[0], variable("n")}));
}

TEST_CASE("rows in text, JSON and hashes") {
    const Algorithm a = grouped_product();
    CHECK(to_text(a).find("rows R in T from index(offsets.made[B])") != std::string::npos);
    const Algorithm read = algorithm_from_json(to_json(a));
    CHECK(to_text(read) == to_text(a));
    CHECK(semantic_hash(read) == semantic_hash(a));
    Algorithm other = a;
    for (Stage &stage : other.stages())
        for (Rows &rows : stage.rows) rows.first = rows.first + 1;
    CHECK(semantic_hash(other) != semantic_hash(a));
}

TEST_CASE("rows that may meet or leave the flat dim are refused") {
    auto refused = [](const std::string &words, const auto &change) {
        Algorithm a = grouped_product();
        change(a);
        CHECK_THROWS_WITH(verify(a), Catch::Contains(words));
    };
    auto y = [](Algorithm &a) -> Stage & {
        for (Stage &s : a.stages())
            if (s.name == "y") return s;
        throw 0;
    };
    refused("would have the ragged dim 'R' as an axis", [&](Algorithm &a) { y(a).rows.clear(); });
    refused("< |T| cannot be proved", [&](Algorithm &a) { y(a).rows[0].first = y(a).rows[0].first + 1; });
    refused("cannot be proved to end where those of the next begin",
            [&](Algorithm &a) { y(a).rows[0].first = max(y(a).rows[0].first - 1, Expr(0)); });
    refused("to lie along 'R', which is ragged itself", [&](Algorithm &a) { y(a).rows[0].flat = "R"; });
    CHECK_THROWS_WITH(vjp(grouped_product()),
                      Catch::Contains("error[algorithm.rows]: a derivative of grouped: its stage 'y' keeps the rows 'R'"));
    CHECK_THROWS_WITH(vmap(grouped_product(), symbolic_dim("V")), Catch::Contains("error[algorithm.rows]"));

    Builder f("f");
    auto [B, T, R, s] = rows_in(f);
    Tile x = f.input("x", {f.dim("M")});
    CHECK_THROWS_WITH(x.rows(R), Catch::Contains("error[shape.rows]: x[M]: it has no rows 'R': they lie along 'T', and its dims are M."));
    CHECK_THROWS_WITH(flat(x), Catch::Contains("error[shape.rows]: x[M]: none of its dims is over rows of segments"));
    CHECK_THROWS_WITH(f.segments(x, B, T),
                      Catch::Contains("error[shape.segments]: f: the offsets x[M] are f32 of rank 1; expected integers"));
}

TEST_CASE("a call of an algorithm that keeps rows") {
    Builder f("outer");
    Dim B = f.dim("B"), B1 = f.dim(derived_dim("B1", extent("B") + 1)), T = f.dim("T"), K = f.dim("K"), N = f.dim("N");
    Tile o = f.input("o", {B1}, DType::i64), x = f.input("x", {T, K}), w = f.input("w", {B, K, N});
    Tile y = f.call("product", grouped_product(), {o, x, w})[0];
    const Algorithm a = f.output("z", y * 2).build();
    const std::map<std::string, Array> in = {
        {"x", whole_numbers({5, 2}, 1)}, {"o", integers({1, 3, 2, 4})}, {"w", whole_numbers({3, 2, 2}, 2)}};
    std::map<std::string, Array> inner = {{"x", in.at("x")}, {"offsets", in.at("o")}, {"w", in.at("w")}};
    std::vector<double> expected = evaluate(grouped_product(), inner).at("y").values();
    for (double &e : expected) e *= 2;
    CHECK(evaluate(a, in).at("z").values() == expected);
}

}  // namespace tessera::test_rows
