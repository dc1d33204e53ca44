#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

// Any seed, and as many steps as the counter has room for.
static RandomStream stream_of(Builder &f) { return {f.parameter("seed", DType::i64), f.parameter("step", DType::i64, 0, UINT32_MAX), 0}; }

Algorithm random_uniform(const Numerics &n) {
    Builder f("random_uniform", n);
    const Dim N = f.dim("N");
    return f.output("y", uniform(f, stream_of(f), {N}), DType::f32).build();  // a narrower type would round some to 1
}

Algorithm random_normal(const Numerics &n) {
    Builder f("random_normal", n);
    const Dim N = f.dim("N");
    return f.output("y", cast(n.compute, normal(f, stream_of(f), {N}))).build();
}

Algorithm dropout(const Numerics &n) {
    Builder f("dropout", n);
    const Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    const Tile p = f.parameter("p", DType::f32, 0, 1);
    return f.output("y", dropout(f, x, stream_of(f), p)).build();
}

}  // namespace tessera::library
