// The operators that are understood: a row each.
#pragma once
#include <string>
#include <vector>

#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

using Handler = std::vector<Value> (*)(Context &);

struct Operator {
    const char *name;
    Handler handler;
    const char *domain = "";
    bool is_element_wise = false;
};

// By topic, each in a file of its own.
std::vector<Operator> arithmetic_operators();  // operators_arithmetic.cpp: element by element
std::vector<Operator> shape_operators();       // operators_shape.cpp: views, joins, slices
std::vector<Operator> reduction_operators();   // operators_reduction.cpp: folds over axes
std::vector<Operator> network_operators();     // operators_network.cpp: products, convolutions, pools
std::vector<Operator> indexing_operators();    // operators_indexing.cpp: gathers, scatters, choices, Einstein's sums
std::vector<Operator> quantized_operators();   // operators_quantized.cpp: codes, and products of them
std::vector<Operator> sampling_operators();    // operators_sampling.cpp: resizing, transposed convolutions
std::vector<Operator> recurrent_operators();   // operators_recurrent.cpp: LSTM, GRU, RNN
std::vector<Operator> signal_operators();      // operators_signal.cpp: Fourier transforms, windows
std::vector<Operator> placing_operators();     // operators_placing.cpp: crops, columns and maxima to where they were
std::vector<Operator> grid_operators();        // operators_grid.cpp: what is read between pixels
std::vector<Operator> loop_operators();        // operators_loop.cpp: graphs that repeat, optional values
std::vector<Operator> training_operators();    // operators_training.cpp: steps of optimizers

std::vector<Operator> loss_operators();             // operators_loss.cpp: losses of classification
std::vector<Operator> normalization_operators();    // operators_normalization.cpp: normalizations
std::vector<Operator> attention_operators();        // operators_attention.cpp: attention, rotary positions
std::vector<Operator> state_operators();            // operators_state.cpp: caches, convolutions and linear attention that go on
std::vector<Operator> known_operators();            // operators_known.cpp: results whose extent elements decide, of constants
std::vector<Operator> fused_operators();            // operators_fused.cpp: what onnxruntime's optimizer and quantizer write
std::vector<Operator> fused_attention_operators();  // operators_fused_attention.cpp: its attention, and embeddings
std::vector<Operator> feature_operators();          // operators_features.cpp: n-grams

// What handlers of several files call.
// The value with other extents of as many elements in the same order. UserError onnx.reshape.
Value reshaped(Context &c, const Value &x, const std::vector<Expr> &extents);

const Operator *find_operator(const std::string &domain, const std::string &name);
std::vector<Operator> all_operators();

}  // namespace tessera::onnx
