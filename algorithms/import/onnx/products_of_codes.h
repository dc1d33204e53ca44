// Products whose operands are codes made numbers, as quantizers write them ("QDQ"): DequantizeLinear before both, QuantizeLinear behind.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "algorithms/import/onnx/model.h"

namespace tessera::onnx {

// The domain of products that take codes: MatMul, Gemm and Conv with the attributes that ONNX's have. Inputs are the codes of x, their
// scale and zero point ("": 0), those of the weights, and the bias ("": none). The result is of f32: the sum of products of codes, times
// both scales.
inline constexpr const char *codes_domain = "tessera.codes";

// The graph with a product of codes in the place of each MatMul, Gemm and Conv that multiplies what DequantizeLinear makes of codes of 8
// bits by what it makes of weights of 8 bits, with one scale and zero point for all of x, and one for all weights or one for each output.
// Sums of products of codes are exact, so results are at least as near to those of exact numbers. Of weights whose sums might not fit 32
// bits the graph keeps the float product. DequantizeLinear nodes that nothing else reads, nor `wanted` names, are left out. Nothing where
// there is no such product.
std::optional<Graph> with_products_of_codes(const Model &model, const std::set<std::string> &wanted);

}  // namespace tessera::onnx
