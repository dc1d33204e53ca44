#include "algorithms/import/onnx/needs.h"

#include <map>

namespace tessera::onnx {

namespace {

struct Needs {
    size_t inputs = 0;           // that are required
    std::vector<int64_t> ranks;  // the least of each input that is given
    int64_t since = 0;           // the opset from which the count holds
};

const std::map<std::string, Needs> &table() {
    static const std::map<std::string, Needs> rows = {
        {"Concat", {1, {1}}},
        {"Max", {1, {}}},
        {"Mean", {1, {}}},
        {"Min", {1, {}}},
        {"Sum", {1, {}}},
        // Products and windows.
        {"Conv", {2, {3, 3}}},
        {"ConvInteger", {2, {3, 3}}},
        {"ConvTranspose", {2, {3, 3}}},
        {"DeformConv", {3, {3, 3, 3}}},
        {"QLinearConv", {8, {3, 0, 0, 3}}},
        {"MatMul", {2, {1, 1}}},
        {"MatMulInteger", {2, {1, 1}}},
        {"QLinearMatMul", {8, {1, 0, 0, 1}}},
        {"Gemm", {2, {2, 2}}},
        {"AveragePool", {1, {3}}},
        {"LpPool", {1, {3}}},
        {"MaxPool", {1, {3}}},
        {"MaxUnpool", {2, {3, 3}}},
        {"MaxRoiPool", {2, {4, 2}}},
        {"RoiAlign", {3, {4, 2, 1}}},
        {"GlobalAveragePool", {1, {2}}},
        {"GlobalLpPool", {1, {2}}},
        {"GlobalMaxPool", {1, {2}}},
        {"LRN", {1, {2}}},
        {"Col2Im", {3, {2, 1, 1}}},
        {"GridSample", {2, {3, 3}}},
        {"AffineGrid", {2, {3, 1}}},
        {"DepthToSpace", {1, {4}}},
        {"SpaceToDepth", {1, {4}}},
        // Normalizations and losses.
        {"BatchNormalization", {5, {1, 1, 1, 1, 1}}},
        {"GroupNormalization", {3, {2, 1, 1}}},
        {"InstanceNormalization", {3, {2, 1, 1}}},
        {"LayerNormalization", {2, {1}}},
        {"RMSNormalization", {2, {1}}},
        {"LpNormalization", {1, {1}}},
        {"Hardmax", {1, {1}}},
        {"LogSoftmax", {1, {1}}},
        {"Softmax", {1, {1}}},
        {"NegativeLogLikelihoodLoss", {2, {2, 1}}},
        {"SoftmaxCrossEntropyLoss", {2, {2, 1}}},
        // Recurrences and attention.
        {"GRU", {3, {3, 3, 3, 2, 1, 3}}},
        {"LSTM", {3, {3, 3, 3, 2, 1, 3, 3, 2}}},
        {"RNN", {3, {3, 3, 3, 2, 1, 3}}},
        {"Attention", {3, {3, 3, 3}}},
        {"RotaryEmbedding", {3, {3, 2, 2}}},
        // Views, choices and what is read by positions.
        {"Slice", {3, {1}, 10}},
        {"Range", {3, {}}},
        {"EyeLike", {1, {2}}},
        {"Trilu", {1, {2}}},
        {"Det", {1, {2}}},
        {"TopK", {1, {1}}},
        {"CumSum", {2, {1}}},
        {"ReverseSequence", {2, {2, 1}}},
        {"Split", {1, {1}}},
        {"Gather", {2, {1}}},
        {"GatherElements", {2, {1, 1}}},
        {"GatherND", {2, {1, 1}}},
        {"Scatter", {3, {1, 1, 1}}},
        {"ScatterElements", {3, {1, 1, 1}}},
        {"ScatterND", {3, {1, 1, 0}}},
    };
    return rows;
}

}  // namespace

void check_needs(const Context &c) {
    if (!c.node.domain.empty()) return;
    const auto row = table().find(c.node.op);
    if (row == table().end()) return;
    const Needs &needs = row->second;
    for (size_t i = 0; i < needs.inputs && c.opset >= needs.since; i++)
        if (!c.has(i))
            c.refuse("its input " + std::to_string(i) + " is left out; expected at least " + std::to_string(needs.inputs) + " inputs.",
                     "Check the exporter.", "onnx.input");
    for (size_t i = 0; i < needs.ranks.size(); i++)
        if (c.has(i) && c.in(i).rank() < needs.ranks[i])
            c.refuse("its input " + std::to_string(i) + ", '" + c.node.inputs[i] + "', has " + std::to_string(c.in(i).rank()) +
                         " axes; expected at least " + std::to_string(needs.ranks[i]) + ".",
                     "Check the exporter.", "onnx.rank");
}

}  // namespace tessera::onnx
