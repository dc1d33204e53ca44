// Windows over dims, and what resizes them (algorithms/build/convolution.h, resize.h), over tiles that a function takes as arguments.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "algorithms/build/convolution.h"
#include "algorithms/build/resize.h"
#include "python/core/tiles.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

using Names = std::vector<std::string>;

// A number for all dims, or one for each.
struct PerDim {
    std::vector<int64_t> values;
    int64_t of(size_t i) const { return values.size() == 1 ? values[0] : values[i]; }
};

PerDim per_dim(const char *function, const char *what, const nb::handle &given, size_t count) {
    PerDim made;
    if (nb::isinstance<nb::int_>(given)) return {{nb::cast<int64_t>(given)}};
    for (nb::handle one : given) made.values.push_back(nb::cast<int64_t>(one));
    if (made.values.size() != count)
        throw UserError("shape.window", std::string(function) + ": " + what + " has " + std::to_string(made.values.size()) +
                                            " numbers for " + std::to_string(count) + " dims; give one, or one for each.");
    return made;
}

// {"H": "R", "W": "S"} with windows: padding is a number, one for each dim, or for each dim a pair of both ends.
std::vector<WindowDim> window_dims(const char *function, Builder &b, const nb::dict &dims, const Names &positions, const nb::handle &stride,
                                   const nb::handle &padding, const nb::handle &dilation) {
    const PerDim strides = per_dim(function, "stride", stride, dims.size()),
                 dilations = per_dim(function, "dilation", dilation, dims.size());
    if (positions.size() != dims.size())
        throw UserError("shape.window", std::string(function) + ": positions has " + std::to_string(positions.size()) + " names for " +
                                            std::to_string(dims.size()) + " dims.");
    std::vector<std::pair<int64_t, int64_t>> ends;
    if (nb::isinstance<nb::int_>(padding)) ends.assign(dims.size(), {nb::cast<int64_t>(padding), nb::cast<int64_t>(padding)});
    else
        for (nb::handle one : padding) {
            if (nb::isinstance<nb::int_>(one)) ends.emplace_back(nb::cast<int64_t>(one), nb::cast<int64_t>(one));
            else ends.push_back(nb::cast<std::pair<int64_t, int64_t>>(one));
        }
    if (ends.size() != dims.size())
        throw UserError("shape.window", std::string(function) + ": padding has " + std::to_string(ends.size()) + " elements for " +
                                            std::to_string(dims.size()) + " dims; give one number, or for each dim a number or a pair.");
    std::vector<WindowDim> made;
    for (auto [in, taps] : dims) {
        const size_t i = made.size();
        made.push_back({b.dim_named(nb::cast<std::string>(in)),
                        b.dim_named(nb::cast<std::string>(taps)),
                        {strides.of(i), ends[i].first, dilations.of(i), ends[i].second},
                        positions[i]});
        if (strides.of(i) < 1 || dilations.of(i) < 1 || ends[i].first < 0 || ends[i].second < 0)
            throw UserError("shape.window", std::string(function) + ": along '" + made[i].in.name +
                                                "' a stride or dilation is below 1, or a padding below 0.");
    }
    return made;
}

