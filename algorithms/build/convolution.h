// Convolutions and pools as tile functions: pad a dim, look at it through a window, fold over the window. Names are those of
// cuDNN: N images of H x W pixels and C channels; windows of R x S taps; P x Q positions; O output channels.
//
//     Tile conv2d_nhwc = dot(windows(windows(padded, H, P, R, along), W, Q, S, along), w, {R, S, C});   // (N, P, Q, O)
//
// A group, and a channel of a depthwise convolution, is a dim that both operands keep: x[N, H, W, G, C] lies in memory as x[N, H,
// W, G*C] does. Padding is a stage of its own. A schedule may copy it at a block, and windows then read without a test; or inline
// it, and every read is tested.
#pragma once
#include "algorithms/build/builder.h"
#include "algorithms/build/option.h"

namespace tessera {

// A window along one dim: position p sees the elements p * stride + tap * dilation of the padded dim.
struct Window {
    int64_t stride = 1, padding = 0, dilation = 1;
};
// The window that the options stride, padding and dilation describe; a missing option has the value above.
Window window_of(const Options &options);
// Those options: stride and dilation in 1 ..= 64, padding in 0 ..= 64.
std::vector<Option> window_options();

// |in| + 2 padding.
Dim padded_dim(const std::string &name, const Dim &in, const Window &window);
// (|in| + 2 padding - dilation (|taps| - 1) - 1) / stride + 1 positions of a window of |taps| taps; none where it does not fit.
Dim positions_dim(const std::string &name, const Dim &in, const Dim &taps, const Window &window);

// x with `outside` beyond the ends of the dims `from`, which become the dims `to` of padded_dim. Not a stage until named.
Tile pad(const Tile &x, const std::vector<Dim> &from, const std::vector<Dim> &to, const Window &window, double outside = 0,
         Span caller = std::source_location::current());
// x[…, padded, …] read through a window: (…, positions, …, taps).
Tile windows(const Tile &x, const Dim &padded, const Dim &positions, const Dim &taps, const Window &window,
             Span caller = std::source_location::current());

// The windows of a convolution or pool over two dims, with the dims that they declare.
struct Windows2d {
    Tile tile;         // (…, P, Q, …, R, S)
    Dim HP, WP, P, Q;  // padded, and the positions
};
// x with H and W padded in a stage named "padded" and read through R x S taps. What declares dims by itself, as this and those below,
// names them HP, WP, P and Q, or LP and P; Builder::dim_named gives them.
Windows2d windows2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, double outside = 0,
                    Span caller = std::source_location::current());
// Sum over R, S and C of x's windows times w: x[N, H, W, C], w[R, S, C, O] or in any other order of dims. Gives the dims of x
// that are not summed, P and Q for H and W, then those that w adds.
Tile conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const std::vector<Dim> &channels,
            const Window &window, Span caller = std::source_location::current());
// The same along one dim: x[N, L, C], w[R, C, O] give (N, P, O).
Tile conv1d(const Tile &x, const Tile &w, const Dim &L, const Dim &R, const std::vector<Dim> &channels, const Window &window,
            Span caller = std::source_location::current());
// The gradient of conv2d by x (Zeiler et al. 2010; PyTorch's conv_transpose2d): each element of x[N, H, W, C] adds its products with
// w[R, S, C, O] to the positions that its window covers, stride apart. Position p is the sum over the taps that reach it, of which only
// those are visited: (N, P, Q, O), P = (H - 1) stride - 2 padding + R + end. `end` adds positions at the end; dilation is 1.
Tile transposed_conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S,
                       const std::vector<Dim> &channels, const Window &window, int64_t end = 0,
                       Span caller = std::source_location::current());
// The maximum over the window, or NaN if there is a NaN in it; positions outside count as -inf.
Tile max_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window,
                Span caller = std::source_location::current());
// The sum over the window divided by |R| |S|; positions outside count as 0.
Tile average_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window,
                    Span caller = std::source_location::current());

}  // namespace tessera
