#include "tests/generators/programs.h"

#include "algorithms/build/tile_functions.h"

namespace tessera::test {

static Algorithm product(const Numerics &numerics) {
    Builder f("product", numerics);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
    return f.output("y", dot(x, w, {K})).build();  // (M, N)
}

static Algorithm norm(const Numerics &numerics) {
    Builder f("norm", numerics);
    const Dim M = f.dim("M"), N = f.dim("N"), H = f.dim("H", 2), W = f.dim(derived_dim("W", extent("N") + extent("H")));
    const Tile x = f.input("x", {M, N});
    const Tile by = f.constant("by", {H}, {0.5, 0.25});
    const Tile width = max(cast(numerics.compute, f.index(W)), W);
    return f.output("y", x / (max(x * x, N) + width + sum(by, H) + 1.0)).build();  // (M, N)
}

static Algorithm layer(const Numerics &numerics) {
    Builder f("layer", numerics);
    const Dim M = f.dim("M"), D = f.dim("D"), F = f.dim(derived_dim("F", extent("D") * 2));
    const Tile x = f.input("x", {M, D}), w_up = f.input("w_up", {D, F}), w_down = f.input("w_down", {F, D});
    const Tile hidden = f.call("up", product(numerics), {x, w_up})[0];
    const Tile update = f.call("down", product(numerics), {hidden, w_down})[0];
    return f.output("y", f.call("norm", norm(numerics), {x + update})[0]).build();  // (M, D)
}

Algorithm layered_program(const Numerics &numerics) {
    Builder f("layered", numerics);
    const Dim L = f.dim("L"), M = f.dim("M"), D = f.dim("D"), F = f.dim(derived_dim("F", extent("D") * 2));
    const Tile x = f.input("x", {M, D}), w_up = f.input("w_up", {L, D, F}), w_down = f.input("w_down", {L, F, D});
    const Tile y = f.repeat("layers", layer(numerics), {.dim = "L", .carried = {{"x", "y"}}}, {x, w_up, w_down})[0];
    return f.output("y", f.call("last", norm(numerics), {y})[0]).build();  // (M, D)
}

Registry program_registry() {
    Registry registry;
    registry.add("layered", "y[M, D] = L layers of two products and a norm", layered_program)
        .add_schedule([] { return Schedule("layered/silent"); })
        .add_schedule([] {
            return Schedule("layered/once")
                .stage("layers", StageKnobs().call("once"))
                .stage("layers.up", StageKnobs().call("once"))
                .stage("last", StageKnobs().call("once"));
        })
        .add_schedule([] {
            return Schedule("layered/own").stage("layers.up.y", StageKnobs().micro({{"M", 2}}));
        })
        .add_schedule([] { return Schedule("layer/f32/avx2"); })
        .add_schedule([] {
            return Schedule("product/f32/avx2").stage("y", StageKnobs().micro({{"M", 1}, {"N", 1}}));
        });
    return registry;
}

}  // namespace tessera::test