void declare_convolutions(nb::module_ &m) {
    const auto window = [](int64_t stride, int64_t padding, int64_t dilation) { return Window{stride, padding, dilation}; };
    m.def(
        "conv",
        [](const Tile &x, const Tile &w, const nb::dict &dims, const Names &channels, const Names &positions, const nb::object &stride,
           const nb::object &padding, const nb::object &dilation) {
            Builder &b = x.builder();
            return conv(x, w, window_dims("conv", b, dims, positions, stride, padding, dilation), dims_of(b, channels));
        },
        nb::arg("x"), nb::arg("w"), nb::arg("dims"), nb::arg("channels"), nb::arg("positions"), nb::arg("stride") = 1,
        nb::arg("padding") = 0, nb::arg("dilation") = 1,
        nb::sig("def conv(x: tessera._core.Tile, w: tessera._core.Tile, dims: dict[str, str], channels: Sequence[str], positions: "
                "Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | "
                "Sequence[int] = 1) -> tessera._core.Tile"),
        "The sum over windows and channels, along any number of dims: dims says of each by which dim its taps are called, {\"H\": \"R\"}.",
        nb::call_guard<CallingLine>());
    m.def(
        "transposed_conv",
        [](const Tile &x, const Tile &w, const nb::dict &dims, const Names &channels, const Names &positions, const nb::object &stride,
           const nb::object &padding, const nb::object &dilation, const nb::object &end) {
            Builder &b = x.builder();
            const PerDim ends = per_dim("transposed_conv", "end", end, dims.size());
            std::vector<int64_t> all;
            for (size_t i = 0; i < dims.size(); i++) all.push_back(ends.of(i));
            return transposed_conv(x, w, window_dims("transposed_conv", b, dims, positions, stride, padding, dilation),
                                   dims_of(b, channels), all);
        },
        nb::arg("x"), nb::arg("w"), nb::arg("dims"), nb::arg("channels"), nb::arg("positions"), nb::arg("stride") = 1,
        nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("end") = 0,
        nb::sig(
            "def transposed_conv(x: tessera._core.Tile, w: tessera._core.Tile, dims: dict[str, str], channels: Sequence[str], positions: "
            "Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | "
            "Sequence[int] = 1, end: int | Sequence[int] = 0) -> tessera._core.Tile"),
        "The gradient of conv by x: each element adds its products with the window to the positions that it covers, stride apart.",
        nb::call_guard<CallingLine>());
    m.def(
        "conv2d",
        [window](const Tile &x, const Tile &w, const std::string &h, const std::string &wd, const std::string &r, const std::string &s,
                 const Names &channels, int64_t stride, int64_t padding, int64_t dilation) {
            Builder &b = x.builder();
            return conv2d(x, w, b.dim_named(h), b.dim_named(wd), b.dim_named(r), b.dim_named(s), dims_of(b, channels),
                          window(stride, padding, dilation));
        },
        nb::arg("x"), nb::arg("w"), nb::arg("height"), nb::arg("width"), nb::arg("rows"), nb::arg("columns"), nb::arg("channels"),
        nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("dilation") = 1,
        "The sum over the window's rows and columns and the channels; positions are the dims P and Q.", nb::call_guard<CallingLine>());
    m.def(
        "conv1d",
        [window](const Tile &x, const Tile &w, const std::string &l, const std::string &r, const Names &channels, int64_t stride,
                 int64_t padding, int64_t dilation) {
            Builder &b = x.builder();
            return conv1d(x, w, b.dim_named(l), b.dim_named(r), dims_of(b, channels), window(stride, padding, dilation));
        },
        nb::arg("x"), nb::arg("w"), nb::arg("length"), nb::arg("taps"), nb::arg("channels"), nb::arg("stride") = 1, nb::arg("padding") = 0,
        nb::arg("dilation") = 1, nb::call_guard<CallingLine>());
    m.def(
        "max_pool",
        [](const Tile &x, const nb::dict &dims, const Names &positions, const nb::object &stride, const nb::object &padding,
           const nb::object &dilation) {
            return max_pool(x, window_dims("max_pool", x.builder(), dims, positions, stride, padding, dilation));
        },
        nb::arg("x"), nb::arg("dims"), nb::arg("positions"), nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("dilation") = 1,
        nb::sig(
            "def max_pool(x: tessera._core.Tile, dims: dict[str, str], positions: Sequence[str], stride: int | Sequence[int] = 1, padding: "
            "int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1) -> tessera._core.Tile"),
        "The maximum over windows along any number of dims.", nb::call_guard<CallingLine>());
    m.def(
        "average_pool",
        [](const Tile &x, const nb::dict &dims, const Names &positions, const nb::object &stride, const nb::object &padding,
           const nb::object &dilation, bool counts_padding) {
            return average_pool(x, window_dims("average_pool", x.builder(), dims, positions, stride, padding, dilation), counts_padding);
        },
        nb::arg("x"), nb::arg("dims"), nb::arg("positions"), nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("dilation") = 1,
        nb::arg("counts_padding") = true,
        nb::sig("def average_pool(x: tessera._core.Tile, dims: dict[str, str], positions: Sequence[str], stride: int | Sequence[int] = 1, "
                "padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1, counts_padding: bool = True) -> "
                "tessera._core.Tile"),
        "The mean over windows along any number of dims; what is padded counts as 0, or not at all.", nb::call_guard<CallingLine>());
    struct Pool {
        const char *name;
        Tile (*apply)(const Tile &, const Dim &, const Dim &, const Dim &, const Dim &, const Window &);
    };
    for (const Pool &p : {Pool{"max_pool2d", [](const Tile &x, const Dim &h, const Dim &w, const Dim &r, const Dim &s,
                                                const Window &window) { return max_pool2d(x, h, w, r, s, window); }},
                          Pool{"average_pool2d", [](const Tile &x, const Dim &h, const Dim &w, const Dim &r, const Dim &s,
                                                    const Window &window) { return average_pool2d(x, h, w, r, s, window); }}})
        m.def(
            p.name,
            [apply = p.apply, window](const Tile &x, const std::string &h, const std::string &w, const std::string &r, const std::string &s,
                                      int64_t stride, int64_t padding) {
                Builder &b = x.builder();
                return apply(x, b.dim_named(h), b.dim_named(w), b.dim_named(r), b.dim_named(s), window(stride, padding, 1));
            },
            nb::arg("x"), nb::arg("height"), nb::arg("width"), nb::arg("rows"), nb::arg("columns"), nb::arg("stride") = 1,
            nb::arg("padding") = 0, nb::call_guard<CallingLine>());
}

void declare_resizing(nb::module_ &m) {
    m.def(
        "resize",
        [](const Tile &x, const std::string &from, const std::string &to, const std::string &by, const std::string &coordinates,
           const std::string &nearest, double cubic, bool antialias) {
            Builder &b = x.builder();
            Resize how;
            how.by = chosen<Interpolation>("resize.options", "interpolation", interpolation_names, by);
            how.coordinates = chosen<Coordinates>("resize.options", "kind of coordinates", coordinates_names, coordinates);
            how.nearest = chosen<Nearest>("resize.options", "nearest element", nearest_names, nearest);
            how.cubic = cubic, how.antialias = antialias;
            return resize(x, b.dim_named(from), b.dim_named(to), how);
        },
        nb::arg("x"), nb::arg("dim"), nb::arg("to"), nb::arg("by") = "linear", nb::arg("coordinates") = "half_pixel",
        nb::arg("nearest") = "half_down", nb::arg("cubic") = -0.75, nb::arg("antialias") = false,
        "x with elements of the dim `to` in place of those of `dim`: the nearest, or between two (linear) or four (cubic).",
        nb::call_guard<CallingLine>());
}

}  // namespace

void declare_windows(nb::module_ &m) {
    declare_convolutions(m);
    declare_resizing(m);
}

}  // namespace tessera::python
