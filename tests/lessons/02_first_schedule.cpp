// Lesson 2: the first schedule.
//
// The algorithm says what, the schedule says how. They meet in `lower`, which gives a TileProgram: every loop written out.
// Whoever changes a schedule cannot change what is computed, at most how fast it is, and this lesson checks that by
// comparing bits.
//
// The knobs of this lesson, all of one stage:
//   micro   the register tile: how much of the result is kept in registers while the reduction runs over it
//   vector  along which dim, and how many lanes at once
#include <cstdio>
#include <cstring>

#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "support/text/error.h"

using namespace tessera;

// A schedule goes through two steps before it is lowered. `resolve` merges what it inherits (lesson 3; here it is alone), and
// `check` looks up its every address in the algorithm. `verify` then shows that the loops that came out are safe to run.
static TileProgram scheduled(const Algorithm &algorithm, const Schedule &schedule) {
    const ResolvedSchedule resolved = resolve(schedule, Library());
    check(resolved, algorithm);
    check_stages(resolved, -1, algorithm);
    TileProgram program = lower(algorithm, resolved.stages, target_named("x86-64"));
    verify(program);
    return program;
}

// Runs a tile program in its interpreter, whose bits are those that the compiled code must give.
static Array run(const TileProgram &program, Array x, Array w) {
    Array y(DType::f32, {x.extents[0], w.extents[1]});
    interpret(program, {{"x", x.view("x")}, {"w", w.view("w")}, {"y", y.view("y")}});
    return y;
}

// Numbers whose sums are rounded at nearly every step, so that another order of additions would show.
static Array matrix(int64_t rows, int64_t columns) {
    Array a(DType::f32, {rows, columns});
    for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_real(DType::f32, 1.0 / (1 + (i * 7919) % 1013)));
    return a;
}

int main() {
    // y[M, N] = x[M, K] w[K, N]. M and N are fixed to keep the text short; K stays open.
    const Algorithm matmul = bind_extents(library::matmul(numerics_named("f32")), {{"M", 4}, {"N", 16}});

    // Without a schedule: plain loops in the order of the dims, one result after the other.
    const TileProgram plain = lower(matmul, {}, target_named("x86-64"));
    std::printf("%s\n", to_text(plain).c_str());

    // With one: 2 x 8 results at a time, in vectors of 4 lanes. A Schedule is a value; each call gives a new one.
    const StageKnobs knobs = StageKnobs().micro({{"M", 2}, {"N", 8}}).vector({{"N", 4}});
    const Schedule schedule = Schedule("matmul/lesson").stage("y", knobs);
    const TileProgram tiled = scheduled(matmul, schedule);

    // Read it from the outside in: loops over tiles, then the accumulators come to life, are cleared, are fed by the loop over
    // k, and are stored. A value of x serves 8 products and a value of w serves 2, where the plain loops used each once.
    std::printf("%s\n", to_text(tiled).c_str());

    // Both run over k upwards, one fma after the other, as `dot` is defined. So both have the bits of the definition.
    const Array x = matrix(4, 1000), w = matrix(1000, 16);
    const Array expected = evaluate(matmul, {{"x", x}, {"w", w}}).at("y");
    for (const TileProgram *program : {&plain, &tiled}) {
        const Array y = run(*program, x, w);
        require(std::memcmp(y.data.data(), expected.data.data(), y.data.size()) == 0, "a schedule keeps the bits");
    }
    std::printf("both give the bits of the definition\n");

    // A schedule is addressed by names, so a wrong one is found before anything is compiled.
    try {
        scheduled(matmul, schedule.with_micro("y", {{"H", 8}}));
    } catch (const UserError &e) { std::printf("\n%s\n", e.what()); }
}

// Output:
// tile program matmul for x86-64
//   dim M = 4
//   dim N = 16
//   dim K
//   input x[M, K]: f32
//   input w[K, N]: f32
//   output y[M, N]: f32
//   for m < 4
//     for n < 16
//       y.acc[1]: f32 in registers
//       y.acc[0] = 0.0
//       for k < |K|
//         y.acc[0] = fma(x[m, k], w[k, n], y.acc[0])
//       y[m, n] = y.acc[0]
//
// tile program matmul for x86-64
//   dim M = 4
//   dim N = 16
//   dim K
//   input x[M, K]: f32
//   input w[K, N]: f32
//   output y[M, N]: f32
//   for m.micro < 2
//     for n.micro < 2
//       y.acc[2, 8]: f32 in registers
//       unrolled M.u < 2
//         unrolled N.u < 2
//           vector N.lane < 4
//             y.acc[M.u, N.u*4 + N.lane] = 0.0
//       for k < |K|
//         unrolled M.u2 < 2
//           unrolled N.u2 < 2
//             vector N.lane2 < 4
//               y.acc[M.u2, N.u2*4 + N.lane2] = fma(x[m.micro*2 + M.u2, k], w[k, n.micro*8 + N.u2*4 + N.lane2], y.acc[M.u2, N.u2*4 +
//> N.lane2])
//       unrolled M.u3 < 2
//         unrolled N.u3 < 2
//           vector N.lane3 < 4
//             y[m.micro*2 + M.u3, n.micro*8 + N.u3*4 + N.lane3] = y.acc[M.u3, N.u3*4 + N.lane3]
//
// both give the bits of the definition
//
// error[schedule.unknown-dim]: schedule 'matmul/lesson' at /stages/y/micro/H: matmul.y has no dim 'H'; its dims are M, N, K. Did you mean
//> 'M'?
