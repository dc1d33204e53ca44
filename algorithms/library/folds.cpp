#include "algorithms/library/library.h"
#include "algorithms/tile_functions.h"

namespace tessera::library {

Algorithm column_sum(const Numerics &n) {
    Builder f("column_sum", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", sum(x, M)).build();  // (N)
}

Algorithm cumulative_sum(const Numerics &n) {
    Builder f("cumulative_sum", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", f.scan(sum_monoid(n.compute), x, N)).build();  // (M, N)
}

Algorithm reverse_cumulative_sum(const Numerics &n) {
    Builder f("reverse_cumulative_sum", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", f.scan(sum_monoid(n.compute), x, N, true, ScanDirection::backward)).build();  // (M, N)
}

Algorithm segmented_cumulative_sum(const Numerics &n) {
    Builder f("segmented_cumulative_sum", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile segment = f.input("segment", {N}, DType::i32);
    return f.output("y", f.scan(sum_monoid(n.compute), x, N, true, ScanDirection::forward, segment)).build();  // (M, N)
}

Algorithm segmented_sum(const Numerics &n) {
    Builder f("segmented_sum", n);
    Dim B = f.dim("B"), B1 = f.dim(derived_dim("B1", extent("B") + 1)), T = symbolic_dim("T"), N = f.dim("N");
    T.min = 1;  // an offset that lies must lead to some row
    T = f.dim(T);
    Tile x = f.input("x", {T, N});
    Tile offsets = f.input("offsets", {B1}, DType::i64);
    Dim R = f.dim(ragged_dim("R", "offsets", DType::i64, "B"));
    Expr first = cast(DType::index, load("offsets", DType::i64, {variable("B")}));
    Expr row = bounded(first + variable("R"), 0, extent("T"));
    Tile rows = x.at({{"T", row}}, {"B", "R", "N"});
    return f.output("y", sum(rows, R)).build();  // (B, N)
}

}  // namespace tessera::library
