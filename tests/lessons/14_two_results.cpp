// Lesson 14: a kernel with two results.
//
// An algorithm says what is computed, one stage after the other; that two of them share their loops is for a schedule to say. A stage
// "beside" another one is computed in the other's loops, point by point: what both read is read once, and what one of them reads of the
// other never goes through memory. Here x and y are read once, and both their sum and the gated sum are written.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

static Algorithm gated() {
    Builder f("gated", numerics_named("f32"));
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), y = f.input("y", {N});
    const Tile total = (x + y).named("total");                               // (N)
    return f.output("gate", relu(total)).output("both", total * y).build();  // (N), (N)
}

int main() {
    Library library;
    const Schedule joined = Schedule("gated/joined")
                                .stage("total", StageKnobs().place("beside both"))
                                .stage("gate", StageKnobs().place("beside both"))
                                .stage("both", StageKnobs().micro({{"N", 8}}).vector({{"N", 8}}));
    const TileProgram program = lower(gated(), resolve(joined, library).stages, target_named("avx2"));
    Array x(DType::f32, {3}, {1, -4, 2}), y(DType::f32, {3}, {2, 3, 5}), gate(DType::f32, {3}), both(DType::f32, {3});
    interpret(program, {{"x", x.view("x")}, {"y", y.view("y")}, {"gate", gate.view("gate")}, {"both", both.view("both")}});
    for (size_t i = 0; i < 3; i++) std::printf("gate %g, both %g\n", gate.values()[i], both.values()[i]);

    // Stages of other dims cannot be one.
    Builder f("rows", numerics_named("f32"));
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile z = f.input("z", {M, N}), sums = sum(z, N).named("total");             // (M)
    const Algorithm rows = f.output("share", z / sums).output("sums", sums).build();  // (M, N), (M)
    try {
        lower(rows, resolve(Schedule("rows/joined").stage("total", StageKnobs().place("beside share")), library).stages,
              target_named("avx2"));
    } catch (const UserError &e) { std::printf("\n%s\n", e.what()); }

    // But in the loop over the rows of one, the other computes what belongs to the row: both results come of one pass.
    const Schedule by_rows = Schedule("rows/by_rows")
                                 .stage("total", StageKnobs().place("share.M"))
                                 .stage("sums", StageKnobs().place("beside share in M"))
                                 .stage("share", StageKnobs().parallel({"M"}));
    std::printf("\n%s", to_text(lower(rows, resolve(by_rows, library).stages, target_named("avx2"))).c_str());
}

// Output:
// gate 3, both 6
// gate 0, both -3
// gate 7, both 35
//
// error[schedule.join]: total: it cannot share the loops of 'share': one of them is a fold and the other is not, or they fold differently.
//> Place it at root.
//
// tile program rows for avx2
//   dim M
//   dim N
//   input z[M, N]: f32
//   output share[M, N]: f32
//   output sums[M]: f32
//   parallel m < |M|
//     total.tile[1]: f32 in stack
//     total.acc[1]: f32 in registers
//     total.acc[0] = 0.0
//     for n < |N|
//       total.acc[0] = total.acc[0] + z[m, n]
//     total.tile[0] = total.acc[0]
//     for n2 < |N|
//       share[m, n2] = z[m, n2]/total.tile[0]
//     sums[m] <- total.tile[0]
