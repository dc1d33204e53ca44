#include "algorithms/build/butterfly.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <complex>
#include <numbers>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_butterfly {

TEST_CASE("butterfly: turns are exact where the circle is, and symmetric") {
    CHECK(turn(0, 7).cosine == 1);
    CHECK((turn(1, 4).cosine == 0 && turn(1, 4).sine == 1));
    CHECK((turn(-3, 12).cosine == 0 && turn(-3, 12).sine == -1));
    CHECK((turn(5, 10).cosine == -1 && turn(5, 10).sine == 0));
    for (int64_t i = 0; i < 48; i++) {
        CHECK(turn(i, 48).cosine == turn(-i, 48).cosine);
        CHECK(turn(i, 48).sine == -turn(-i, 48).sine);
        CHECK(turn(i, 48).sine == turn(12 - i, 48).cosine);
        CHECK(turn(i, 48).cosine == Approx(std::cos(2 * std::numbers::pi * static_cast<double>(i) / 48)).margin(1e-15));
    }
}

// All outputs as one tile over k and part, of the inputs x[j, part].
static Algorithm butterfly_algorithm(int64_t n, FourierSign sign) {
    Builder f("butterfly");
    Dim J = f.dim("J", n), K = f.dim("K", n), C = f.dim("C", 2);
    Tile x = f.input("x", {J, C}, DType::f64);
    std::vector<Complex> values;
    auto part = [&](int64_t j, int c) { return x.at({{"J", Expr(j)}, {"C", Expr(c)}}, {}).value(); };
    for (int64_t j = 0; j < n; j++) values.push_back({part(j, 0), part(j, 1)});
    std::vector<Tile> rows;
    for (const Complex &y : butterfly(values, sign)) rows.push_back(stack({Tile(&f, y.re, {}), Tile(&f, y.im, {})}, C));
    return f.output("y", stack(rows, K), DType::f64).build();  // (C, K)
}

TEST_CASE("butterfly: every length is the sum that defines it") {
    for (int64_t n : {1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 20, 25, 32}) {
        std::vector<double> x;
        for (int64_t i = 0; i < 2 * n; i++) x.push_back(static_cast<double>(i * i % 13) - 5.5);
        for (FourierSign sign : {FourierSign::forward, FourierSign::inverse}) {
            const auto y = evaluate(butterfly_algorithm(n, sign), {{"x", Array(DType::f64, {n, 2}, x)}}).at("y").values();
            for (int64_t k = 0; k < n; k++) {
                std::complex<double> sum = 0;
                for (int64_t j = 0; j < n; j++) {
                    const double angle =
                        static_cast<double>(sign) * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
                    sum += std::complex<double>(x[static_cast<size_t>(2 * j)], x[static_cast<size_t>(2 * j + 1)]) * std::polar(1.0, angle);
                }
                INFO("n " << n << " k " << k);
                CHECK(y[static_cast<size_t>(k)] == Approx(sum.real()).margin(1e-12));
                CHECK(y[static_cast<size_t>(n + k)] == Approx(sum.imag()).margin(1e-12));
            }
        }
    }
}

TEST_CASE("butterfly: of 8 values, 52 additions and fmas and not one multiplication") {
    std::vector<Complex> x;
    for (int i = 0; i < 8; i++) x.push_back({input(2 * i, DType::f32), input(2 * i + 1, DType::f32)});
    std::set<const Expr::Node *> seen;
    for (const Complex &y : butterfly(x, FourierSign::forward))
        for (const Expr &e : {y.re, y.im})
            walk(e, [&](const Expr &n) {
                if (n.kind() != ExprKind::operation) return;
                seen.insert(n.get());
                CHECK((n->op == Op::add || n->op == Op::sub || n->op == Op::fma));
            });
    CHECK(seen.size() == 52);
}

}  // namespace tessera::test_butterfly
