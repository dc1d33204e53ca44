// Operators of the domain com.microsoft, which onnxruntime's optimizer and quantizer write: most are several of ONNX's own, by whose
// handlers they are made.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/made_by.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/products.h"

namespace tessera::onnx {

namespace {

// x and a skip, and perhaps a bias, normalized; the fourth output is their sum.
Values skip_normalization(Context &c, const char *op, size_t gammas) {
    for (size_t i = 1; i <= 2 && i < c.node.outputs.size(); i++)
        if (!c.node.outputs[i].empty()) c.refuse("its moments are wanted.", "Export it for inference.");
    Value sum = sum_of(c, c.in(0), c.in(1));
    const size_t bias = 2 + gammas;
    if (c.has(bias)) sum = sum_of(c, sum, c.in(bias));
    sum = c.settled(sum);
    Values inputs = {sum, c.in(2)};
    if (gammas == 2 && c.has(3)) inputs.push_back(c.in(3));
    const Value y = made_by(c, op, inputs, {attribute("axis", int64_t(-1)), attribute("epsilon", c.node.real("epsilon", 1e-12))})[0];
    return {y, Value(), Value(), sum};
}

// Its outputs with what is not wanted left out.
Values skip_layer_normalization(Context &c) {
    Values all = skip_normalization(c, "LayerNormalization", 2);
    if (c.node.outputs.size() < 4) all.resize(1);
    return all;
}

Values skip_rms_normalization(Context &c) {
    Values all = skip_normalization(c, "RMSNormalization", 1);
    if (c.node.outputs.size() < 4) all.resize(1);
    return all;
}

Values rms_normalization_alone(Context &c) {
    return made_by(c, "RMSNormalization", {c.in(0), c.in(1)},
                   {attribute("axis", c.node.integer("axis", -1)), attribute("epsilon", c.node.real("epsilon", 1e-5))});
}

// The value with its last two axes exchanged.
Value exchanged(Context &c, const Value &x) {
    if (x.rank() < 2) return x;
    if (x.is_constant() && x.rank() == 2) c.tile_in_order(x, {1, 0});
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return c.result(Context::in_order(t, axes), axes, x.dtype);
}

Values fused_matmul(Context &c) {
    if (c.node.integer("transBatchA", 0) || c.node.integer("transBatchB", 0))
        c.refuse("it transposes batches.", "Export the model without onnxruntime's optimizer.");
    const Value a = c.node.integer("transA", 0) ? exchanged(c, c.in(0)) : c.in(0);
    const Value b = c.node.integer("transB", 0) ? exchanged(c, c.in(1)) : c.in(1);
    const Value y = product(c, a, b, a.dtype);
    const double alpha = c.node.real("alpha", 1);
    if (alpha == 1) return {y};
    return c.element_wise({y}, y.dtype, [&](const std::vector<Tile> &t) { return t[0] * alpha; });
}

// What a fused activation makes of y.
Value activated(Context &c, const Value &y, const std::vector<double> &numbers) {
    const std::string name = c.node.text("activation", "");
    auto number = [&](size_t i, double otherwise) { return i < numbers.size() ? numbers[i] : otherwise; };
    if (name.empty()) return y;
    if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "HardSwish") return made_by(c, name, {y})[0];
    if (name == "LeakyRelu") return made_by(c, name, {y}, {attribute("alpha", number(0, 0.01))})[0];
    if (name == "HardSigmoid") return made_by(c, name, {y}, {attribute("alpha", number(0, 0.2)), attribute("beta", number(1, 0.5))})[0];
    if (name == "Clip") {
        const double low = number(0, -INFINITY), high = number(1, INFINITY);
        return c.element_wise({y}, y.dtype, [&](const std::vector<Tile> &t) { return min(max(t[0], low), high); })[0];
    }
    c.refuse("its activation is '" + name + "'; expected Relu, Sigmoid, Tanh, HardSwish, LeakyRelu, HardSigmoid or Clip.",
             "Export the model without onnxruntime's optimizer.");
}

Values fused_conv(Context &c) {
    Value y = convolved(c, c.in(0), c.in(1), c.in(0).dtype);
    if (c.has(2)) y = sum_of(c, y, c.by_channel(c.in(2), y.axes.size()));
    if (c.has(3)) y = sum_of(c, y, c.in(3));
    return {activated(c, y, c.node.reals("activation_params"))};
}

Values fused_gemm(Context &c) {
    std::vector<Attribute> attributes;
    for (const char *name : {"transA", "transB"}) attributes.push_back(attribute(name, c.node.integer(name, 0)));
    for (const char *name : {"alpha", "beta"}) attributes.push_back(attribute(name, c.node.real(name, 1)));
    Values inputs = {c.in(0), c.in(1)};
    if (c.has(2)) inputs.push_back(c.in(2));
    std::vector<double> numbers;
    for (const char *name : {"activation_alpha", "activation_beta"})
        if (c.node.find(name)) numbers.push_back(c.node.real(name, 0));
    return {activated(c, made_by(c, "Gemm", inputs, attributes)[0], numbers)};
}

// An integer product as numbers: times both scales, with a bias.
Values scaled_product(Context &c, const Value &a, const Value &a_scale, const Value &a_zero, const Value &b, const Value &b_scale,
                      const Value &b_zero, const Value &bias) {
    const Value sums = made_by(c, "MatMulInteger", {a, b, a_zero, b_zero})[0];
    const Value scale = made_by(c, "Mul", {a_scale, b_scale})[0];
    const Value y = c.element_wise({sums, scale}, DType::f32, [](const std::vector<Tile> &t) { return cast(DType::f32, t[0]) * t[1]; })[0];
    const bool has_bias = bias.is_constant() || !bias.name.empty();
    return {has_bias ? sum_of(c, y, bias) : y};
}

Values matmul_integer_to_float(Context &c) {
    return scaled_product(c, c.in(0), c.in(2), given(c, 4), c.in(1), c.in(3), given(c, 5), given(c, 6));
}

Values dynamic_quantize_matmul(Context &c) {
    Values q = made_by(c, "DynamicQuantizeLinear", {c.in(0)}, {}, 3);
    for (size_t i = 0; i < q.size(); i++) q[i].name = "quantized_" + std::to_string(i);
    return scaled_product(c, q[0], q[1], q[2], c.in(1), c.in(2), given(c, 3), given(c, 4));
}

// Numbers of the codes at input i, whose scale and zero point follow.
Value numbers_at(Context &c, size_t i) { return made_by(c, "DequantizeLinear", {c.in(i), c.in(i + 1), given(c, i + 2)})[0]; }

Values codes_of_result(Context &c, const Value &y, size_t scale) {
    return made_by(c, "QuantizeLinear", {y, c.in(scale), given(c, scale + 1)});
}

template <const char *Op>
Values qlinear_of_two(Context &c) {
    return codes_of_result(c, made_by(c, Op, {numbers_at(c, 0), numbers_at(c, 3)})[0], 6);
}
constexpr char add_name[] = "Add", mul_name[] = "Mul";

Values qlinear_sigmoid(Context &c) { return codes_of_result(c, made_by(c, "Sigmoid", {numbers_at(c, 0)})[0], 3); }

Values qlinear_leaky_relu(Context &c) {
    return codes_of_result(c, made_by(c, "LeakyRelu", {numbers_at(c, 0)}, {attribute("alpha", c.node.real("alpha", 0.01))})[0], 3);
}

// (D, rows, columns) of codes as (D, columns, rows) of numbers.
Value numbers_transposed(Context &c, size_t codes, size_t scales, size_t zeros) {
    const Value &w = c.in(codes);
    if (!w.is_constant() || !c.in(scales).is_constant() || !c.in(zeros).is_constant() || w.rank() != 3)
        c.refuse("its weights, scales or zero points are no constants.", "Give them as constants (--bind).");
    const std::vector<double> of = w.constant->values(), s = c.in(scales).constant->values(), z = c.in(zeros).constant->values();
    const std::vector<int64_t> &n = w.constant->extents;
    const auto D = static_cast<size_t>(n[0]), rows = static_cast<size_t>(n[1]), columns = static_cast<size_t>(n[2]);
    auto one = [&](const std::vector<double> &all, size_t d, size_t column) {
        return all.size() == D * columns ? all[d * columns + column] : all.size() == D ? all[d] : all.at(0);
    };
    std::vector<double> made(of.size());
    for (size_t d = 0; d < D; d++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                made[(d * columns + j) * rows + i] = (of[(d * rows + i) * columns + j] - one(z, d, j)) * one(s, d, j);
    Value value = c.constant(Array(DType::f32, {n[0], n[2], n[1]}, made));
    value.name = w.name + "_numbers";
    return value;
}

// With the numbers that its codes stand for. onnxruntime also rounds what they are multiplied with to codes; that is left out.
Values dynamic_quantize_lstm(Context &c) {
    Values inputs = {c.in(0), numbers_transposed(c, 1, 8, 9), numbers_transposed(c, 2, 10, 11)};
    for (size_t i = 3; i <= 7; i++) inputs.push_back(given(c, i));
    Node node = c.node;
    node.op = "LSTM", node.domain.clear();
    node.inputs.resize(8);
    Context own(c.space, node, inputs, std::max<int64_t>(c.model.opset(""), 14), c.model, c.runner);
    return find_operator("", "LSTM")->handler(own);
}

}  // namespace

std::vector<Operator> fused_operators() {
    constexpr const char *domain = "com.microsoft";
    return {
        {"SkipLayerNormalization", skip_layer_normalization, domain},
        {"SkipSimplifiedLayerNormalization", skip_rms_normalization, domain},
        {"SimplifiedLayerNormalization", rms_normalization_alone},
        {"FusedMatMul", fused_matmul, domain},
        {"FusedConv", fused_conv, domain},
        {"FusedGemm", fused_gemm, domain},
        {"MatMulIntegerToFloat", matmul_integer_to_float, domain},
        {"DynamicQuantizeMatMul", dynamic_quantize_matmul, domain},
        {"DynamicQuantizeLSTM", dynamic_quantize_lstm, domain},
        {"QLinearAdd", qlinear_of_two<add_name>, domain},
        {"QLinearMul", qlinear_of_two<mul_name>, domain},
        {"QLinearSigmoid", qlinear_sigmoid, domain},
        {"QLinearLeakyRelu", qlinear_leaky_relu, domain},
    };
}

}  // namespace tessera::onnx
