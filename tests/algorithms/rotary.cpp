// Rotary positions beside complex multiplication. ONNX's own tests run them too (tests/onnx).
#include "algorithms/build/rotary.h"

#include <catch2/catch.hpp>
#include <complex>

#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_rotary {

TEST_CASE("rotary: pairs turn as complex numbers, and what is no pair stays", "[rotary]") {
    for (bool interleaved : {false, true})
        for (int64_t width : {6, 9}) {
            const int64_t positions = 5, count = 3;
            Builder f("rotary");
            const Dim T = f.dim("T"), D = f.dim("D", width), C = f.dim("C", count);
            f.output("y", rotary(f.input("x", {T, D}), D, f.input("cos", {T, C}), f.input("sin", {T, C}), C, interleaved));
            Array x(DType::f32, {positions, width}), cosine(DType::f32, {positions, count}), sine = cosine;
            for (int64_t i = 0; i < x.size(); i++) x.set(i, Scalar::of_real(DType::f32, std::sin(static_cast<double>(i * i))));
            for (int64_t i = 0; i < cosine.size(); i++) {
                cosine.set(i, Scalar::of_real(DType::f32, std::cos(static_cast<double>(i))));
                sine.set(i, Scalar::of_real(DType::f32, std::sin(static_cast<double>(i))));
            }
            const std::vector<double> given = x.values();
            const std::vector<double> y = evaluate(f.build(), {{"x", x}, {"cos", cosine}, {"sin", sine}}).at("y").values();
            for (int64_t t = 0; t < positions; t++) {
                for (int64_t c = 0; c < count; c++) {
                    const int64_t first = t * width + (interleaved ? 2 * c : c), second = first + (interleaved ? 1 : count);
                    const auto turned = std::complex(given[static_cast<size_t>(first)], given[static_cast<size_t>(second)]) *
                                        std::polar(1.0, static_cast<double>(t * count + c));
                    CHECK(y[static_cast<size_t>(first)] == Approx(turned.real()).margin(1e-6));
                    CHECK(y[static_cast<size_t>(second)] == Approx(turned.imag()).margin(1e-6));
                }
                for (int64_t d = 2 * count; d < width; d++)
                    CHECK(y[static_cast<size_t>(t * width + d)] == given[static_cast<size_t>(t * width + d)]);
            }
        }
}

TEST_CASE("rotary: a dim that is not there is refused", "[rotary]") {
    Builder f("rotary");
    const Dim T = f.dim("T"), D = f.dim("D", 4), C = f.dim("C", 2);
    const Tile x = f.input("x", {T, D}), angle = f.input("angle", {T, C});
    CHECK_THROWS_AS(rotary(x, C, angle, angle, C), UserError);
    CHECK_THROWS_AS(rotary(x, D, x, angle, C), UserError);
}

}  // namespace tessera::test_rotary
