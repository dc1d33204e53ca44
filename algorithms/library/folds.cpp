#include "algorithms/build/ragged.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

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
    T.min = 1;  // what a row is clamped to
    T = f.dim(T);
    Tile x = f.input("x", {T, N});
    Tile offsets = f.input("offsets", {B1}, DType::i64);
    const RaggedRows segment = ragged_rows("R", "offsets", DType::i64, "B", "T");
    Dim R = f.dim(segment.dim);
    Tile rows = x.at({{"T", segment.row}}, {"B", "R", "N"});
    return f.output("y", sum(rows, R)).build();  // (B, N)
}

}  // namespace tessera::library
