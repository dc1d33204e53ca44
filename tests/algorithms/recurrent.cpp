// Recurrences: what they compute, and that pieces of a sequence give the bits of the whole.
#include "algorithms/build/recurrent.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "tests/support/words.h"

namespace tessera::test_recurrent {

using test::check_words;
using Arrays = std::map<std::string, Array>;

static Array random(const std::vector<int64_t> &extents, uint32_t seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    int64_t count = 1;
    for (int64_t e : extents) count *= e;
    std::vector<double> values;
    for (int64_t i = 0; i < count; i++) values.push_back(normal(engine) * 0.5f);
    return Array(DType::f32, extents, values);
}

// Some steps of an array, its first axis.
static Array steps(const Array &all, int64_t first, int64_t last) {
    std::vector<int64_t> extents = all.extents;
    extents[0] = last - first;
    const std::vector<double> values = all.values();
    int64_t row = 1;
    for (size_t i = 1; i < extents.size(); i++) row *= extents[i];
    return Array(all.dtype, extents, std::vector<double>(values.begin() + first * row, values.begin() + last * row));
}

static Options standard(const std::vector<Option> &declared, const Options &given) { return complete_options("", declared, given); }

// x in pieces of these lengths, each from the states that the piece before it left.
static void check_pieces(const Algorithm &a, Arrays given, const std::vector<std::string> &along,
                         const std::map<std::string, std::string> &carried, const std::vector<int64_t> &pieces) {
    const Arrays whole = evaluate(a, given);
    Arrays rest = given;
    std::vector<double> y;
    int64_t at = 0;
    for (int64_t length : pieces) {
        for (const std::string &name : along) rest.at(name) = steps(given.at(name), at, at + length);
        at += length;
        const Arrays made = evaluate(a, rest);
        const std::vector<double> some = made.at("y").values();
        y.insert(y.end(), some.begin(), some.end());
        for (const auto &[state, last] : carried) rest.at(state) = made.at(last);
    }
    REQUIRE(at == given.at(along[0]).extents[0]);
    CHECK(y == whole.at("y").values());
    for (const auto &[state, last] : carried) CHECK(rest.at(state).values() == whole.at(last).values());
}

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
    int64_t T, N, I, H;
};

static Arrays inputs(const Sizes &s, int64_t gates) {
    return {{"x", random({s.T, s.N, s.I}, 1)}, {"w", random({s.I, gates * s.H}, 2)},      {"r", random({s.H, gates * s.H}, 3)},
            {"b", random({gates * s.H}, 4)},   {"recurrent_b", random({gates * s.H}, 5)}, {"h", random({s.N, s.H}, 6)},
            {"c", random({s.N, s.H}, 7)}};
}

// (x w + b)[n, column] and (h r + recurrent_b)[n, column] of a step.
struct Sums {
    double of_x, of_h;
};

static Sums sums(const Arrays &in, const Sizes &s, int64_t gates, int64_t t, int64_t n, int64_t column, const std::vector<double> &h) {
    const auto v = [&](const char *name, int64_t i) { return in.at(name).values()[static_cast<size_t>(i)]; };
    Sums made{v("b", column), v("recurrent_b", column)};
    for (int64_t i = 0; i < s.I; i++) made.of_x += v("x", (t * s.N + n) * s.I + i) * v("w", i * gates * s.H + column);
    for (int64_t k = 0; k < s.H; k++) made.of_h += h[static_cast<size_t>(n * s.H + k)] * v("r", k * gates * s.H + column);
    return made;
}

