// What follows a product or a convolution before its result is stored. Options say what there is of
//
//     y = activation(scale acc + b + r)
//
// so that one algorithm stands for all of them, and a residual is inside the activation, as in ResNet (He et al. 2016); without an
// activation it is the sum that ends a transformer's block.
#pragma once
#include "algorithms/build/builder.h"
#include "algorithms/build/option.h"

namespace tessera {

// scale: 0 none, 1 the parameter `scale`, 2 an input scale[channel]. bias: an input b[channel]. residual: an input r of acc's dims.
// activation: 0 none, 1 relu, 2 gelu, 3 gelu_tanh, 4 silu, 5 relu6 = min(relu(x), 6).
std::vector<Option> epilogue_options();

// acc (…, channel) with what the options ask for, whose inputs it declares; a missing option is 0.
Tile with_epilogue(const Tile &acc, const Dim &channel, const Options &options, Span caller = std::source_location::current());

}  // namespace tessera
