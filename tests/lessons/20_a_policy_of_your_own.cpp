// Lesson 20: a numerics policy of your own.
//
// An algorithm is declared once, with a policy that says how its numbers are kept, computed and rounded. The words of a policy become casts
// and codes in the algorithm, so nothing below has to know them; what a schedule could weaken is checked. On the command line a policy is a
// name or a file: `--numerics nvfp4`, `--numerics mine.json` by schedules/tessera-numerics.schema.json.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/evaluate/array.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"

using namespace tessera;

static Algorithm projection(const Numerics &policy) {
    Builder f("projection", policy);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim(rows_of_weights("K", policy));
    const Tile x = f.input("x", {M, K});
    return f.output("y", multiply(x, weights(f, "w", {}, K, N), "acc")).build();  // (M, N)
}

int main() {
    for (const char *name : {"training", "inference", "nvfp4"}) {
        const Algorithm a = projection(numerics_named(name));
        std::printf("%s: %s\n ", name, text_of(a.numerics).c_str());
        for (const Tensor &t : a.tensors) std::printf(" %s %s", t.name.c_str(), name_of(t.dtype));
        std::printf("\n");
    }

    // Results of f32 go to bf16 upwards, and subnormal numbers are zeros.
    Numerics mine = numerics_named("bf16");
    mine.name = "mine", mine.rounding = Rounding::up, mine.denormals = Denormals::flushed;
    check(mine);
    const Array x(DType::bf16, {3, 1}, {1, 0x1p-130, -3}), w(DType::bf16, {1, 1}, {1.0078125});
    std::printf("\nmine: ");
    for (const Numerics &policy : {numerics_named("bf16"), mine}) {
        for (double y : evaluate(projection(policy), {{"x", x}, {"w", w}}).at("y").values()) std::printf("%.8g ", y);
        std::printf("%s", policy.name == "mine" ? "\n" : "beside ");
    }

    // The bf16 dot product of a processor takes subnormal numbers for zeros.
    Numerics strict = numerics_named("bf16");
    strict.name = "strict", strict.denormals = Denormals::gradual;
    Knobs tile;
    tile.micro = {{"M", 4}, {"N", 32}}, tile.vector = {{"N", 16}}, tile.instruction = "dot2";
    try {
        lower(projection(strict), {{"acc", tile}}, target_named("avx512+avx512_bf16"));
    } catch (const UserError &error) { std::printf("\n%s\n", error.what()); }
}

// Output:
// training: storage bf16, states f32, compute f32, accumulate f32, nearest_even, denormals any
//   x bf16 w bf16
// inference: storage bf16, weights f8e4m3fn, compute f32, accumulate f32, nearest_even, denormals any
//   x bf16 w f8e4m3fn w_scales f32
// nvfp4: storage bf16, weights nvfp4, compute f32, accumulate f32, nearest_even, denormals any
//   x bf16 w u8 w_scales f8e4m3fn w_tensor_scale f32
//
// mine: 1.0078125 7.3468397e-40 -3.03125 beside 1.0078125 0 -3.015625
//
// error[schedule.instruction]: acc: the instruction family dot2 takes subnormal numbers for zeros, and the policy 'strict' has denormals
//> 'gradual'. Delete the knob (null), or declare the algorithm with a policy that has 'any' or 'flushed'.
