#include "algorithms/build/convolution.h"
#include "algorithms/build/epilogue.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

struct Image {  // what all that looks through a window over two dims has
    Image(const std::string &name, const Numerics &n, const Options &o) : f(name, n), window(window_of(o)) {}
    Builder f;
    Window window;
    Dim N = f.dim("N"), H = f.dim("H"), W = f.dim("W"), C = f.dim("C");
};

// A dim of at least one tap: of no tap there would be more positions than pixels.
Dim taps(Builder &f, const std::string &name) {
    Dim d = symbolic_dim(name);
    d.min = 1;
    return f.dim(d);
}

}  // namespace

Algorithm conv1d(const Numerics &n, const Options &o) {
    Builder f("conv1d", n);
    Dim N = f.dim("N"), L = f.dim("L"), C = f.dim("C"), R = taps(f, "R"), O = f.dim("O");
    Tile x = f.input("x", {N, L, C});
    Tile w = f.input("w", {R, C, O});
    return f.output("y", tessera::conv1d(x, w, L, R, {C}, window_of(o))).build();  // (N, P, O)
}

Algorithm conv2d_nhwc(const Numerics &n, const Options &o) {
    Image i("conv2d_nhwc", n, o);
    Dim R = taps(i.f, "R"), S = taps(i.f, "S"), O = i.f.dim("O");
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile w = i.f.input("w", {R, S, i.C, O});
    return i.f.output("y", conv2d(x, w, i.H, i.W, R, S, {i.C}, i.window)).build();  // (N, P, Q, O)
}

Algorithm conv3d_ndhwc(const Numerics &n, const Options &o) {
    Builder f("conv3d_ndhwc", n);
    const Dim N = f.dim("N"), D = f.dim("D"), H = f.dim("H"), W = f.dim("W"), C = f.dim("C");
    const Dim T = taps(f, "T"), R = taps(f, "R"), S = taps(f, "S");
    Tile x = f.input("x", {N, D, H, W, C});
    Tile w = f.input("w", {T, R, S, C, f.dim("O")});
    const Window window = window_of(o);
    return f.output("y", conv(x, w, {{D, T, window, "U"}, {H, R, window, "P"}, {W, S, window, "Q"}}, {C})).build();  // (N, U, P, Q, O)
}

Algorithm conv2d_bias_relu_nhwc(const Numerics &n, const Options &o) {
    Image i("conv2d_bias_relu_nhwc", n, o);
    Dim R = taps(i.f, "R"), S = taps(i.f, "S"), O = i.f.dim("O");
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile w = i.f.input("w", {R, S, i.C, O});
    Tile b = i.f.input("b", {O});
    Tile acc = conv2d(x, w, i.H, i.W, R, S, {i.C}, i.window).named("acc");  // (N, P, Q, O)
    return i.f.output("y", relu(acc + b)).build();
}

Algorithm conv2d_nchw(const Numerics &n, const Options &o) {
    Image i("conv2d_nchw", n, o);
    Dim O = i.f.dim("O"), R = taps(i.f, "R"), S = taps(i.f, "S");
    Tile x = i.f.input("x", {i.N, i.C, i.H, i.W});
    Tile w = i.f.input("w", {O, i.C, R, S});
    Tile acc = conv2d(x, w, i.H, i.W, R, S, {i.C}, i.window).named("acc");  // (N, P, Q, O)
    return i.f.output("y", broadcast(acc, {i.N, O, *i.f.algorithm().find_dim("P"), *i.f.algorithm().find_dim("Q")})).build();
}

Algorithm grouped_conv2d_nhwc(const Numerics &n, const Options &o) {
    Image i("grouped_conv2d_nhwc", n, o);
    Dim G = i.f.dim("G"), R = taps(i.f, "R"), S = taps(i.f, "S"), O = i.f.dim("O");
    Tile x = i.f.input("x", {i.N, i.H, i.W, G, i.C});
    Tile w = i.f.input("w", {R, S, G, i.C, O});
    return i.f.output("y", conv2d(x, w, i.H, i.W, R, S, {i.C}, i.window)).build();  // (N, P, Q, G, O)
}

