#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm embedding(const Numerics &n) {
    Builder f("embedding", n);
    Dim T = f.dim("T"), V = f.dim("V"), D = f.dim("D");
    Tile id = f.input("ids", {T}, DType::i32);
    f.input("table", {V, D});
    const Expr row = cast(DType::index, id.value());
    const Expr value = load_or("table", n.storage, {row, variable("D")}, Expr(0) <= row && row < extent("V"), constant(n.storage, 0));
    return f.output("y", f.tile(cast(n.compute, value), {T, D})).build();
}

std::vector<Option> rotary_options() {
    return {yes_or_no("interleaved", "x is [T, H, C, 2], pairs, in place of [T, H, 2, C], halves"),
            yes_or_no("tables", "cos[T, C] and sin[T, C] are inputs"),
            {"base", "of the frequencies base^(-c / C)", 10000, 1}};
}

Algorithm rotary(const Numerics &n, const Options &o) {
    Builder f("rotary", n);
    Dim T = f.dim("T"), H = f.dim("H"), C = f.dim("C"), R = f.dim("R", 2);
    const std::vector<Dim> dims = o.at("interleaved") ? std::vector{T, H, C, R} : std::vector{T, H, R, C};
    Tile x = f.input("x", dims), cosine, sine;
    if (o.at("tables")) {
        cosine = f.input("cos", {T, C}), sine = f.input("sin", {T, C});
    } else {
        // In f64: an angle of f32 would be off by 2^-24 of it, and the last position of a long text has a large one.
        const DType wide = DType::f64;
        const int64_t far = (int64_t{1} << 45) - INT32_MAX;  // angles beyond have no sine
        const Tile part = cast(wide, f.index(C)) / Tile(&f, cast(wide, extent("C")), {});
        const Tile frequency = pow(f.scalar(wide, static_cast<double>(o.at("base"))), -part).named("frequency");  // (C)
        const Tile at = cast(wide, f.parameter("position", DType::i64, -far, far) + cast(DType::i64, f.index(T)));
        const Tile angle = (at * frequency).named("angle");  // (T, C)
        cosine = cast(n.compute, cos(angle)).named("cosine"), sine = cast(n.compute, sin(angle)).named("sine");
    }
    const auto part = [&](int64_t i) { return x.at({{"R", Expr(i)}}, {"T", "H", "C"}); };
    const Tile a = part(0), b = part(1);
    return f.output("y", broadcast(stack({a * cosine - b * sine, b * cosine + a * sine}, R), dims)).build();
}

}  // namespace tessera::library
