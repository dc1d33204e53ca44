// Products with weights of 4 and 8 bits, most in groups along K: K is cut into G groups of C codes, or of P pairs of H = 2 codes each.
#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::library {

std::vector<Option> dynamic_qint4_options() {
    return {{"group", "codes along K that share a scale, even", 32, 2, 1024}, yes_or_no("half_scale", "scale is f16 in place of f32")};
}

std::vector<Option> qint4_options() {
    std::vector<Option> all = dynamic_qint4_options();
    all.push_back(
        yes_or_no("zeros", "zeros[N, G] is an input, a zero point for each group, as quantize --zero-points writes it; otherwise it is 8"));
    return all;
}

namespace {

// What the products take: x[M, K], codes for each N and K, and scale[N, G] of groups along K.
struct Quantised {
    Quantised(Builder &f, int64_t group, DType scale_type) : f(f), group(group), scale_type(scale_type) {
        columns = symbolic_dim("K");
        columns.multiple_of = group;
        M = f.dim("M"), N = f.dim("N"), columns = f.dim(columns);
        G = f.dim(derived_dim("G", extent("K") / Expr(group))), C = f.dim("C", group);
        x = by_group(f.input("x", {M, columns}), M);
    }
    // (rows, G, C) of (rows, K)
    Tile by_group(const Tile &t, const Dim &rows) const {
        return t.at({{"K", variable("G") * Expr(group) + variable("C")}}, names_of({rows, G, C}));
    }
    Tile scales() const { return cast(f.numerics().accumulate, f.input("scale", {N, G}, scale_type)); }  // (N, G)
    // The sum over groups of term(M, G, N) scale(N, G), fma by fma.
    Tile over_groups(const Tile &term, const Tile &scale) const { return dot(term, scale, {G}); }

    Builder &f;
    int64_t group;
    DType scale_type;
    Dim columns, M, N, G, C;
    Tile x;  // (M, G, C)
};

// Codes of 4 bits, which are u4 or f4e2m1fn.
struct Nibbles : Quantised {
    Nibbles(Builder &f, int64_t group, DType scales, DType codes) : Quantised(f, checked(group), scales) {
        P = f.dim("P", group / 2), H = f.dim("H", 2);
        const Expr k = variable("G") * Expr(group) + variable("P") * Expr(2) + variable("H");
        code = as_stored(f.input("codes", {N, columns}, codes)).at({{"K", k}}, names_of({N, G, P, H}));
        if (codes == DType::u4) code = cast(DType::i32, code);
    }
    static int64_t checked(int64_t group) {
        if (group % 2)
            throw UserError("option.group", "option 'group': expected an even number, since a byte has two codes of one group, got " +
                                                std::to_string(group) + ".");
        return group;
    }
    // What a tile with the elements C of a group has for each code.
    Tile by_code(const Tile &t) const { return t.at({{"C", variable("P") * Expr(2) + variable("H")}}, names_of({M, G, P, H})); }

    Dim P, H;
    Tile code;  // (N, G, P, H), of f4e2m1fn, or 0 ..= 15 in i32
};

DType integer_scale(const Options &o) { return o.at("half_scale") ? DType::f16 : DType::f32; }

// x as integers of 8 bits in steps, each of 1 / 127 of the largest magnitude along `along`, and 2^-126 at least. With an infinity or NaN
// along it the step is none, and so is what it is multiplied with, as all integers are 0 then.
struct EightBits {
    EightBits(const Tile &x, const Dim &along) {
        Builder &f = x.builder();
        const DType real = f.numerics().accumulate;
        const Tile largest = f.fold(max_monoid(real), {abs(x)}, {along.name})[0].named("largest");
        step = max(largest / 127, 0x1p-126).named("x_scale");
        inverse = min(127 / largest, 0x1p126).named("inverse");
        rows = cast(DType::i8, x * inverse, Rounding::nearest_even, true).named("rows");
    }
    Tile step, inverse, rows;
};

}  // namespace

Algorithm matmul_qint4(const Numerics &n, const Options &o) {
    Builder f("matmul_qint4", n);
    const Nibbles q(f, o.at("group"), integer_scale(o), DType::u4);
    const Tile scale = q.scales();  // (N, G)
    const Tile zero = o.at("zeros") ? cast(DType::i32, as_stored(f.input("zeros", {q.N, q.G}, DType::u4))) : f.scalar(DType::i32, 8);
    Tile weights = cast(n.accumulate, q.code - zero).named("weights");        // (N, G, P, H)
    Tile inner = dot(q.by_code(q.x), weights, {q.P, q.H}).named("inner");     // (M, G, N)
    return f.output("y", q.over_groups(inner, scale), n.accumulate).build();  // (M, N)
}

