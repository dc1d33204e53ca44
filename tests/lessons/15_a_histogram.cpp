// Lesson 15: a histogram.
//
// A scatter is a fold whose elements go to computed positions of its result; those outside are dropped. Its schedule is that of any fold:
// where every thread adds up a part of the elements, each has a copy of the result, and the copies are folded in their order. So no result
// depends on who came first, and there are no atomic operations.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"

using namespace tessera;

static Algorithm histogram() {
    Builder f("histogram");
    const Dim N = f.dim("N"), V = f.dim("V");
    const Tile ids = f.input("ids", {N}, DType::i32);
    const Tile one = f.tile(constant(DType::i32, 1), {N});
    return f.output("counts", f.scatter(sum_monoid(DType::i32), one, {ids}, {V})).build();  // (V)
}

// The gradient of a lookup: rows of g are added to those of the table that were read. D is an ordinary dim, which goes where it came from.
static Algorithm lookup_gradient() {
    Builder f("lookup_gradient", numerics_named("f32"));
    const Dim T = f.dim("T"), V = f.dim("V"), D = f.dim("D");
    const Tile ids = f.input("ids", {T}, DType::i32), g = f.input("g", {T, D});
    return f.output("grad", f.scatter(sum_monoid(DType::f32), g, {ids, f.index(D)}, {V, D})).build();  // (V, D)
}

int main() {
    Library library;
    const Schedule copies = Schedule("histogram/copies")
                                .stage("counts", StageKnobs().split("N", Split::How::chunks, 4))
                                .stage("counts.partial", StageKnobs().parallel({"N.o"}));
    const TileProgram program = lower(histogram(), resolve(copies, library).stages, target_named("avx2"));
    Array ids(DType::i32, {6}, {2, 0, 2, 9, 1, 2}), counts(DType::i32, {3});
    interpret(program, {{"ids", ids.view("ids")}, {"counts", counts.view("counts")}});
    for (const double n : counts.values()) std::printf("%g ", n);
    std::printf("\n\n");

    const Schedule rows = Schedule("lookup_gradient/rows").stage("grad", StageKnobs().vector({{"D", 8}}));
    std::printf("%s",
                to_text(lower(bind_extents(lookup_gradient(), {{"D", 64}}), resolve(rows, library).stages, target_named("avx2"))).c_str());
}

// Output:
// 1 1 3
//
// tile program lookup_gradient for avx2
//   dim T
//   dim V
//   dim D = 64
//   input ids[T]: i32
//   input g[T, D]: f32
//   output grad[V, D]: f32
//   for v < |V|
//     for d < 8
//       vector D.lane < 8
//         grad[v, d*8 + D.lane] = 0.0
//   for t < |T|
//     for d2 < 8
//       if (0 <= index(ids[t])) & (index(ids[t]) < |V|)
//         vector D.lane2 < 8
//           grad[index(ids[t]), d2*8 + D.lane2] = grad[index(ids[t]), d2*8 + D.lane2] + g[t, d2*8 + D.lane2]
