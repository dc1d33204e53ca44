// Losses beside their definition in double. ONNX's own tests run them too (tests/onnx).
#include "algorithms/build/losses.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_losses {

namespace {

constexpr int64_t rows = 4, columns = 3, classes = 5;

double score(int64_t i, int64_t c, int64_t d) { return std::sin(static_cast<double>(7 * i + 3 * c + d)) * 4; }

struct Case {
    bool from_scores = false, weighs = false;
    std::optional<int64_t> ignored = {};
    LossReduction reduction = LossReduction::mean;
};

// Labels of which one is a class that is ignored in some cases, and one is no class.
Array labels() {
    Array a(DType::i64, {rows, columns});
    for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_integer(DType::i64, i == 5 ? 9 : i % classes));
    return a;
}

std::vector<double> weights() { return {0.5, 1, 2, 0.25, 3}; }

Array computed(const Case &of) {
    Builder f("loss");
    const Dim N = f.dim("N"), C = f.dim("C"), D = f.dim("D");
    const Tile x = f.input("x", {N, C, D}), label = f.input("label", {N, D}, DType::i64);
    ClassLoss loss{.ignored = of.ignored, .reduction = of.reduction};
    if (of.weighs) loss.weights = f.input("w", {C});
    f.output("loss", of.from_scores ? softmax_cross_entropy(x, label, C, loss) : negative_log_likelihood(x, label, C, loss));
    Array scores(DType::f32, {rows, classes, columns});
    for (int64_t i = 0; i < scores.size(); i++)
        scores.set(i, Scalar::of_real(DType::f32, score(i / classes / columns, i / columns % classes, i % columns)));
    std::map<std::string, Array> given = {{"x", scores}, {"label", labels()}};
    if (of.weighs) given["w"] = Array(DType::f32, {classes}, weights());
    return evaluate(f.build(), given).at("loss");
}

std::vector<double> defined(const Case &of) {
    std::vector<double> each;
    double total = 0, count = 0;
    const Array label = labels();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < columns; d++) {
            const int64_t own = label.get(i * columns + d).integer;
            const bool counts = own >= 0 && own < classes && own != of.ignored;
            double sum = 0;
            for (int64_t c = 0; c < classes; c++) sum += std::exp(score(i, c, d));
            const double weight = !counts ? 0 : of.weighs ? weights()[static_cast<size_t>(own)] : 1;
            const double probability = counts ? score(i, own, d) - (of.from_scores ? std::log(sum) : 0) : 0;
            each.push_back(-probability * weight);
            total += each.back(), count += weight;
        }
    if (of.reduction == LossReduction::none) return each;
    return {of.reduction == LossReduction::sum ? total : total / count};
}

}  // namespace

TEST_CASE("losses: each label, weight, reduction and ignored class as the definition has it", "[losses]") {
    for (bool from_scores : {false, true})
        for (bool weighs : {false, true})
            for (std::optional<int64_t> ignored : {std::optional<int64_t>(), std::optional<int64_t>(2), std::optional<int64_t>(-100)})
                for (LossReduction reduction : {LossReduction::none, LossReduction::sum, LossReduction::mean}) {
                    const Case of{from_scores, weighs, ignored, reduction};
                    const std::vector<double> got = computed(of).values(), wanted = defined(of);
                    REQUIRE(got.size() == wanted.size());
                    for (size_t i = 0; i < got.size(); i++) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-5));
                }
}

TEST_CASE("losses: log_softmax is exact far below 0 and for large numbers", "[losses]") {
    Builder f("log_softmax");
    const Dim N = f.dim("N");
    f.output("y", log_softmax(f.input("x", {N}), N));
    const std::vector<double> y = evaluate(f.build(), {{"x", Array(DType::f32, {3}, {1e4, 0, 1e4})}}).at("y").values();
    CHECK(y[0] == Approx(-std::log(2.0)));
    CHECK(y[1] == Approx(-1e4 - std::log(2.0)));
}

TEST_CASE("losses: labels and weights that do not fit are refused", "[losses]") {
    Builder f("loss");
    const Dim N = f.dim("N"), C = f.dim("C"), D = f.dim("D");
    const Tile x = f.input("x", {N, C});
    CHECK_THROWS_AS(negative_log_likelihood(x, f.input("real", {N}), C), UserError);
    CHECK_THROWS_AS(negative_log_likelihood(x, f.input("other", {D}, DType::i32), C), UserError);
    CHECK_THROWS_AS(negative_log_likelihood(x, f.input("label", {N}, DType::i32), D), UserError);
    CHECK_THROWS_AS(negative_log_likelihood(x, f.input("own", {N}, DType::i32), C, {.weights = f.input("w", {N})}), UserError);
}

}  // namespace tessera::test_losses
