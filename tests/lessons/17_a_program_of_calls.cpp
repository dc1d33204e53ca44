// Lesson 17: a program of calls.
//
// An algorithm calls another one as a function. What the callee takes is a view of a tensor: the whole, a slice, or a part of a joined
// axis, and nothing is copied for it. A call is inlined, and then its stages may be placed in loops of the caller's; or, with the knob
// "call" at its scope, its callee is emitted once, however often it is called. The bits are the same.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"

using namespace tessera;

// s[M, N] = u[M, N] times factor
static Algorithm scaled() {
    Builder f("scaled", numerics_named("f32"));
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile u = f.input("u", {M, N}), factor = f.parameter("factor", DType::f32);
    return f.output("s", u * factor).build();
}

// Both halves of the columns, the left one doubled and the right one negated.
static Algorithm halves() {
    Builder f("halves", numerics_named("f32"));
    const Dim M = f.dim("M"), N = f.dim("N"), W = f.dim(derived_dim("W", extent("N") * 2));
    const Tile x = f.input("x", {M, W});
    const Tile left = x.at({{"W", variable("N")}}, {"M", "N"}), right = x.at({{"W", variable("N") + extent("N")}}, {"M", "N"});
    const Tile a = f.call("a", scaled(), {left}, {{"factor", f.scalar(DType::f32, 2)}})[0];
    const Tile b = f.call("b", scaled(), {right}, {{"factor", f.scalar(DType::f32, -1)}})[0];
    return f.output("left", a).output("right", b).build();
}

int main() {
    const Algorithm program = halves();
    std::printf("%s\n", to_text(program).c_str());

    // Once for both calls: one tile program, which is invoked on two views of x.
    const Library library;
    const Schedule once = Schedule("halves/once").stage("a", StageKnobs().call("once")).stage("b", StageKnobs().call("once"));
    const TileProgram tiles = lower(program, resolve(once, library).stages, target_named("avx2"));
    std::printf("%s\n", to_text(tiles).c_str());

    Array x(DType::f32, {1, 4}, {1, 2, 3, 4}), left(DType::f32, {1, 2}), right(DType::f32, {1, 2});
    interpret(tiles, {{"x", x.view("x")}, {"left", left.view("left")}, {"right", right.view("right")}});
    auto same = evaluate(program, {{"x", x}});
    std::printf("%g %g, %g %g; as declared: %s\n", left.values()[0], left.values()[1], right.values()[0], right.values()[1],
                same.at("left") == left && same.at("right") == right ? "the same bits" : "other bits");
}

// Output:
// algorithm halves: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim M
//   dim N
//   dim W = |N|*2
//   input x[M, W]: f32
//   call a = scaled(M = M, N = N, u = x[%0, %1], $factor = 2.0) with s as left
//   call b = scaled(M = M, N = N, u = x[%0, %1 + |N|], $factor = -1.0) with s as right
//   outputs left, right
//
// algorithm scaled: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim M
//   dim N
//   parameter factor: f32
//   input u[M, N]: f32
//   s[M, N]: f32 = u[M, N]*$factor
//   outputs s
//
// tile program halves for avx2
//   dim M
//   dim N
//   dim W = |N|*2
//   input x[M, W]: f32
//   output left[M, N]: f32
//   output right[M, N]: f32
//   invoke scaled(x[0, 0 : 0, 1], left, M=|M|, N=|N|, factor=2.0)
//   invoke scaled(x[0, |N| : 0, 1], right, M=|M|, N=|N|, factor=-1.0)
// tile program scaled for avx2
//   dim M
//   dim N
//   parameter factor: f32
//   input u[M, N]: f32
//   output s[M, N]: f32
//   for m < |M|
//     for n < |N|
//       s[m, n] = u[m, n]*$factor
//
// 2 4, -3 -4; as declared: the same bits
