#include "operands.h"

#include <map>
#include <stdexcept>

// w[N, K] of PyTorch as w[K, N], at column `from` of a matrix of `columns` columns.
static void place(const Weight &w, float *to, int64_t from, int64_t columns) {
    const int64_t rows = w.extents.at(0), inner = w.extents.size() > 1 ? w.extents[1] : 1;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < inner; k++) to[k * columns + from + n] = w.values[static_cast<size_t>(n * inner + k)];
}

Weight operand(const Weights &weights, const std::string &name, int64_t layers) {
    static const std::map<std::string, std::string> whole = {{"words", "word_embeddings.weight"},
                                                             {"places", "position_embeddings.weight"},
                                                             {"gamma", "LayerNorm.weight"},
                                                             {"beta", "LayerNorm.bias"}};
    // Of a layer: tensors of PyTorch whose rows come one after the other. A bias is a matrix of one row.
    static const std::map<std::string, std::vector<std::string>> of_layer = {
        {"w_qkv", {"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"}},
        {"b_qkv", {"attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"}},
        {"w_out", {"attention.output.dense.weight"}},
        {"b_out", {"attention.output.dense.bias"}},
        {"gamma_attention", {"attention.output.LayerNorm.weight"}},
        {"beta_attention", {"attention.output.LayerNorm.bias"}},
        {"w_up", {"intermediate.dense.weight"}},
        {"b_up", {"intermediate.dense.bias"}},
        {"w_down", {"output.dense.weight"}},
        {"b_down", {"output.dense.bias"}},
        {"gamma_out", {"output.LayerNorm.weight"}},
        {"beta_out", {"output.LayerNorm.bias"}},
    };
    if (const auto it = whole.find(name); it != whole.end()) return weights.tensor("embeddings." + it->second);
    if (name == "type") {  // of the first segment: there is no other
        const Weight types = weights.tensor("embeddings.token_type_embeddings.weight");
        return {{types.extents.at(1)}, {types.values.begin(), types.values.begin() + types.extents[1]}};
    }
    const auto it = of_layer.find(name);
    if (it == of_layer.end()) throw std::runtime_error("the model has nothing for the operand " + name);
    Weight stack;
    for (int64_t layer = 0; layer < layers; layer++) {
        int64_t at = 0;
        for (const std::string &part : it->second) {
            const Weight w = weights.tensor("encoder.layer." + std::to_string(layer) + "." + part);
            const int64_t columns = w.extents.at(0) * static_cast<int64_t>(it->second.size());
            if (stack.extents.empty()) {
                stack.extents = {layers};
                if (w.extents.size() > 1) stack.extents.push_back(w.extents[1]);
                stack.extents.push_back(columns);
            }
            if (at == 0) stack.values.resize(stack.values.size() + w.values.size() * it->second.size());
            float *matrix = stack.values.data() + stack.values.size() - w.values.size() * it->second.size();
            place(w, matrix, at, columns);
            at += w.extents[0];
        }
    }
    return stack;
}
