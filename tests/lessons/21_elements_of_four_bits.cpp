// Lesson 21: elements of four bits.
//
// i4, u4 and f4e2m1fn are types of tensors like any others: indices, extents and strides count elements. In memory two of them are a byte,
// the first one in the low half, and each row along the last dim begins at a byte. Loops and machine code see the bytes; what lowering makes
// of an algorithm says so, and a schedule may name them: the dim "K.bytes".
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "compiler/lower/lower.h"
#include "compiler/rewrite/half_bytes.h"
#include "support/text/error.h"

using namespace tessera;

// y = w x, and the codes of y in steps of a half.
static Algorithm product() {
    Builder f("product");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Tile w = f.input("w", {N, K}, DType::i4), x = f.input("x", {K});
    const Tile y = dot(cast(DType::f32, w), x, {K}).named("y");
    f.output("y", y);
    return f.output("codes", cast(DType::i4, y * 2, Rounding::nearest_even, true), DType::i4).build();
}

int main() {
    // The reference takes an array with a byte for each element.
    const Array w(DType::i4, {2, 3}, {1, -8, 7, 2, 0, -1}), x(DType::f32, {3}, {0.5, 0.25, 0.5});
    const auto made = evaluate(product(), {{"w", w}, {"x", x}});
    std::printf("y = %g %g; codes", made.at("y").values()[0], made.at("y").values()[1]);
    for (double code : made.at("codes").values()) std::printf(" %g", code);
    std::printf("\nw in memory, rows of two bytes:");
    for (const std::byte byte : in_bytes(w).data) std::printf(" %02x", static_cast<unsigned>(byte));
    std::printf("\n\n%s\n", to_text(in_bytes(product())).c_str());

    // Knobs say bytes where loops go over bytes.
    KnobsByStage stages;
    stages["codes.codes"].vector = {{"N", 8}};
    stages["codes"].vector = {{"N.bytes", 4}};
    std::printf("%s\n", to_text(lower(product(), stages, target_named("avx2"))).c_str());

    // One half of a byte cannot be written without the other.
    try {
        Builder f("ring");
        const Dim N = f.dim("N");
        const Tile ring = f.state("ring", {N}, DType::u4);
        f.update("store", ring, {f.index(N)}, ring);
        f.build();
    } catch (const UserError &e) { std::printf("%s\n", e.what()); }
}

// Output:
