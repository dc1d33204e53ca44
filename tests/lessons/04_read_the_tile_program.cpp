// Lesson 4: read the tile program.
//
// The tile program is the kernel as it will run: nothing below it decides anything any more. Emitted code is a translation
// of it, and a person can read what the machine will do: which values are in registers, what happens at the edges, and in
// which order a sum is taken.
//
// That last point is why this lesson splits a reduction. Floating-point addition is not associative, so a sum over four
// lanes has other bits than a sum from left to right. Tessera never does this by itself: the schedule asks for it, it is a
// rewrite of the algorithm, and the reduction tree that results can be read in the tile program.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

// The sum of each row.
static Algorithm totals() {
    Builder f("totals", numerics_named("f32"));
    Dim M = f.dim("M"), K = f.dim("K");
    Tile x = f.input("x", {M, K});            // (M, K)
    return f.output("y", sum(x, K)).build();  // (M)
}

static TileProgram lowered(const Schedule &schedule) {
    TileProgram program = lower(totals(), resolve(schedule, Library()).stages, target_named("x86-64"));
    verify(program);
    return program;
}

static float run(const TileProgram &program, Array x) {
    Array y(DType::f32, {1});
    interpret(program, {{"x", x.view("x")}, {"y", y.view("y")}});
    return static_cast<float>(y.values()[0]);
}

int main() {
    // `lanes` of 4: lane i takes every 4th element, and then the four partial sums are added. The split makes the stage
    // y.partial over the new dim K.i, which is scheduled like any other stage: inside the loop over rows, as one vector.
    const Schedule by_lanes = Schedule("totals/lanes")
                                  .stage("y", StageKnobs().split("K", Split::How::lanes, 4).parallel({"M"}))
                                  .stage("y.partial", place("y.M").micro({{"K.i", 4}}).vector({{"K.i", 4}}));
    const TileProgram lanes = lowered(by_lanes), plain = lowered(Schedule("totals/plain"));

    // How to read it, top down:
    //   |K|              the extent of a dim, known when the kernel is called
    //   in registers     a buffer, with its space; it lives for the lines below it, up to the end of its block
    //   k.o.safe = ...   a value that gets a name: the pieces of 4 that lie inside K entirely
    //   for, unrolled, vector, parallel   the kinds of loops
    //   0.0              what a sum begins with, so that the sum of nothing is 0.0
    //   the second loop  what is left of K: load_or reads only where its condition holds, and select keeps a lane that has
    //                    run out of elements as it was
    std::printf("%s\n", to_text(lanes).c_str());

    // It is also a value that programs read: verifiers, emitters, and this count of where additions happen.
    int additions = 0, of_vectors = 0;
    walk(lanes.body, [&](const TileNode &node) {
        auto adds = [](const Compute &c) {
            bool found = false;
            walk(c.value, [&](const Expr &e) { found |= e.is_operation(Op::add) && e.type() == DType::f32; });
            return found;
        };
        if (auto *compute = std::get_if<Compute>(&node)) additions += adds(*compute);
        if (auto *loop = std::get_if<Loop>(&node); loop && loop->kind == LoopKind::vector)
            for (const auto &inner : loop->body)
                if (auto *compute = std::get_if<Compute>(inner.get())) of_vectors += adds(*compute);
    });
    std::printf("statements that add: %d, %d of them in vectors\n", additions, of_vectors);
    require(additions == 3 && of_vectors == 2, "full pieces, the rest, and the fold of the lanes");

    // The tree says the bits. Here it is once more, by hand: four sums, then the fold over the lanes from 0 upwards.
    Array x(DType::f32, {1, 1001});
    for (int64_t i = 0; i < x.size(); i++) x.set(i, Scalar::of_real(DType::f32, 1.0 / static_cast<double>(i + 1)));
    float lane[4] = {}, by_hand = 0, left_to_right = 0;
    for (int64_t i = 0; i < x.size(); i++) lane[i % 4] += static_cast<float>(x.values()[i]);
    for (float partial : lane) by_hand += partial;
    for (int64_t i = 0; i < x.size(); i++) left_to_right += static_cast<float>(x.values()[i]);
    require(run(lanes, x) == by_hand, "the lanes are those of the tile program");
    require(run(plain, x) == left_to_right, "without a split the order is the declared one");
    std::printf("left to right %.9g, by lanes %.9g\n", run(plain, x), run(lanes, x));

    // So a program is named by what it does: the resolved hash covers all of the text but the kernel's name. Bits depend on
    // the program, and on nothing else: not on the number of threads, not on addresses, not on the run.
    require(resolved_hash(lanes) != resolved_hash(plain), "another tree is another program");
    require(resolved_hash(lanes) == resolved_hash(lowered(by_lanes.named("totals/renamed"))), "the schedule's name is not in it");
}

// Output:
// tile program totals for x86-64
//   dim M
//   dim K
//   input x[M, K]: f32
//   output y[M]: f32
//   parallel m < |M|
//     y.partial.tile[1, 4]: f32 in stack
//     y.partial.acc[4]: f32 in registers
//     vector K.i.lane < 4
//       y.partial.acc[K.i.lane] = 0.0
//     k.o.safe = |K|/4
//     for k.o2 < k.o.safe
//       vector K.i.lane2 < 4
//         y.partial.acc[K.i.lane2] = y.partial.acc[K.i.lane2] + x[m, k.o2*4 + K.i.lane2]
//     for k.o3 < (|K| + 3)/4 - k.o.safe
//       vector K.i.lane3 < 4
//         y.partial.acc[K.i.lane3] = select(k.o.safe*4 + k.o3*4 + K.i.lane3 < |K|, y.partial.acc[K.i.lane3] + load_or(x[m, k.o.safe*4 +
//> k.o3*4 + K.i.lane3], k.o.safe*4 + k.o3*4 + K.i.lane3 < |K|, 0.0), y.partial.acc[K.i.lane3])
//     vector K.i.lane4 < 4
//       y.partial.tile[0, K.i.lane4] = y.partial.acc[K.i.lane4]
//     y.acc[1]: f32 in registers
//     y.acc[0] = 0.0
//     for k.i < 4
//       y.acc[0] = y.acc[0] + y.partial.tile[0, k.i]
//     y[m] = y.acc[0]
//
// statements that add: 3, 2 of them in vectors
// left to right 7.48647738, by lanes 7.48647165