Algorithm matmul_dynamic_qint4(const Numerics &n, const Options &o) {
    Builder f("matmul_dynamic_qint4", n);
    const Nibbles q(f, o.at("group"), integer_scale(o), DType::u4);
    const DType real = n.accumulate;
    const EightBits x(cast(real, q.x), q.C);                                                                        // steps: (M, G)
    Tile rows = q.by_code(x.rows);                                                                                  // (M, G, P, H)
    Tile total = f.fold(sum_monoid(DType::i32), {cast(DType::i32, rows)}, names_of({q.P, q.H}))[0].named("total");  // (M, G)
    Tile weights = cast(DType::u8, q.code).named("weights");                                                        // (N, G, P, H)
    Tile inner = dot(rows, weights, {q.P, q.H}).named("inner");                                                     // (M, G, N)
    Tile scaled = cast(real, inner - total * 8) * q.scales();                // (M, G, N)
    return f.output("y", q.over_groups(scaled, x.step), real).build();  // (M, N); steps come last: integers times large ones overflow
}

namespace {

// (M, N). Dot products take u8 by i8: weights become w + 128, and 128 times the sum of a row is subtracted, which needs no pass over w.
Tile dynamic_product(Builder &f, const Dim &M, const Dim &N, const Dim &K) {
    const DType real = f.numerics().accumulate;
    const EightBits x(cast(real, f.input("x", {M, K})), K);  // steps: (M)
    const Tile w = f.input("w", {K, N}, DType::i8);
    const Tile scale = cast(real, f.input("w_scales", {N}, DType::f32));
    const Tile weights = cast(DType::u8, cast(DType::i32, w) + 128).named("weights");  // (K, N)
    const Tile total = sum(cast(DType::i32, x.rows), K).named("total");                // (M)
    const Tile acc = dot(x.rows, weights).named("acc");                                // (M, N)
    return cast(real, acc - total * 128) * scale * x.step;                             // steps come last, as above
}

}  // namespace

Algorithm matmul_dynamic_qint8(const Numerics &n) {
    Builder f("matmul_dynamic_qint8", n);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    return f.output("y", dynamic_product(f, M, N, K)).build();
}

Algorithm linear_dynamic_qint8(const Numerics &n) {
    Builder f("linear_dynamic_qint8", n);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile product = dynamic_product(f, M, N, K);  // (M, N)
    return f.output("y", product + f.input("b", {N})).build();
}

std::vector<Option> mxfp8_options() { return {yes_or_no("e5m2", "codes are f8e5m2 in place of f8e4m3fn")}; }

Algorithm matmul_mxfp8(const Numerics &n, const Options &o) {
    Builder f("matmul_mxfp8", n);
    const Quantised q(f, 32, DType::f8e8m0fnu);
    const Tile codes = q.by_group(f.input("codes", {q.N, q.columns}, o.at("e5m2") ? DType::f8e5m2 : DType::f8e4m3fn), q.N);
    Tile weights = cast(n.accumulate, codes).named("weights");                                     // (N, G, C)
    Tile inner = dot(q.x, weights, {q.C}).named("inner");                                          // (M, G, N)
    return f.output("y", q.over_groups(inner, q.scales().named("scales")), n.accumulate).build();  // (M, N)
}

namespace {

Algorithm e2m1_product(Builder &f, const Nibbles &q, const Tile &scale) {
    Tile weights = cast(f.numerics().accumulate, q.code).named("weights");                               // (N, G, P, H)
    Tile inner = dot(q.by_code(q.x), weights, {q.P, q.H}).named("inner");                                // (M, G, N)
    return f.output("y", q.over_groups(inner, scale.named("scales")), f.numerics().accumulate).build();  // (M, N)
}

}  // namespace

Algorithm matmul_mxfp4(const Numerics &n) {
    Builder f("matmul_mxfp4", n);
    const Nibbles q(f, 32, DType::f8e8m0fnu, DType::f4e2m1fn);
    return e2m1_product(f, q, q.scales());
}

Algorithm matmul_nvfp4(const Numerics &n) {
    Builder f("matmul_nvfp4", n);
    const Nibbles q(f, 16, DType::f8e4m3fn, DType::f4e2m1fn);
    const Tile all = f.parameter("tensor_scale", n.accumulate, 0);
    return e2m1_product(f, q, q.scales() * all);
}

}  // namespace tessera::library
