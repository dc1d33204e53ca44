// Quantised tensors: codes of few bits, a scale for each row or for each group of neighbours in it, perhaps a zero point beside each scale.
// They are ordinary tensors whose dims belong together, not a type: the ABI, schedules and emitters see codes and scales, and a formula
// that an algorithm states.
//
//     Quantized w = quantized(f, "w", {N, K}, {.codes = DType::i8, .group = 32});    // w[N, K] and w_scales[N, K_groups_of_32]
//     return f.output("y", dot(dequantize(w), x, {K})).build();
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

struct Quantization {
    DType codes = DType::i8;    // i8, u8, or a float of one byte
    DType scales = DType::f32;  // a float
    int64_t group = 0;  // so many neighbours along the last dim have a scale in common, the last ones perhaps fewer; 0: the whole row
    std::optional<DType> zeros = {};  // i8, u8 or i32: zero points, of integer codes
};

// Tiles of the values; `zeros` is none where there are none. Where groups are, `scales` and `zeros` have the dim "<K>_groups_of_<group>"
// in place of the codes' last, K; without groups they have no such dim.
struct Quantized {
    Tile codes, scales, zeros;
    int64_t group = 0;
    std::vector<std::string> dims;  // of the codes
};

// Declares the inputs "<name>", "<name>_scales" and "<name>_zeros". UserError quantized.type, quantized.group or quantized.dims.
Quantized quantized(Builder &f, const std::string &name, const std::vector<Dim> &dims, const Quantization &how,
                    Span caller = std::source_location::current());

// scale * (code - zero) in the compute type: integers are subtracted exactly, and the product is rounded once.
Tile dequantize(const Quantized &q, Span caller = std::source_location::current());

// Codes and scales of x by the largest magnitude, symmetric around 0: scale = max |x| / h over each group, where h is 127 or the largest
// number of the format, not below 2^-126, rounded up to its type; code = x / scale, rounded to nearest even and saturated. x has no NaN.
// Scales become the stage "<name>_scales"; `codes` is an expression of the type how.codes. UserError quantized.type for u8 and for zero
// points, which are for what is not symmetric.
Quantized quantize(const Tile &x, const std::string &name, const Quantization &how, Span caller = std::source_location::current());

// What is stored of x, a number of steps: rounded to nearest even, moved by the zero point, an i32 tile or none, and saturated to the type.
// Floats take no zero point (UserError quantized.type); `saturate` says whether what they do not hold becomes their largest number.
Tile codes_of(const Tile &steps, const Tile &zero, DType codes, bool saturate = true, Span caller = std::source_location::current());

// u8 codes of x whose scale and zero point are those of the elements over `over`, which is all of its dims or some: 0 and what is between
// the least and the largest of them are 255 steps, and 0 is a code. Of nothing but zeros a step is 1 / 255. scale = (most - least) / 255,
// zero = -least / scale, rounded and kept in 0 ..= 255 (ONNX's DynamicQuantizeLinear). x has no infinity and no NaN. Stages "<name>_least",
// "<name>_most" and "<name>_scales"; `zeros` is an expression of type i32.
Quantized quantize_dynamic(const Tile &x, const std::string &name, const std::vector<Dim> &over,
                           Span caller = std::source_location::current());

}  // namespace tessera
