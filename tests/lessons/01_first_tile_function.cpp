// Lesson 1: the first tile function.
//
// A kernel in Tessera starts with what it computes. Nothing here says how: no loop, no thread, no vector. What comes out is
// an Algorithm, a value that can be printed, checked and run, and that the later lessons schedule and compile.
//
// The words:
//   Dim       a named axis. Its extent may be fixed, or stay open until the kernel is called, as here.
//   Tile      an expression over dims. `x * x` is a tile over the dims of x; no memory is touched.
//   stage     a tile that has a name of its own. Only stages can be scheduled, so name what is worth scheduling.
//   Numerics  in which types values are stored, computed and accumulated. It is part of what is computed.
#include <cmath>
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"

using namespace tessera;

// A tile function is a C++ function from tiles to tiles. This one scales each row to length 1.
//
// `sum` folds over a dim, which is gone afterwards. `x / length` then combines a tile over (M, N) with one over (M): dims
// meet by name, and the one that is missing on one side is broadcast, so no shape has to be padded with ones.
static Tile unit_length(const Tile &x, const Dim &over) {
    Tile squares = sum(x * x, over).named("squares");  // (M)
    Tile length = sqrt(squares).named("length");       // (M)
    return x / length;                                 // (M, N)
}

// The algorithm around it: a name, dims, inputs and outputs. It is a function of the numerics, so that one declaration
// serves f32, bf16 and the rest. `build` verifies it: every load in bounds, every type and dim in its place.
static Algorithm unit_rows(const Numerics &numerics) {
    Builder f("unit_rows", numerics);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});                    // (M, N)
    return f.output("y", unit_length(x, N)).build();  // (M, N)
}

// The reference interpreter runs an algorithm as its definition reads. It is slow, and it is the judge of everything else.
static Array run(const Algorithm &algorithm, Precision precision) {
    const std::vector<double> values = {3, 4, 0, 1, 2, 2};
    Array x(algorithm.numerics.storage, {2, 3}, values);
    return evaluate(algorithm, {{"x", x}}, {}, precision).at("y");
}

static void print(const char *title, const Array &y) {
    std::printf("%-16s", title);
    for (double v : y.values()) std::printf(" %.7f", v);
    std::printf("\n");
}

int main() {
    const Algorithm algorithm = unit_rows(numerics_named("f32"));

    // One line for each stage. `squares` and `length` are there by name, so a schedule can address them. The element-wise
    // `x * x` and `x / length` never became stages: they belong to what consumes them.
    std::printf("%s\n", to_text(algorithm).c_str());

    // In the policy's own types, bit for bit as defined, and in double, to judge how far off those types are.
    const Array y = run(algorithm, Precision::policy), exact = run(algorithm, Precision::f64);
    print("f32", y);
    for (int64_t i = 0; i < y.size(); i++) require(std::fabs(y.values()[i] - exact.values()[i]) < 1e-7, "f32 is within 1e-7");

    // The same declaration in bf16: stored in 16 bits, computed in f32, and every cast is in the algorithm.
    const Algorithm narrow = unit_rows(numerics_named("bf16"));
    require(narrow.numerics.storage == DType::bf16 && narrow.numerics.compute == DType::f32, "bf16 is for storage");
    print("bf16", run(narrow, Precision::policy));

    // A mistake has a stable id and says what was expected and what there is.
    try {
        Builder f("mistaken", numerics_named("f32"));
        Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
        sum(f.input("x", {M, N}), K);
    } catch (const UserError &e) { std::printf("\n%s\n", e.what()); }
}

// Output:
// algorithm unit_rows: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim M
//   dim N
//   input x[M, N]: f32
//   squares[M]: f32 = sum over N of (x[M, N]*x[M, N])
//   length[M]: f32 = sqrt(squares[M])
//   y[M, N]: f32 = x[M, N]/length[M]
//   outputs y
//
// f32              0.6000000 0.8000000 0.0000000 0.3333333 0.6666667 0.6666667
// bf16             0.6015625 0.8007812 0.0000000 0.3339844 0.6679688 0.6679688
//
// 01_first_tile_function.cpp:74: error[shape.fold]: mistaken: sum cannot fold over 'K': no operand has that dim; x[M, N] has M, N. Did you
//> mean 'M'?
