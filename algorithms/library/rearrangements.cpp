#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm transpose(const Numerics &n) {
    Builder f("transpose", n);
    Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    return f.output("y", tessera::transpose(x)).build();  // (N, M)
}

Algorithm concat(const Numerics &n) {
    Builder f("concat", n);
    Dim M = f.dim("M"), A = f.dim("A"), B = f.dim("B"), C = f.dim(derived_dim("C", extent("A") + extent("B")));
    Tile a = f.input("a", {M, A}), b = f.input("b", {M, B});
    const Expr column = variable("C"), first = column < extent("A");
    const auto part = [&](const Tile &of, const Dim &dim, const Expr &at, const Expr &inside) {
        return Tile(&f, read_where(of.at({{dim.name, at}}, {"M", "C"}).value(), inside), {"M", "C"});
    };
    const Tile left = part(a, A, column, first), right = part(b, B, column - extent("A"), !first);
    return f.output("y", select(Tile(&f, first, {"C"}), left, right)).build();  // (M, C)
}

std::vector<Option> slice_options() { return {{"step", "between elements that are taken", 1, 1, 1024}}; }

Algorithm slice(const Numerics &n, const Options &o) {
    Builder f("slice", n);
    Dim M = f.dim("M"), N = f.dim("N"), L = f.dim("L");
    f.input("x", {M, N});
    f.parameter("begin", DType::i32);
    const Expr at = cast(DType::index, parameter("begin", DType::i32)) + variable("L") * Expr(o.at("step"));
    const Expr value = load_or("x", n.storage, {variable("M"), at}, Expr(0) <= at && at < extent("N"), constant(n.storage, 0));
    return f.output("y", f.tile(cast(n.compute, value), {M, L})).build();
}

}  // namespace tessera::library
