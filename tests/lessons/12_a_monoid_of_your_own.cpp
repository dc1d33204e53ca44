// Lesson 12: a monoid of your own.
//
// A fold takes elements one by one into an accumulator. Tessera wants to know more of it than a loop says, so that a schedule may fold
// pieces, in lanes or on threads, and put their results together:
//   parts     what an accumulator holds, each part with the value that it begins with (the identity)
//   lift      one element as an accumulator
//   combine   two accumulators as one; associative, and commutative unless you say that it is not
//   step      an accumulator and one element; the same as combine after lift, but as cheap as you can write it
//
// Here it is a weighted mean, in one pass: parts `weight` and `mean`, elements (w, x).
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/evaluate/reference.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

static Monoid weighted_mean() {
    const DType type = DType::f32;
    const Expr zero = constant(type, 0), w = input(0, type), x = input(1, type);
    const Expr weight = left(0, type), mean = left(1, type), weight_b = right(0, type), mean_b = right(1, type);
    // How far the mean moves toward what is new; nothing has no weight, and 0 / 0 would be NaN.
    const auto share = [&](const Expr &of, const Expr &all) { return select(all == zero, zero, of / all); };
    Monoid m;
    m.name = "weighted_mean";
    m.parts = {{"weight", Scalar::of_real(type, 0), {}}, {"mean", Scalar::of_real(type, 0), {}}};
    m.inputs = {type, type};
    m.lift = {w, select(w == zero, zero, x)};
    m.combine = {weight + weight_b, fma(mean_b - mean, share(weight_b, weight + weight_b), mean)};
    m.step = {weight + w, fma(x - mean, share(w, weight + w), mean)};
    return m;
}

// A fold gives a tile for each part; what is made of them is an expression like any other. Builder::scan_parts does the same with the
// folds of all beginnings.
static Algorithm centre_of(const Monoid &monoid) {
    Builder f("centre", numerics_named("f32"));
    const Dim M = f.dim("M"), K = f.dim("K");
    const Tile w = f.input("w", {M, K}), x = f.input("x", {M, K});               // (M, K)
    const std::vector<Tile> parts = f.fold(monoid, {abs(w), x}, {K.name});       // weight (M), mean (M)
    return f.output("y", select(parts[0] > 0, parts[1], 0 * parts[1])).build();  // (M)
}

int main() {
    const Algorithm algorithm = centre_of(weighted_mean());
    Array w(DType::f32, {1, 6}, {1, 2, 0, 1, 3, 1}), x(DType::f32, {1, 6}, {4, 1, 9, 2, 1, 5}), y(DType::f32, {1});
    const Array declared = evaluate(algorithm, {{"w", w}, {"x", x}}).at("y");
    std::printf("as declared: %.6f\n", declared.values()[0]);

    // This schedule folds three elements at a time and combines the pieces; the first stage steps, the second combines.
    Library library;
    const Schedule pieces = Schedule("centre/pieces").stage("weighted_mean", StageKnobs().split("K", Split::How::chunks, 3));
    const TileProgram program = lower(algorithm, resolve(pieces, library).stages, target_named("x86-64"));
    interpret(program, {{"w", w.view("w")}, {"x", x.view("x")}, {"y", y.view("y")}});
    std::printf("in pieces:   %.6f\n", y.values()[0]);

    // Had combine been wrong, only the second figure would be. So a generator tests the laws of every monoid before it does anything
    // else with an algorithm, and shows values that break them. Here the means are averaged as if both weighed as much.
    Monoid wrong = weighted_mean();
    wrong.combine[1] = (left(1, DType::f32) + right(1, DType::f32)) * constant(DType::f32, 0.5);
    try {
        check_monoid_laws(centre_of(wrong));
    } catch (const UserError &e) { std::printf("\n%s\n", e.what()); }
}

// Output:
// as declared: 2.000000
// in pieces:   2.000000
//
// error[algorithm.monoid-law]: centre.weighted_mean: the monoid 'weighted_mean': the identity changes an element: for a = (weight 0.75,
//> mean 2.0999999), combine(identity, a) is (weight 0.75, mean 1.04999995). Correct its identity, or how combine treats it. Elements that
//> never are such may be kept out by lift and step, as in max(x, 0).
