// Products and convolutions, of floats and of codes. With several axes of pixels the channels lie innermost in memory, whatever ONNX's
// order: stages are (N, pixels, channels).
#pragma once
#include <string>
#include <vector>

#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

// Those that the axes have.
std::vector<std::string> dims_of(const std::vector<Axis> &axes);

// a times b as NumPy's matmul has it: their last two axes, others broadcast, vectors as rows and columns. Sums of integers wrap in the type
// in which codes are computed.
Value product(Context &c, const Value &a, const Value &b, DType dtype);

// What a window sees along each axis of pixels.
struct Windows {
    std::vector<int64_t> strides, dilations, begins, ends;
    std::vector<Expr> positions;
};

Windows windows_of(Context &c, const std::vector<Axis> &pixels, const std::vector<int64_t> &taps, bool ceils);

// x (N, channels, pixels…) as windows see it: (N, positions…, taps…, C), read at `channel`, an index that C and groups make. What is padded
// is a stage with `outside` around, whose channels lie innermost.
Tile seen(Context &c, const Value &x, const Windows &w, const std::vector<Axis> &pixels, const Axis &N, const Axis &C,
          const std::vector<Axis> &positions, const std::vector<Axis> &taps, const Expr &outside, const Expr &channel);

struct Convolution {
    Expr outside = {};      // what pads; undefined: 0
    Value *sums = nullptr;  // becomes the sums of what windows see in a group, broadcast over its outputs
};
Value convolved(Context &c, const Value &x, const Value &weights, DType dtype, const Convolution &how = {});

// y and the bias of the node's input of that number by channel, where it has one.
Value with_bias(Context &c, const Value &y, size_t input);
// What Gemm makes of a product: alpha y, and beta times the node's input of that number, where it has one.
Value scaled_with_bias(Context &c, const Value &y, size_t input);

}  // namespace tessera::onnx
