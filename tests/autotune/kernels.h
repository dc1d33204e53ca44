// Every algorithm of the standard library with a small shape, for the laws of the autotuner.
#pragma once
#include <string>
#include <vector>

#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "bench/measure/inputs.h"

namespace tessera::test {

struct SmallKernel {
    std::string name;
    Algorithm algorithm;
    Extents extents;
};

inline std::vector<SmallKernel> small_kernels() {
    namespace l = library;
    const Options window = complete_options("window", window_options(), {}), pool = complete_options("pool", l::pool_options(), {});
    Options same = window;
    same["pad"] = 1;
    const Numerics f32 = numerics_named("f32"), bf16 = numerics_named("bf16");
    const Extents gemm = {{"M", 37}, {"N", 70}, {"K", 53}}, rows = {{"M", 19}, {"N", 75}},
                  image = {{"N", 1}, {"H", 11}, {"W", 13}, {"C", 18}, {"R", 3}, {"S", 3}};
    auto with = [](Extents e, const Extents &more) {
        e.insert(more.begin(), more.end());
        return e;
    };
    return {{"matmul", l::matmul(f32), gemm},
            {"matmul_wide", l::matmul_wide(bf16), {{"M", 37}, {"N", 70}, {"K", 54}}},
            {"matmul_u8s8", l::matmul_u8s8(f32), gemm},
            {"linear_gelu", l::linear_gelu(f32), gemm},
            {"gemv", l::gemv(f32), {{"M", 45}, {"K", 201}}},
            {"softmax", l::softmax(f32), rows},
            {"layernorm", l::layernorm(f32), rows},
            {"residual_layernorm", l::residual_layernorm(f32), rows},
            {"rmsnorm", l::rmsnorm(f32), rows},
            {"attention", l::attention(f32), {{"H", 2}, {"S", 41}, {"T", 47}, {"D", 24}, {"E", 33}}},
            {"attention_causal", l::attention_causal(f32), {{"H", 2}, {"S", 41}, {"T", 41}, {"D", 24}, {"E", 33}}},
            {"conv2d_nhwc", l::conv2d_nhwc(f32, window), with(image, {{"O", 20}})},
            {"depthwise_conv2d_nhwc", l::depthwise_conv2d_nhwc(f32, window), image},
            {"max_pool2d_nhwc", l::max_pool2d_nhwc(f32, pool), {{"N", 2}, {"H", 9}, {"W", 11}, {"C", 18}}},
            {"column_sum", l::column_sum(f32), rows},
            {"cumulative_sum", l::cumulative_sum(f32), {{"M", 19}, {"N", 150}}},
            {"feed_forward", l::feed_forward(f32), {{"M", 19}, {"D", 33}, {"F", 40}}},
            {"encoder", l::encoder(f32, {{"heads", 2}}), {{"L", 2}, {"B", 2}, {"T", 5}, {"D", 18}, {"F", 20}}}};
}

}  // namespace tessera::test
