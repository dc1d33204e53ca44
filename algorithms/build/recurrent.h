// Recurrences: what a step makes of a state and of one element of a sequence, repeated along it (Builder::repeat).
//
//     const RecurrentStates s = lstm(x, {w, r, b}, h, c, T);   // x (T, N, I), w (I, G), r (K, G), b (G), h and c (N, H)
//     f.output("y", s.y).output("h_last", s.h).output("c_last", s.c);
//
// A call begins with the states that it is given and gives those after its last step. So a sequence may come in pieces of any length, down
// to a step, and gives the same bits as in one call: each step is one callee, and products of inputs fold in one order for any number of
// steps.
//
// T are steps, I elements of an input, H of a state; K is as long as H, G as long as H for each gate. The other dims of x, here N, are
// sequences that do not see one another; there may be none or several. Tiles may have their dims in any order, but for states, whose last
// one is H. The stage `gates` is the product for all steps; those of a step are step.recurrent, step.hidden, step.y and so on.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

enum class Activation : uint8_t { sigmoid, tanh, relu };
constexpr const char *activation_names[] = {"sigmoid", "tanh", "relu"};

// In which order G has the gates. onnx: LSTM input, output, forget, cell; GRU update, reset, hidden. pytorch: LSTM input, forget, cell,
// output; GRU reset, update, hidden.
enum class GateOrder : uint8_t { onnx, pytorch };
constexpr const char *gate_order_names[] = {"onnx", "pytorch"};

struct RecurrentWeights {
    Tile input, recurrent;                // (I, G), (K, G)
    Tile bias = {}, recurrent_bias = {};  // (G); where there are none, nothing is added
    Tile peepholes = {};  // (P), of an LSTM: 3 |H| weights of what the input, output and forget gates see of the cell, in ONNX's order
};

struct RecurrentOptions {
    GateOrder order = GateOrder::onnx;
    bool backward = false;  // from the last element to the first; y stays in the order of x
    // For gates, for what is new, and for the cell on its way out; those at the end may be missing. None: sigmoid, tanh, tanh; rnn: tanh.
    std::vector<Activation> activations = {};
    double clip = 0;           // what gates see is limited to -clip ..= clip; 0: to nothing
    bool couples = false;      // LSTM: the forget gate is 1 - the input gate
    bool resets_after = true;  // GRU: the product with the state is reset, as PyTorch does it, in place of the state (Cho et al. 2014)
};

// What all steps give, y (T, N, H), and the states after the last one; without steps these are the ones given.
struct RecurrentStates {
    Tile y, h, c;
};

// Long short-term memory (Hochreiter, Schmidhuber 1997, with the forget gate of Gers et al. 2000): gates i, f, o and the candidate g are
// activations of x w + bias + (h r + recurrent_bias), c = f c + i g, h = o tanh(c). The last state is in the type of the first one, as y
// is. UserError recurrent.dims.
RecurrentStates lstm(const Tile &x, const RecurrentWeights &w, const Tile &h, const Tile &c, const Dim &along,
                     const RecurrentOptions &options = {}, Span caller = std::source_location::current());
// Gated recurrent unit: h = (1 - z) n + z h, of the update gate z and the candidate n, for which the gate r resets the state.
RecurrentStates gru(const Tile &x, const RecurrentWeights &w, const Tile &h, const Dim &along, const RecurrentOptions &options = {},
                    Span caller = std::source_location::current());
// h = tanh(x w + bias + h r + recurrent_bias) (Elman 1990)
RecurrentStates rnn(const Tile &x, const RecurrentWeights &w, const Tile &h, const Dim &along, const RecurrentOptions &options = {},
                    Span caller = std::source_location::current());

// First-order recurrence with a matrix: h = a h + b, of a (T, N, H, K), b (T, N, H) and h (N, H). Each of T and N may be missing in a and
// in b: that is then the same for all steps or sequences. A diagonal matrix is a scan (Builder::scan_parts).
RecurrentStates linear_recurrence(const Tile &a, const Tile &b, const Tile &h, const Dim &along,
                                  Span caller = std::source_location::current());

// A convolution along a dim that sees its own element and those before it, with what it has seen carried on.
struct CausalConvolution {
    Tile y;        // (N, L, O)
    Tile history;  // (N, J, C): the last |J| elements of x, or of those before it
};

// y[l] = sum over R and `channels` of x[l - (|R| - 1 - r) dilation] w[r], of x (N, L, C) and w (R, C, O); a channel that w has and that is
// not summed is convolved by itself. Elements before x are those of history (N, J, C), |J| = (|R| - 1) dilation, the last of which is next
// to x: causal_history makes that dim. Stage `joined` has both. UserError recurrent.dims.
CausalConvolution causal_conv1d(const Tile &x, const Tile &w, const Tile &history, const Dim &along, const Dim &taps,
                                const std::vector<Dim> &channels, int64_t dilation = 1, Span caller = std::source_location::current());
Dim causal_history(const std::string &name, const Dim &taps, int64_t dilation = 1);

}  // namespace tessera
