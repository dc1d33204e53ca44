// Lesson 21: elements of four bits.
//
// i4, u4 and f4e2m1fn are types of tensors like any others: indices, extents and strides count elements. In memory two of them are a byte,
// the first one in the low half, and each row along the last dim begins at a byte. Loops and machine code see the bytes; what lowering
// makes of an algorithm says so, and a schedule may name them: the dim "K.bytes".
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/half_bytes.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"

using namespace tessera;

// y = w x, and the codes of y in steps of a half.
static Algorithm product() {
    Builder f("product");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Tile w = f.input("w", {N, K}, DType::i4), x = f.input("x", {K});
    const Tile y = dot(cast(DType::f32, w), x, {K}).named("acc");
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
// y = 2 0.5; codes 4 1
// w in memory, rows of two bytes: 81 07 02 0f
//
// algorithm product: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim N
//   dim K
//   dim K.bytes = (|K| + 1)/2
//   dim N.bytes = (|N| + 1)/2
//   input w[N, K.bytes]: u8, of i4[N, K]
//   input x[K]: f32
//   acc[N]: f32 = dot over K of (f32(i32(bitcast<i4>(u8(shr(i32(w[N, K/2]), i32(K%2)*4:i32) & 15:i32)))), x[K])
//   y[N]: f32 = acc[N]
//   codes.codes[N]: i4 = i4.sat(acc[N]*2.0)
//   codes[N.bytes]: u8 = u8(i32(bitcast<u8>(codes.codes[N.bytes*2])) | shl(i32(bitcast<u8>(load_or(codes.codes[$0], $0 < |N|, 0:i4))),
//> 4:i32))
//     $0 = N.bytes*2 + 1
//   outputs y, codes
//
// tile program product for avx2
//   dim N
//   dim K
//   dim K.bytes = (|K| + 1)/2
//   dim N.bytes = (|N| + 1)/2
//   input w[N, K.bytes]: u8, of i4[N, K]
//   input x[K]: f32
//   output y[N]: f32
//   output codes[N.bytes]: u8, of i4[N]
//   acc[|N|]: f32 in workspace
//   for n < |N|
//     acc.acc[1]: f32 in registers
//     acc.acc[0] = 0.0
//     for k < |K|
//       acc.acc[0] = fma(f32(xor(shr(i32(w[n, k/2]), i32(k%2)*4:i32) & 15:i32, 8:i32) + -8:i32), x[k], acc.acc[0])
//     acc[n] = acc.acc[0]
//   for n2 < |N|
//     y[n2] <- acc[n2]
//   codes.codes[(|N| + 7)/8*8]: i4 in workspace
//   for n3 < |N|/8
//     vector N.lane < 8
//       codes.codes[n3*8 + N.lane] = bitcast<i4>(u8(min(max(i32.sat(acc[n3*8 + N.lane]*2.0), -8:i32), 7:i32) & 15:i32))
//   if |N|/8*8 < |N|
//     vector N.lane2 < 8
//       codes.codes[|N|/8*8 + N.lane2] = bitcast<i4>(u8(min(max(i32.sat(load_or(acc[|N|/8*8 + N.lane2], |N|/8*8 + N.lane2 < |N|, 0.0)*2.0),
//> -8:i32), 7:i32) & 15:i32))
//   for n.bytes < (|N| + 1)/8
//     vector N.bytes.lane < 4
//       codes[n.bytes*4 + N.bytes.lane] = u8(i32(bitcast<u8>(codes.codes[n.bytes*8 + N.bytes.lane*2])) |
//> shl(i32(bitcast<u8>(load_or(codes.codes[n.bytes*8 + N.bytes.lane*2 + 1], n.bytes*8 + N.bytes.lane*2 + 1 < |N|, 0:i4))), 4:i32))
//   if (|N| + 1)/8*4 < (|N| + 1)/2
//     vector N.bytes.lane2 < 4
//       codes[(|N| + 1)/8*4 + N.bytes.lane2] = u8(i32(bitcast<u8>(codes.codes[$0])) | shl(i32(bitcast<u8>(load_or(codes.codes[$0 + 1], $0 +
//> 1 < |N|, 0:i4))), 4:i32)) where (|N| + 1)/8*4 + N.bytes.lane2 < (|N| + 1)/2
//         $0 = min((|N| + 1)/8*4 + N.bytes.lane2, (|N| + 1)/2 - 1)*2
//
// 21_elements_of_four_bits.cpp:47: error[algorithm.type]: ring.ring: a state of type u4, two elements of which are a byte: one cannot be
//> written without the other; declare it u8 or i8.
