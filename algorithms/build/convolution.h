// Convolutions and pools as tile functions: pad a dim, look at it through a window, fold over the window. Names are those of
// cuDNN: N images of H x W pixels and C channels; windows of R x S taps; P x Q positions; O output channels.
//
//     Tile conv2d_nhwc = dot(windows(windows(padded, H, P, R, along), W, Q, S, along), w, {R, S, C});   // (N, P, Q, O)
//
// A group, and a channel of a depthwise convolution, is a dim that both operands keep: x[N, H, W, G, C] lies in memory as x[N, H,
// W, G*C] does. Padding is a stage of its own. A schedule may copy it at a block, and windows then read without a test; or inline
// it, and every read is tested.
#pragma once
#include <optional>

#include "algorithms/build/builder.h"
#include "algorithms/build/option.h"

namespace tessera {

// A window along one dim: position p sees the elements p * stride + tap * dilation of the padded dim.
struct Window {
    int64_t stride = 1, padding = 0, dilation = 1;
    std::optional<int64_t> padding_end = {};  // none: as at the beginning

    int64_t padded() const { return padding + padding_end.value_or(padding); }  // elements, at both ends
};
// The window that the options stride, padding and dilation describe; a missing option has the value above.
Window window_of(const Options &options);
// Those options: stride and dilation in 1 ..= 64, padding in 0 ..= 64.
std::vector<Option> window_options();

// |in| and the padding at both ends.
Dim padded_dim(const std::string &name, const Dim &in, const Window &window);
// (|in| + padding at both ends - dilation (|taps| - 1) - 1) / stride + 1 positions of a window of |taps| taps; none where it does not fit.
Dim positions_dim(const std::string &name, const Dim &in, const Dim &taps, const Window &window);

// x with `outside` beyond the ends of the dims `from`, which become the dims `to` of padded_dim. Not a stage until named.
Tile pad(const Tile &x, const std::vector<Dim> &from, const std::vector<Dim> &to, const Window &window, double outside = 0,
         Span caller = std::source_location::current());
// The same, each dim with a window of its own.
Tile pad_each(const Tile &x, const std::vector<Dim> &from, const std::vector<Dim> &to, const std::vector<Window> &windows,
              double outside = 0, Span caller = std::source_location::current());
// x[…, padded, …] read through a window: (…, positions, …, taps).
Tile windows(const Tile &x, const Dim &padded, const Dim &positions, const Dim &taps, const Window &window,
             Span caller = std::source_location::current());

// One of the dims that a window goes along: `taps` of it are seen from each of `positions`, the name of a dim that is declared.
struct WindowDim {
    Dim in, taps;
    Window window;
    std::string positions;
};

// The windows of a convolution or pool over any number of dims, with the dims that they declare.
struct Windows {
    Tile tile;                           // (…, positions, …, taps): positions in place of what they go along, all taps at the end
    std::vector<Dim> padded, positions;  // of a dim L: LP, and as WindowDim says
};
// x with all these dims padded in a stage named "padded" and read through windows.
Windows windows_over(const Tile &x, const std::vector<WindowDim> &dims, double outside = 0, Span caller = std::source_location::current());

// Sum over all taps and the channels of x's windows times w: of three dims, x[N, D, H, W, C], w[T, R, S, C, O] or in any other order of
// dims. Gives the dims of x that are not summed, positions for those that windows go along, then those that w adds.
Tile conv(const Tile &x, const Tile &w, const std::vector<WindowDim> &dims, const std::vector<Dim> &channels,
          Span caller = std::source_location::current());
// The gradient of conv by x (Zeiler et al. 2010; PyTorch's conv_transpose): each element of x adds its products with w[R, …, C, O] to the
// positions that its window covers, stride apart. Position p is the sum over the taps that reach it; without dilation only these are
// visited. Of a dim H: (|H| - 1) stride + dilation (|R| - 1) + 1 - padding + end positions; `end`, one for each dim or none, adds some.
Tile transposed_conv(const Tile &x, const Tile &w, const std::vector<WindowDim> &dims, const std::vector<Dim> &channels,
                     const std::vector<int64_t> &end = {}, Span caller = std::source_location::current());
// The maximum over the window, or NaN if there is a NaN in it; positions outside count as -inf, or the least integer.
Tile max_pool(const Tile &x, const std::vector<WindowDim> &dims, Span caller = std::source_location::current());
// The mean over the window; positions outside count as 0, or with counts_padding = false not at all: a window that sees nothing else
// gives NaN.
Tile average_pool(const Tile &x, const std::vector<WindowDim> &dims, bool counts_padding = true,
                  Span caller = std::source_location::current());

// Over two dims with one window for both, and over one: positions are the dims P and Q, padded are HP and WP, or LP. Builder::dim_named
// gives dims by name.
Tile conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const std::vector<Dim> &channels,
            const Window &window, Span caller = std::source_location::current());
Tile conv1d(const Tile &x, const Tile &w, const Dim &L, const Dim &R, const std::vector<Dim> &channels, const Window &window,
            Span caller = std::source_location::current());
Tile transposed_conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S,
                       const std::vector<Dim> &channels, const Window &window, int64_t end = 0,
                       Span caller = std::source_location::current());
Tile max_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window,
                Span caller = std::source_location::current());
Tile average_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window,
                    Span caller = std::source_location::current());

}  // namespace tessera
