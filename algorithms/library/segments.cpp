#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

// Segments of the rows of `flat` by `offsets`, of one dim "B".
Segments segments_of(Builder &f, const std::string &flat, const std::string &offsets) {
    Dim O = symbolic_dim("O");
    O.min = 1, O = f.dim(O);
    Dim B = f.dim(derived_dim("B", extent("O") - 1));
    return f.segments(f.input(offsets, {O}, DType::i64), B, f.dim(flat));
}

// x[T, N] by segments of its rows: (B, R, N).
Tile rows_of_x(Builder &f) {
    Dim T = f.dim("T"), N = f.dim("N");
    Tile x = f.input("x", {T, N});
    return x.rows(f.rows("R", segments_of(f, "T", "offsets")));  // (B, R, N)
}

// Elements of `tensor` at row ids of its first dim and at `others` of the rest, 0 where there is no such row, in the accumulate type:
// (B, R, others).
Tile rows_at(Builder &f, const Numerics &n, const std::string &tensor, const Dim &first, const Tile &ids, const std::vector<Dim> &others) {
    const Expr id = cast(DType::index, ids.value());
    std::vector<Expr> at = {id};
    std::vector<Dim> dims = {f.dim_named("B"), f.dim_named("R")};
    for (const Dim &d : others) at.push_back(variable(d.name)), dims.push_back(d);
    const Expr value = load_or(tensor, n.storage, at, Expr(0) <= id && id < extent(first.name), constant(n.storage, 0));
    return f.tile(cast(n.accumulate, value), dims);
}

}  // namespace

Algorithm grouped_matmul(const Numerics &n) {
    Builder f("grouped_matmul", n);
    Dim T = f.dim("T"), K = f.dim("K"), N = f.dim("N");
    Tile x = f.input("x", {T, K});
    Dim R = f.rows("R", segments_of(f, "T", "offsets"));
    Tile w = f.input("w", {f.dim_named("B"), K, N});
    return f.output("y", flat(dot(x.rows(R), w, {K}))).build();  // (T, N)
}

std::vector<Option> attention_segments_options() {
    return {yes_or_no("causal", "the last query of a segment sees all of its keys, the one before all but one, and so on")};
}

Algorithm attention_segments(const Numerics &n, const Options &o) {
    Builder f("attention_segments", n);
    Dim S = f.dim("S"), T = f.dim("T"), H = f.dim("H"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {S, H, D});
    Tile k = f.input("k", {T, H, D});
    Tile v = f.input("v", {T, H, E});
    Dim Q = f.rows("Q", segments_of(f, "S", "query_offsets")), R = f.rows("R", segments_of(f, "T", "key_offsets"));
    Tile root = rsqrt(Tile(&f, cast(n.compute, extent("D")), {}));
    Tile scaled = (q.rows(Q) * root).named("scaled");           // (B, Q, H, D)
    Tile scores = dot(scaled, k.rows(R), {D}).named("scores");  // (B, Q, H, R)
    Tile sees = f.tile(variable("R") - extent("R") <= variable("Q") - extent("Q"), {f.dim_named("B"), Q, R});
    return f.output("o", flat(online_softmax(scores, v.rows(R), R, E, o.at("causal") ? sees : Tile()))).build();  // (S, H, E)
}

Algorithm segmented_softmax(const Numerics &n) {
    Builder f("segmented_softmax", n);
    Tile rows = rows_of_x(f);                                             // (B, R, N)
    return f.output("y", flat(softmax(rows, f.dim_named("R")))).build();  // (T, N)
}

Algorithm segmented_mean(const Numerics &n) {
    Builder f("segmented_mean", n);
    Tile rows = rows_of_x(f);  // (B, R, N)
    Tile count = f.tile(cast(n.accumulate, max(extent("R"), Expr(1))), {f.dim_named("B")});
    return f.output("y", sum(rows, f.dim_named("R")) / count).build();  // (B, N)
}

Algorithm segmented_max(const Numerics &n) {
    Builder f("segmented_max", n);
    Tile rows = rows_of_x(f);                                   // (B, R, N)
    return f.output("y", max(rows, f.dim_named("R"))).build();  // (B, N)
}

Algorithm embedding_bag(const Numerics &n) {
    Builder f("embedding_bag", n);
    Dim T = f.dim("T"), V = f.dim("V"), D = f.dim("D");
    Tile ids = f.input("ids", {T}, DType::i32);
    f.input("table", {V, D});
    Dim R = f.rows("R", segments_of(f, "T", "offsets"));
    return f.output("y", sum(rows_at(f, n, "table", V, ids.rows(R), {D}), R)).build();  // (B, D)
}

// Both products of a sparse matrix of rows B: its elements and their columns, in the order of their rows.
static Algorithm sparse_product(const Numerics &n, const std::string &name, bool of_vector) {
    Builder f(name, n);
    Dim T = f.dim("T"), C = f.dim("C");
    std::vector<Dim> others, dims = {C};
    if (!of_vector) others = {f.dim("N")}, dims.push_back(others.front());
    Tile values = f.input("values", {T}), columns = f.input("columns", {T}, DType::i32);
    Dim R = f.rows("R", segments_of(f, "T", "offsets"));
    f.input("x", dims);
    return f.output("y", dot(values.rows(R), rows_at(f, n, "x", C, columns.rows(R), others), {R})).build();  // (B) or (B, N)
}

Algorithm spmv(const Numerics &n) { return sparse_product(n, "spmv", true); }
Algorithm spmm(const Numerics &n) { return sparse_product(n, "spmm", false); }

}  // namespace tessera::library
