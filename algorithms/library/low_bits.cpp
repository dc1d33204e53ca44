// Products with weights of 4 bits in groups along K. K is cut into G groups of P bytes of H = 2 codes each.
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

std::vector<Option> qint4_options() {
    return {{"group", "codes along K that share a scale, even", 32, 2, 1024}, {"half_scale", "1: scale is f16, 0: f32", 0, 0, 1}};
}

namespace {

// What both products take: x[M, K], codes[N, K / 2], of which a byte has the code of an even k in its low bits, and scale[N, G].
struct Quantised {
    Quantised(Builder &f, const Options &o) {
        const int64_t group = o.at("group");
        Dim columns = symbolic_dim("K");
        columns.multiple_of = group;
        M = f.dim("M"), N = f.dim("N");
        const Dim K = f.dim(columns), B = f.dim(derived_dim("B", extent("K") / Expr(2)));
        G = f.dim(derived_dim("G", extent("K") / Expr(group))), C = f.dim("C", group), P = f.dim("P", group / 2), H = f.dim("H", 2);
        x = f.input("x", {M, K}).at({{"K", variable("G") * Expr(group) + variable("C")}}, names_of({M, G, C}));
        Tile byte = f.input("codes", {N, B}, DType::u8).at({{"B", variable("G") * Expr(group / 2) + variable("P")}}, names_of({N, G, P}));
        code = (cast(DType::i32, byte) >> cast(DType::i32, f.index(H)) * 4) && f.scalar(DType::i32, 15);
        scale = f.input("scale", {N, G}, o.at("half_scale") ? DType::f16 : DType::f32);
    }
    // What a tile with the elements C of a group has for each code.
    Tile by_code(const Tile &t) const { return t.at({{"C", variable("P") * Expr(2) + variable("H")}}, names_of({M, G, P, H})); }
    // The sum over groups of term(M, G, N) scale[N, G], fma by fma.
    Tile over_groups(const Tile &term) const { return dot(term, cast(term.dtype(), scale), {G}); }

    Dim M, N, G, C, P, H;
    Tile x, code, scale;  // (M, G, C), (N, G, P, H) of 0 ..= 15 in i32, (N, G)
};

}  // namespace

Algorithm matmul_qint4(const Numerics &n, const Options &o) {
    Builder f("matmul_qint4", n);
    const Quantised q(f, o);
    Tile weights = cast(n.accumulate, q.code - 8).named("weights");        // (N, G, P, H)
    Tile inner = dot(q.by_code(q.x), weights, {q.P, q.H}).named("inner");  // (M, G, N)
    return f.output("y", q.over_groups(inner), n.accumulate).build();      // (M, N)
}

Algorithm matmul_dynamic_qint4(const Numerics &n, const Options &o) {
    Builder f("matmul_dynamic_qint4", n);
    const Quantised q(f, o);
    const Tile x = cast(DType::f32, q.x);
    Tile largest = f.fold(nan_max_monoid(DType::f32), {abs(x)}, {q.C.name})[0].named("largest");  // (M, G)
    Tile x_scale = (largest / 127).named("x_scale");
    Tile inverse = select(largest < 0x1p-120, f.scalar(DType::f32, 0), 127 / largest).named("inverse");
    Tile rows = q.by_code(cast(DType::i8, x * inverse, Rounding::nearest_even, true).named("rows"));                // (M, G, P, H)
    Tile total = f.fold(sum_monoid(DType::i32), {cast(DType::i32, rows)}, names_of({q.P, q.H}))[0].named("total");  // (M, G)
    Tile weights = cast(DType::u8, q.code).named("weights");                                                        // (N, G, P, H)
    Tile inner = dot(rows, weights, {q.P, q.H}).named("inner");                                                     // (M, G, N)
    Tile centred = x_scale * cast(DType::f32, inner - total * 8);
    return f.output("y", q.over_groups(centred), DType::f32).build();  // (M, N)
}

}  // namespace tessera::library
