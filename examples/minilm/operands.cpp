#include "operands.h"

#include <cstring>
#include <map>
#include <stdexcept>

#include "algorithms/quantization/quantized_values.h"

using namespace tessera;

struct Weight {
    std::vector<int64_t> extents;
    std::vector<float> values;  // row-major
};

static Weight weight_of(const Safetensors &weights, const std::string &name) {
    const SafeTensor &tensor = weights.tensor(name);
    if (tensor.type != "F32") throw std::runtime_error("the model's tensor " + name + " should be of type F32 and is " + tensor.type);
    Weight made{tensor.extents, std::vector<float>(tensor.bytes.size() / sizeof(float))};
    std::memcpy(made.values.data(), tensor.bytes.data(), tensor.bytes.size());
    return made;
}

// w[N, K] of PyTorch as w[K, N], at column `from` of a matrix of `columns` columns.
static void place(const Weight &w, float *to, int64_t from, int64_t columns) {
    const int64_t rows = w.extents.at(0), inner = w.extents.size() > 1 ? w.extents[1] : 1;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < inner; k++) to[k * columns + from + n] = w.values[static_cast<size_t>(n * inner + k)];
}

// In f32.
static Weight joined(const Safetensors &weights, const std::string &name, int64_t layers) {
    static const std::map<std::string, std::string> whole = {{"words", "word_embeddings.weight"},
                                                             {"places", "position_embeddings.weight"},
                                                             {"gamma", "LayerNorm.weight"},
                                                             {"beta", "LayerNorm.bias"}};
    // The operands of a layer: tensors of PyTorch whose rows come one after the other. A bias is a matrix of one row.
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
    if (const auto it = whole.find(name); it != whole.end()) return weight_of(weights, "embeddings." + it->second);
    if (name == "type") {  // of the first segment: there is no other
        const Weight types = weight_of(weights, "embeddings.token_type_embeddings.weight");
        return {{types.extents.at(1)}, {types.values.begin(), types.values.begin() + types.extents[1]}};
    }
    const auto it = of_layer.find(name);
    if (it == of_layer.end()) throw std::runtime_error("the model has nothing for the operand " + name);
    Weight stack;
    for (int64_t layer = 0; layer < layers; layer++) {
        int64_t at = 0;
        for (const std::string &part : it->second) {
            const Weight w = weight_of(weights, "encoder.layer." + std::to_string(layer) + "." + part);
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

// w[L, K, N] in 8 bits, a scale for each l and n.
static QuantizedValues quantized(const Weight &w) { return quantize(w.values, w.extents, {{1, 0, 1}}, code_format("int8"), ScaleRule()); }

// To the nearest of bf16, ties to even; there is no NaN among weights.
static uint16_t bf16_of(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Operand operand(const Safetensors &weights, const std::string &name, int32_t type, int64_t layers) {
    const std::string scales = "_scales";
    const bool is_scales = name.ends_with(scales);
    Weight w = joined(weights, is_scales ? name.substr(0, name.size() - scales.size()) : name, layers);
    if (is_scales) w = {{w.extents.at(0), w.extents.at(2)}, quantized(w).scales.scales};
    Operand made{w.extents, std::vector<char>(w.values.size() * tess_dtype_size(type))};
    if (type == TESS_F32) {
        std::memcpy(made.bytes.data(), w.values.data(), made.bytes.size());
    } else if (type == TESS_BF16) {
        for (size_t i = 0; i < w.values.size(); i++) {
            const uint16_t value = bf16_of(w.values[i]);
            std::memcpy(made.bytes.data() + 2 * i, &value, 2);
        }
    } else if (type == TESS_I8 && w.extents.size() == 3) {
        const QuantizedValues codes = quantized(w);
        std::memcpy(made.bytes.data(), codes.codes.data(), made.bytes.size());
    } else {
        throw std::runtime_error("the operand " + name + " is wanted in a type that weights are not rounded to");
    }
    return made;
}
