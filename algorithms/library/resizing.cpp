#include "algorithms/build/resize.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

struct Images {  // x[N, H, W, C], of which y[N, P, Q, C] is made
    Images(const std::string &name, const Numerics &n) : f(name, n) {
        for (Dim *d : {&H, &W}) *d = symbolic_dim(d == &H ? "H" : "W"), d->min = 1, *d = f.dim(*d);
        N = f.dim("N"), C = f.dim("C"), P = f.dim("P"), Q = f.dim("Q");
        x = f.input("x", {N, H, W, C});
    }
    Builder f;
    Dim N, H, W, C, P, Q;
    Tile x;

    Algorithm resized(const Resize &how) {
        const Tile wide = resize(x, W, Q, how);
        const bool is_one_stage = how.by != Interpolation::cubic && !how.antialias;
        const Tile y = resize(is_one_stage ? wide : wide.named("wide"), H, P, how);
        return f.output("y", broadcast(y, {N, P, Q, C})).build();
    }
};

Coordinates coordinates(const Options &o) { return o.at("align_corners") ? Coordinates::align_corners : Coordinates::half_pixel; }

}  // namespace

Algorithm resize_nearest_nhwc(const Numerics &n) {
    return Images("resize_nearest_nhwc", n).resized({Interpolation::nearest, Coordinates::asymmetric, Nearest::floor});
}

std::vector<Option> resize_options() {
    return {yes_or_no("align_corners", "the first and last elements of x and y fall on each other"),
            yes_or_no("antialias", "what shrinks skips no element, as Pillow does it; not with align_corners")};
}

Algorithm resize_bilinear_nhwc(const Numerics &n, const Options &o) {
    return Images("resize_bilinear_nhwc", n)
        .resized({.by = Interpolation::linear, .coordinates = coordinates(o), .antialias = o.at("antialias") != 0});
}

Algorithm resize_bicubic_nhwc(const Numerics &n, const Options &o) {
    const bool antialias = o.at("antialias") != 0;
    return Images("resize_bicubic_nhwc", n)
        .resized({.by = Interpolation::cubic, .coordinates = coordinates(o), .cubic = antialias ? -0.5 : -0.75, .antialias = antialias});
}

}  // namespace tessera::library
