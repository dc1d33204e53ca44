#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm ring_append(const Numerics &n) {
    Builder f("ring_append", n);
    Dim B = f.dim("B"), W = symbolic_dim("W"), T = f.dim("T"), D = f.dim("D");
    W.min = 1;
    W = f.dim(W);
    Tile cache = f.state("cache", {B, W, D});
    Tile x = f.input("x", {B, T, D});
    Tile position = f.parameter("position", DType::i64);
    Expr width = cast(DType::i64, extent("W"));
    Expr slot = (parameter("position", DType::i64) + cast(DType::i64, variable("T"))) % width;
    Tile at(&f, bounded(slot, 0, extent("W")), {"T"});
    f.update("append", cache, {f.index(B), at, f.index(D)}, x);
    return f.build();
}

}  // namespace tessera::library