Algorithm depthwise_conv2d_nhwc(const Numerics &n, const Options &o) {
    Image i("depthwise_conv2d_nhwc", n, o);
    Dim R = taps(i.f, "R"), S = taps(i.f, "S");
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile w = i.f.input("w", {R, S, i.C});
    return i.f.output("y", conv2d(x, w, i.H, i.W, R, S, {}, i.window)).build();  // (N, P, Q, C)
}

std::vector<Option> fused_window_options() {
    std::vector<Option> all = window_options();
    for (const Option &o : epilogue_options()) all.push_back(o);
    return all;
}

Algorithm conv2d_fused_nhwc(const Numerics &n, const Options &o) {
    Image i("conv2d_fused_nhwc", n, o);
    Dim R = taps(i.f, "R"), S = taps(i.f, "S"), O = i.f.dim("O");
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile w = i.f.input("w", {R, S, i.C, O});
    Tile acc = conv2d(x, w, i.H, i.W, R, S, {i.C}, i.window).named("acc");  // (N, P, Q, O)
    return i.f.output("y", with_epilogue(acc, O, o)).build();
}

Algorithm depthwise_conv2d_fused_nhwc(const Numerics &n, const Options &o) {
    Image i("depthwise_conv2d_fused_nhwc", n, o);
    Dim R = taps(i.f, "R"), S = taps(i.f, "S");
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile w = i.f.input("w", {R, S, i.C});
    Tile acc = conv2d(x, w, i.H, i.W, R, S, {}, i.window).named("acc");  // (N, P, Q, C)
    return i.f.output("y", with_epilogue(acc, i.C, o)).build();
}

std::vector<Option> transposed_conv_options() {
    std::vector<Option> all = {{"stride", "step between what neighbours add to", 1, 1, 64},
                               {"padding", "positions left out at each end", 0, 0, 64},
                               {"dilation", "step between taps", 1, 1, 64},
                               {"end", "positions added at the end", 0, 0, 63}};
    for (const Option &o : epilogue_options()) all.push_back(o);
    return all;
}

Algorithm transposed_conv2d_nhwc(const Numerics &n, const Options &o) {
    Builder f("transposed_conv2d_nhwc", n);
    Dim N = f.dim("N"), H = taps(f, "H"), W = taps(f, "W"), C = f.dim("C"), R = taps(f, "R"), S = taps(f, "S"), O = f.dim("O");
    Tile x = f.input("x", {N, H, W, C});
    Tile w = f.input("w", {R, S, C, O});
    Tile acc = transposed_conv2d(x, w, H, W, R, S, {C}, window_of(o), o.at("end")).named("acc");  // (N, P, Q, O)
    return f.output("y", with_epilogue(acc, O, o)).build();
}

std::vector<Option> pool_options() {
    std::vector<Option> all = window_options();
    all.push_back({"size", "taps of the window along each dim", 2, 1, 64});
    return all;
}

Algorithm max_pool2d_nhwc(const Numerics &n, const Options &o) {
    Image i("max_pool2d_nhwc", n, o);
    Dim R = i.f.dim("R", o.at("size")), S = i.f.dim("S", o.at("size"));
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    return i.f.output("y", max_pool2d(x, i.H, i.W, R, S, i.window)).build();  // (N, P, Q, C)
}

Algorithm average_pool2d_nhwc(const Numerics &n, const Options &o) {
    Image i("average_pool2d_nhwc", n, o);
    Dim R = i.f.dim("R", o.at("size")), S = i.f.dim("S", o.at("size"));
    Tile x = i.f.input("x", {i.N, i.H, i.W, i.C});
    Tile mean = average_pool2d(x, i.H, i.W, R, S, i.window);
    return i.f.output("y", mean).build();  // (N, P, Q, C)
}

Algorithm global_average_pool_nhwc(const Numerics &n) {
    Builder f("global_average_pool_nhwc", n);
    Dim N = f.dim("N"), H = f.dim("H"), W = f.dim("W"), C = f.dim("C");
    Tile x = f.input("x", {N, H, W, C});
    Tile count(&f, cast(n.accumulate, extent("H") * extent("W")), {});
    Tile total = f.fold(sum_monoid(n.accumulate), {cast(n.accumulate, x)}, {"H", "W"})[0].named("sum");  // (N, C)
    return f.output("y", total / count).build();
}

}  // namespace tessera::library