TEST_CASE("recurrent: an LSTM is its formula, with gates in both orders") {
    const Sizes s{3, 2, 4, 3};
    const Arrays in = inputs(s, 4);
    for (const bool pytorch : {false, true}) {
        const int64_t input = 0, output = pytorch ? 3 : 1, forget = pytorch ? 1 : 2, cell = pytorch ? 2 : 3;
        std::vector<double> h = in.at("h").values(), c = in.at("c").values(), y;
        for (int64_t t = 0; t < s.T; t++) {
            std::vector<double> next = h;
            for (int64_t n = 0; n < s.N; n++)
                for (int64_t j = 0; j < s.H; j++) {
                    const auto gate = [&](int64_t number) {
                        const Sums of = sums(in, s, 4, t, n, number * s.H + j, h);
                        return of.of_x + of.of_h;
                    };
                    const auto at = static_cast<size_t>(n * s.H + j);
                    c[at] = logistic(gate(forget)) * c[at] + logistic(gate(input)) * std::tanh(gate(cell));
                    next[at] = logistic(gate(output)) * std::tanh(c[at]);
                }
            h = next;
            y.insert(y.end(), h.begin(), h.end());
        }
        const Algorithm a = library::lstm({}, standard(library::lstm_options(), {{"gates", pytorch}}));
        const Arrays made = evaluate(a, in);
        const std::vector<double> got = made.at("y").values();
        for (size_t i = 0; i < y.size(); i++) CHECK(got[i] == Approx(y[i]).margin(1e-6));
        for (size_t i = 0; i < c.size(); i++) CHECK(made.at("c_last").values()[i] == Approx(c[i]).margin(1e-6));
        CHECK(made.at("h_last").values() == std::vector<double>(got.end() - s.N * s.H, got.end()));
    }
}

TEST_CASE("recurrent: a GRU is its formula, reset before and after") {
    const Sizes s{2, 2, 3, 3};
    Arrays in = inputs(s, 3);
    in.erase("c");
    for (const bool before : {false, true}) {
        std::vector<double> h = in.at("h").values();
        for (int64_t t = 0; t < s.T; t++) {
            std::vector<double> reset(h.size()), kept(h.size()), next(h.size());
            const auto each = [&](const std::function<double(int64_t, int64_t, size_t)> &value, std::vector<double> &to) {
                for (int64_t n = 0; n < s.N; n++)
                    for (int64_t j = 0; j < s.H; j++) to[static_cast<size_t>(n * s.H + j)] = value(n, j, static_cast<size_t>(n * s.H + j));
            };
            const auto gate = [&](int64_t number, int64_t n, int64_t j, const std::vector<double> &of) {
                return sums(in, s, 3, t, n, number * s.H + j, of);
            };
            each(
                [&](int64_t n, int64_t j, size_t) {
                    const Sums g = gate(1, n, j, h);
                    return logistic(g.of_x + g.of_h);
                },
                reset);
            each([&](int64_t, int64_t, size_t at) { return reset[at] * h[at]; }, kept);
            each(
                [&](int64_t n, int64_t j, size_t at) {
                    const Sums z = gate(0, n, j, h), candidate = gate(2, n, j, before ? kept : h);
                    const double update = logistic(z.of_x + z.of_h);
                    return (1 - update) * std::tanh(candidate.of_x + (before ? 1 : reset[at]) * candidate.of_h) + update * h[at];
                },
                next);
            h = next;
        }
        const Algorithm a = library::gru({}, standard(library::gru_options(), {{"resets", before}}));
        const std::vector<double> got = evaluate(a, in).at("h_last").values();
        for (size_t i = 0; i < h.size(); i++) CHECK(got[i] == Approx(h[i]).margin(1e-6));
    }
}

