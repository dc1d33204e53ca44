// Lesson 13: a function of your own.
//
// exp, erf and gelu are functions with names: an algorithm shows them as such, and lowering puts in what they are defined as. A function
// of your own is a value like any other. Its definition is an expression over its arguments, for f32 and for f64; beside it you may say
// what else you know: its derivative, its bounds, its error.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/in_double.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/functions/functions.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/print.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"

using namespace tessera;

// x tanh(log(1 + exp(x))), where log(1 + exp(x)) is max(x, 0) + log(1 + exp(-|x|)) (Misra 2019).
static FunctionRef mish() {
    FunctionFacts known;
    known.least = -0.309;
    return make_function(
        "mish", 1,
        [](const Operands &a) {
            const Expr x = a[0], one = constant(x.type(), 1), zero = constant(x.type(), 0);
            return x * tanh(max(x, zero) + log(one + exp(-abs(x))));
        },
        known);
}

static Algorithm activation(const FunctionRef &function) {
    Builder f("activation", numerics_named("f32"));
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    return f.output("y", applied(function, {x})).build();  // (N)
}

int main() {
    const Algorithm algorithm = activation(mish());
    std::printf("%s\n", to_text(algorithm).c_str());

    Array x(DType::f32, {4}, {-2, -0.5, 0, 3}), y(DType::f32, {4});
    const TileProgram program = lower(algorithm, {}, target_named("x86-64"));
    interpret(program, {{"x", x.view("x")}, {"y", y.view("y")}});
    const Array exact = evaluate(in_double(algorithm), {{"x", x}}).at("y");
    for (size_t i = 0; i < 4; i++) std::printf("mish(%g) = %.6f, and %.6f in f64\n", x.values()[i], y.values()[i], exact.values()[i]);

    // Two functions that are defined alike compute the same, so the algorithm's hash is the same, whatever they are called.
    const FunctionRef copy = make_function("m", 1, mish()->in_f32, mish()->in_f64);
    std::printf("\nanother name, the same hash: %s\n", semantic_hash(activation(copy)) == semantic_hash(algorithm) ? "yes" : "no");

    try {
        make_function("worse", 1, [](const Operands &a) { return a[0] * load("table", a[0].type(), {Expr(0)}); });
    } catch (const UserError &e) { std::printf("\n%s\n", e.what()); }
}

// Output:
// algorithm activation: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim N
//   input x[N]: f32
//   y[N]: f32 = mish(x[N])
//   outputs y
//
// mish(-2) = -0.252502, and -0.252501 in f64
// mish(-0.5) = -0.220744, and -0.220744 in f64
// mish(0) = 0.000000, and 0.000000 in f64
// mish(3) = 2.986535, and 2.986535 in f64
//
// another name, the same hash: yes
//
// error[function.definition]: function 'worse': its definition of f32 reads table[0]; a function has its arguments alone. Pass it as one.
