#include "algorithms/build/resize.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

Expr wide_int(const Expr &e) { return cast(DType::i64, e); }
Expr wide_int(int64_t value) { return constant_int(DType::i64, value); }

// above / below is where an element of `to` lies, in elements of `from`. It is above -1.
struct Fraction {
    Expr above, below;
};

Fraction place(const Dim &from, const Dim &to, Coordinates coordinates) {
    const Expr p = wide_int(variable(to.name)), in = wide_int(extent(from.name)), out = wide_int(extent(to.name));
    switch (coordinates) {
    case Coordinates::half_pixel: return {(wide_int(2) * p + wide_int(1)) * in - out, wide_int(2) * out};
    case Coordinates::align_corners: return {p * (in - wide_int(1)), max(out - wide_int(1), wide_int(1))};
    case Coordinates::asymmetric: return {p * in, out};
    }
    throw InternalError("coordinates that resize does not know");
}

Expr nearest(const Fraction &x, Nearest which) {
    const Expr two = wide_int(2);
    switch (which) {
    case Nearest::floor: return max(x.above, wide_int(0)) / x.below;
    case Nearest::ceil: return (x.above + x.below - wide_int(1)) / x.below;
    case Nearest::half_down: return (two * x.above + x.below - wide_int(1)) / (two * x.below);
    case Nearest::half_up: return (two * x.above + x.below) / (two * x.below);
    }
    throw InternalError("a nearest element that resize does not know");
}

// Keys's kernel at a distance of 0 to 1, and of 1 to 2.
Tile near_weight(double a, const Tile &x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; }
Tile far_weight(double a, const Tile &x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

// With antialias: a sum of all elements that the widened kernel reaches, by weights that add up to 1.
Tile widened(const Tile &x, const Dim &from, const Dim &to, const Resize &how) {
    Builder &f = x.builder();
    const int64_t reach = how.by == Interpolation::cubic ? 2 : 1;
    const Expr most = max(extent(from.name), extent(to.name)), out = max(extent(to.name), Expr(1));
    const Dim T = f.dim(derived_dim(from.name + "T", (Expr(reach) * most + out - 1) / out * Expr(2) + 1));
    const Expr p = wide_int(variable(to.name)), in = wide_int(extent(from.name)), wide = wide_int(2) * wide_int(out);
    const Expr center = (wide_int(2) * p + wide_int(1)) * in;  // by 2 |to|
    const Tile first =
        f.tile(max(center - wide_int(2 * reach) * wide_int(most) + wide_int(out), wide_int(0)) / wide, {to}).named(from.name + "_element");
    const Tile at = first + f.tile(wide_int(variable(T.name)), {T});
    const Tile inside = at < f.tile(in, {});
    const DType type = f.numerics().compute;
    const Tile away =
        cast(type, (at * f.tile(wide_int(2), {}) + f.tile(wide_int(1), {})) * f.tile(wide_int(out), {}) - f.tile(center, {to}));
    const Tile distance = abs(away / f.tile(cast(type, wide_int(2) * wide_int(most)), {}));
    const Tile kernel = how.by == Interpolation::linear
                            ? max(1.0 - distance, 0)
                            : select(distance <= 1.0, near_weight(how.cubic, distance),
                                     select(distance < 2.0, far_weight(how.cubic, distance), f.tile(constant(type, 0), {})));
    const Tile weights = select(inside, kernel, f.tile(constant(type, 0), {})).named(from.name + "_kernel");
    const Tile share = (weights / sum(weights, T)).named(from.name + "_weight");
    std::vector<std::string> dims = x.dims();
    std::replace(dims.begin(), dims.end(), from.name, to.name);
    dims.push_back(T.name);
    const Tile read = x.at({{from.name, bounded(at.value(), Expr(0), extent(from.name))}}, dims);
    return dot(is_float(x.dtype()) ? read : cast(type, read), share, {T});
}

}  // namespace

std::vector<ResizeTap> resize_taps(Builder &f, const Dim &from, const Dim &to, const Resize &how) {
    const Fraction x = place(from, to, how.coordinates);
    const auto inside = [&](const Tile &element, int64_t more) {
        return bounded(more ? element.value() + wide_int(more) : element.value(), Expr(0), extent(from.name));
    };
    if (how.by == Interpolation::nearest) return {{inside(f.tile(nearest(x, how.nearest), {to}).named(from.name + "_element"), 0), {}}};
    const DType type = f.numerics().compute;
    const bool cubic = how.by == Interpolation::cubic;
    // A whole step more keeps what lies before the first element from being rounded up. Two taps need none: both are the first element.
    const Expr above = cubic ? x.above + x.below : max(x.above, wide_int(0));
    const Tile element = f.tile(cubic ? above / x.below - wide_int(1) : above / x.below, {to}).named(from.name + "_element");
    const Tile weight = f.tile(cast(type, above % x.below) / cast(type, x.below), {to}).named(from.name + "_weight");
    if (!cubic) return {{inside(element, 0), 1 - weight}, {inside(element, 1), weight}};
    return {{inside(element, -1), far_weight(how.cubic, weight + 1.0)},
            {inside(element, 0), near_weight(how.cubic, weight)},
            {inside(element, 1), near_weight(how.cubic, 1 - weight)},
            {inside(element, 2), far_weight(how.cubic, 2 - weight)}};
}

Tile resize(const Tile &x, const Dim &from, const Dim &to, const Resize &how, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (std::find(x.dims().begin(), x.dims().end(), from.name) == x.dims().end())
        throw UserError("shape.window", "resize: " + x.describe() + " has no dim '" + from.name + "'; its dims are " + join(x.dims()) +
                                            "." + did_you_mean(from.name, x.dims()));
    if (how.antialias && (how.by == Interpolation::nearest || how.coordinates != Coordinates::half_pixel))
        throw UserError("resize.options", "resize: antialias is for linear and cubic with half_pixel, not for " +
                                              std::string(interpolation_names[static_cast<size_t>(how.by)]) + " with " +
                                              coordinates_names[static_cast<size_t>(how.coordinates)] + "; leave it out.");
    Builder &f = x.builder();
    f.dim(to);
    if (how.antialias) return widened(x, from, to, how);
    std::vector<std::string> dims = x.dims();
    std::replace(dims.begin(), dims.end(), from.name, to.name);
    std::optional<Tile> sum;
    for (const ResizeTap &tap : resize_taps(f, from, to, how)) {
        Tile read = x.at({{from.name, tap.position}}, dims);
        if (tap.weight) read = (is_float(read.dtype()) ? read : cast(f.numerics().compute, read)) * *tap.weight;
        sum = sum ? *sum + read : read;
    }
    return *sum;
}

}  // namespace tessera