TEST_CASE("recurrent: pieces of a sequence give the bits of the whole") {
    const Sizes s{7, 2, 5, 3};
    for (const std::vector<int64_t> &pieces : {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1}, {3, 0, 4}}) {
        check_pieces(library::lstm({}, standard(library::lstm_options(), {})), inputs(s, 4), {"x"}, {{"h", "h_last"}, {"c", "c_last"}},
                     pieces);
        Arrays of_gru = inputs(s, 3), of_rnn = inputs(s, 1);
        of_gru.erase("c"), of_rnn.erase("c");
        check_pieces(library::gru({}, standard(library::gru_options(), {})), of_gru, {"x"}, {{"h", "h_last"}}, pieces);
        check_pieces(library::rnn({}, standard(library::rnn_options(), {})), of_rnn, {"x"}, {{"h", "h_last"}}, pieces);
        const Arrays matrices = {{"a", random({7, 2, 3, 3}, 1)}, {"b", random({7, 2, 3}, 2)}, {"h", random({2, 3}, 3)}};
        check_pieces(library::linear_recurrence({}, {{"shared", 0}}), matrices, {"a", "b"}, {{"h", "h_last"}}, pieces);
    }
}

TEST_CASE("recurrent: backward is forward on the reversed sequence") {
    const Sizes s{4, 1, 3, 2};
    Arrays in = inputs(s, 4);
    const auto made = evaluate(library::lstm({}, standard(library::lstm_options(), {{"direction", 1}})), in);
    std::vector<double> x;
    for (int64_t t = s.T; t-- > 0;)
        for (double v : steps(in.at("x"), t, t + 1).values()) x.push_back(v);
    in.at("x") = Array(DType::f32, in.at("x").extents, x);
    const auto forward = evaluate(library::lstm({}, standard(library::lstm_options(), {})), in);
    CHECK(made.at("c_last").values() == forward.at("c_last").values());
    for (int64_t t = 0; t < s.T; t++)
        CHECK(steps(made.at("y"), t, t + 1).values() == steps(forward.at("y"), s.T - 1 - t, s.T - t).values());
}

TEST_CASE("recurrent: weights of frameworks lie transposed") {
    const Sizes s{2, 1, 3, 2};
    Arrays in = inputs(s, 4), other = in;
    const auto transposed = [](const Array &a) {
        std::vector<double> values;
        for (int64_t j = 0; j < a.extents[1]; j++)
            for (int64_t i = 0; i < a.extents[0]; i++) values.push_back(a.values()[static_cast<size_t>(i * a.extents[1] + j)]);
        return Array(DType::f32, {a.extents[1], a.extents[0]}, values);
    };
    for (const char *name : {"w", "r"}) other.at(name) = transposed(in.at(name));
    const auto a = evaluate(library::lstm({}, standard(library::lstm_options(), {})), in);
    const auto b = evaluate(library::lstm({}, standard(library::lstm_options(), {{"transpose_w", 1}})), other);
    CHECK(a.at("y").values() == b.at("y").values());
}

TEST_CASE("recurrent: sequences without a batch, and with two dims of one") {
    for (const int extra : {0, 2}) {
        Builder f("own");
        const Dim T = f.dim("T"), I = f.dim("I", 3), H = f.dim("H", 2), K = f.dim("K", 2), G = f.dim("G", 8);
        std::vector<Dim> of_x = {T}, of_h;
        for (int i = 0; i < extra; i++) of_x.push_back(f.dim("B" + std::to_string(i), 2)), of_h.push_back(of_x.back());
        of_x.push_back(I), of_h.push_back(H);
        const RecurrentStates made =
            lstm(f.input("x", of_x), {f.input("w", {I, G}), f.input("r", {K, G}), {}, {}, {}}, f.input("h", of_h), f.input("c", of_h), T);
        const Algorithm a = f.output("y", made.y).output("h_last", made.h).output("c_last", made.c).build();
        std::vector<int64_t> x = {5}, h;
        for (int i = 0; i < extra; i++) x.push_back(2), h.push_back(2);
        x.push_back(3), h.push_back(2);
        check_pieces(a, {{"x", random(x, 1)}, {"w", random({3, 8}, 2)}, {"r", random({2, 8}, 3)}, {"h", random(h, 4)}, {"c", random(h, 5)}},
                     {"x"}, {{"h", "h_last"}, {"c", "c_last"}}, {2, 3});
    }
}

