#include "algorithms/build/epilogue.h"

#include "algorithms/build/tile_functions.h"

namespace tessera {

std::vector<Option> epilogue_options() {
    return {{"scale", "factor of the products", 0, 0, 2, {"none", "parameter", "channel"}},
            yes_or_no("bias", "b is added"),
            yes_or_no("residual", "r, of the result's dims, is added"),
            {"activation", "what is applied last", 0, 0, 5, {"none", "relu", "gelu", "gelu_tanh", "silu", "relu6"}}};
}

static Tile activated(const Tile &x, int64_t activation) {
    switch (activation) {
    case 1: return relu(x);
    case 2: return gelu(x);
    case 3: return gelu_tanh(x);
    case 4: return silu(x);
    case 5: return select(x > 6, x.builder().scalar(x.dtype(), 6), relu(x));  // a NaN stays
    default: return x;
    }
}

Tile with_epilogue(const Tile &acc, const Dim &channel, const Options &options, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = acc.builder();
    const auto chosen = [&](const char *option) {
        const auto it = options.find(option);
        return it == options.end() ? 0 : it->second;
    };
    const auto wide = [&](const Tile &tile) { return tile.dtype() == acc.dtype() ? tile : cast(acc.dtype(), tile); };
    Tile y = acc;
    if (chosen("scale") == 1) y = y * wide(f.parameter("scale", f.numerics().compute, any_finite));
    if (chosen("scale") == 2) y = y * wide(f.input("scale", {channel}));
    if (chosen("bias")) y = y + wide(f.input("b", {channel}));
    if (chosen("residual")) {
        std::vector<Dim> dims;
        for (const std::string &d : acc.dims()) dims.push_back(f.dim_named(d));
        y = y + wide(f.input("r", dims));
    }
    return activated(y, chosen("activation"));
}

}  // namespace tessera
