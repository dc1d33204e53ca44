// Resizing a dim: each element of another dim reads between the elements of the first, one dim at a time. Names are those of ONNX's Resize.
//
//     const Tile wide = resize(x, W, Q, {.by = Interpolation::cubic}).named("wide");   // (N, H, Q, C)
//     f.output("y", resize(wide, H, P, {.by = Interpolation::cubic}));                 // (N, P, Q, C)
//
// Extents may be of any kind. Where an element falls is a fraction of whole numbers, so nothing is rounded before its weight is.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

enum class Interpolation : uint8_t { nearest, linear, cubic };
constexpr const char *interpolation_names[] = {"nearest", "linear", "cubic"};

// Where element p of |to| lies between those of |from|. half_pixel: (p + 1/2) |from| / |to| - 1/2; align_corners:
// p (|from| - 1) / (|to| - 1), so that the first and last elements fall on each other; asymmetric: p |from| / |to|.
enum class Coordinates : uint8_t { half_pixel, align_corners, asymmetric };
constexpr const char *coordinates_names[] = {"half_pixel", "align_corners", "asymmetric"};

// Which of two neighbours is the nearest; half_down and half_up take the one below, or above, where both are as near.
enum class Nearest : uint8_t { floor, ceil, half_down, half_up };
constexpr const char *nearest_names[] = {"floor", "ceil", "half_down", "half_up"};

struct Resize {
    Interpolation by = Interpolation::linear;
    Coordinates coordinates = Coordinates::half_pixel;
    Nearest nearest = Nearest::half_down;
    double cubic = -0.75;  // Keys's (1981) coefficient a; with antialias PyTorch and Pillow take -0.5
    // Where |to| < |from|, weights reach as far as the elements of `to` lie apart (Pillow, PyTorch's antialias): nothing is skipped. Taps
    // outside of the tile are left out, and the others weigh more. Not of nearest, and only with half_pixel.
    bool antialias = false;
};

// One of the elements that an element of `to` is made of.
struct ResizeTap {
    Expr position;               // of `from`, inside of it
    std::optional<Tile> weight;  // (to); none: 1
};
// They are one (nearest), two or four; without antialias. Positions are read off stages named <from>_element, weights off <from>_weight.
std::vector<ResizeTap> resize_taps(Builder &f, const Dim &from, const Dim &to, const Resize &how = {});

// x with the dim `from`, whose min has to be 1 or more, resized to `to`. Nearest keeps the type; else numbers that are no floats are taken
// as those of the policy's compute type. Not a stage until named: of two dims in a row, name what is between them where there are more than
// two taps; hold a scope() where a second tile is resized along the same dim. With antialias it is a sum over taps, a dim named <from>T.
// UserErrors shape.window where x has no such dim, resize.options.
Tile resize(const Tile &x, const Dim &from, const Dim &to, const Resize &how = {}, Span caller = std::source_location::current());

}  // namespace tessera