TEST_CASE("recurrent: a causal convolution sees its history, and gives the next") {
    const int64_t N = 2, L = 6, C = 2, O = 3, R = 3, dilation = 2, J = 4;
    const Array x = random({N, L, C}, 1), w = random({R, C, O}, 2), history = random({N, J, C}, 3);
    const Algorithm a = library::causal_conv1d({}, standard(library::causal_conv1d_options(), {{"dilation", dilation}}));
    const Arrays whole = evaluate(a, {{"x", x}, {"w", w}, {"history", history}});
    const auto element = [&](int64_t n, int64_t l, int64_t c) {
        return l < 0 ? history.values()[static_cast<size_t>((n * J + J + l) * C + c)]
                     : x.values()[static_cast<size_t>((n * L + l) * C + c)];
    };
    for (int64_t n = 0; n < N; n++)
        for (int64_t l = 0; l < L; l++)
            for (int64_t o = 0; o < O; o++) {
                double sum = 0;
                for (int64_t r = 0; r < R; r++)
                    for (int64_t c = 0; c < C; c++)
                        sum += element(n, l - (R - 1 - r) * dilation, c) * w.values()[static_cast<size_t>((r * C + c) * O + o)];
                CHECK(whole.at("y").values()[static_cast<size_t>((n * L + l) * O + o)] == Approx(sum).margin(1e-6));
            }
    // Pieces of 1, 0, 2 and 3 elements, of which some are shorter than the history.
    Array carried = history;
    std::vector<double> y(static_cast<size_t>(N * L * O));
    int64_t at = 0;
    for (const int64_t length : {1, 0, 2, 3}) {
        std::vector<double> piece;
        for (int64_t n = 0; n < N; n++)
            for (int64_t l = at; l < at + length; l++)
                for (int64_t c = 0; c < C; c++) piece.push_back(element(n, l, c));
        const Arrays made = evaluate(a, {{"x", Array(DType::f32, {N, length, C}, piece)}, {"w", w}, {"history", carried}});
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = 0; i < length * O; i++)
                y[static_cast<size_t>((n * L + at) * O + i)] = made.at("y").values()[static_cast<size_t>(n * length * O + i)];
        carried = made.at("history_last"), at += length;
    }
    CHECK(y == whole.at("y").values());
    CHECK(carried.values() == whole.at("history_last").values());
}

TEST_CASE("recurrent: dims that do not fit are named") {
    Builder f("own");
    const Dim T = f.dim("T"), N = f.dim("N"), I = f.dim("I"), H = f.dim("H"), G = f.dim("G"), Z = f.dim("Z");
    const Tile x = f.input("x", {T, N, I}), w = f.input("w", {I, G}), r = f.input("r", {H, G}), h = f.input("h", {N, H});
    check_words([&] { lstm(x, {w, r, {}, {}, {}}, h, h, Z); }, {"error[recurrent.dims]: lstm: x[T, N, I] has no dim 'Z' of steps."});
    check_words(
        [&] {
            gru(x, {r, r, {}, {}, {}}, h, T);
        },
        {"error[recurrent.dims]: gru: x is x[T, N, I] and its weights are r[H, G]; expected them to share one dim, that of an input."});
    check_words([&] { gru(x, {w, h, {}, {}, {}}, h, T); }, {"recurrent weights are h[N, H]; expected two dims, 'G' and one of gates."});
    check_words(
        [&] {
            gru(x, {w, r, {}, {}, {}}, w, T);
        },
        {"a state is w[I, G]; expected the dims N, then that of a state, all states alike."});
    check_words([&] { linear_recurrence(h, h, h, T); }, {"linear_recurrence: a is h[N, H] and the state h[N, H]; expected one dim of a"});
    check_words([&] { causal_conv1d(h, w, r, T, N, {}); },
                {"causal_conv1d: x is h[N, H] and its history r[H, G]; expected one dim of x, 'T'"});
}

}  // namespace tessera::test_recurrent
