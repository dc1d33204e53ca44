#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm histogram(const Numerics &n) {
    Builder f("histogram", n);
    const Dim N = f.dim("N"), V = f.dim("V");
    const Tile ids = f.input("ids", {N}, DType::i32);
    const Tile one = f.tile(constant(DType::i32, 1), {N});
    return f.output("counts", f.scatter(sum_monoid(DType::i32), one, {ids}, {V})).build();
}

Algorithm embedding_gradient(const Numerics &n) {
    Builder f("embedding_gradient", n);
    const Dim T = f.dim("T"), V = f.dim("V"), D = f.dim("D");
    const Tile ids = f.input("ids", {T}, DType::i32), g = f.input("g", {T, D});
    const Tile wide = cast(n.accumulate, g);
    return f.output("grad", f.scatter(sum_monoid(n.accumulate), wide, {ids, f.index(D)}, {V, D})).build();
}

}  // namespace tessera::library
