#include "algorithms/build/convolution.h"

#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/expr/number.h"
#include "support/text/error.h"

namespace tessera {

Window window_of(const Options &options) {
    Window w;
    auto take = [&](const char *name, int64_t &value) {
        if (auto it = options.find(name); it != options.end()) value = it->second;
    };
    take("stride", w.stride), take("padding", w.padding), take("dilation", w.dilation);
    return w;
}

std::vector<Option> window_options() {
    return {{"stride", "step between windows", 1, 1, 64},
            {"padding", "elements added at each end", 0, 0, 64},
            {"dilation", "step between taps", 1, 1, 64}};
}

Dim padded_dim(const std::string &name, const Dim &in, const Window &window) {
    return derived_dim(name, extent(in.name) + Expr(window.padded()));
}

Dim positions_dim(const std::string &name, const Dim &in, const Dim &taps, const Window &window) {
    Expr room = extent(in.name) - Expr(window.dilation) * extent(taps.name) + Expr(window.padded() + window.dilation - 1);
    return derived_dim(name, room / Expr(window.stride) + 1);
}

static std::vector<std::string> replaced(std::vector<std::string> dims, const std::string &from, const std::string &to) {
    std::replace(dims.begin(), dims.end(), from, to);
    return dims;
}

static void check_has(const char *function, const Tile &x, const Dim &d) {
    if (std::find(x.dims().begin(), x.dims().end(), d.name) == x.dims().end())
        throw UserError("shape.window", std::string(function) + ": " + x.describe() + " has no dim '" + d.name + "'; its dims are " +
                                            join(x.dims()) + "." + did_you_mean(d.name, x.dims()));
}

Tile pad(const Tile &x, const std::vector<Dim> &from, const std::vector<Dim> &to, const Window &window, double outside, Span caller) {
    return pad_each(x, from, to, std::vector<Window>(from.size(), window), outside, caller);
}

Tile pad_each(const Tile &x, const std::vector<Dim> &from, const std::vector<Dim> &to, const std::vector<Window> &windows, double outside,
              Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile moved = x;
    Expr inside;
    for (size_t i = 0; i < from.size(); i++) {
        check_has("pad", x, from[i]);
        Expr at = variable(x.builder().dim(to[i]).name) - Expr(windows[i].padding);
        moved = moved.at({{from[i].name, at}}, replaced(moved.dims(), from[i].name, to[i].name));
        if (windows[i].padded() == 0) continue;
        Expr here = Expr(0) <= at && at < extent(from[i].name);
        inside = inside.defined() ? inside && here : here;
    }
    if (!inside.defined()) return moved;
    Expr value = moved.value(), loaded = value.kind() == ExprKind::cast ? value->args[0] : value;
    if (loaded.kind() == ExprKind::load && !loaded->guarded && holds(loaded.type(), outside)) {
        Expr guarded = load_or(loaded->name, loaded.type(), loaded->args, inside, constant(loaded.type(), outside));
        return Tile(&x.builder(), cast(value.type(), guarded), moved.dims());
    }
    const Expr fill = number("pad of " + x.describe(), value.type(), outside);
    return Tile(&x.builder(), select(inside, read_where(value, inside), fill), moved.dims());
}

Tile windows(const Tile &x, const Dim &padded, const Dim &positions, const Dim &taps, const Window &window, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check_has("windows", x, padded);
    Builder &f = x.builder();
    Expr at = variable(f.dim(positions).name) * Expr(window.stride) + variable(f.dim(taps).name) * Expr(window.dilation);
    std::vector<std::string> dims = replaced(x.dims(), padded.name, positions.name);
    dims.push_back(taps.name);
    return x.at({{padded.name, at}}, dims);
}

// A stage of the tile. Elements of a narrow type that are only widened are stored as they are: no bit changes, a copy has fewer bytes, and
// instructions multiply operands of that type.
static Tile named_as_loaded(const Tile &x, const std::string &name) {
    const Expr value = x.value();
    if (value.kind() != ExprKind::cast || value->args[0].kind() != ExprKind::load) return x.named(name);
    const DType stored = value->args[0].type();
    const bool widens = is_float(stored) && is_arithmetic(value.type()) && size_of(stored) < size_of(value.type());
    if (!widens) return x.named(name);
    return cast(value.type(), Tile(&x.builder(), value->args[0], x.dims()).named(name));
}

Windows windows_over(const Tile &x, const std::vector<WindowDim> &dims, double outside, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Windows made;
    std::vector<Dim> from;
    std::vector<Window> each;
    for (const WindowDim &d : dims) {
        from.push_back(d.in), each.push_back(d.window);
        made.padded.push_back(padded_dim(d.in.name + "P", d.in, d.window));
        made.positions.push_back(positions_dim(d.positions, d.in, d.taps, d.window));
    }
    made.tile = named_as_loaded(pad_each(x, from, made.padded, each, outside), "padded");
    for (size_t i = 0; i < dims.size(); i++) made.tile = windows(made.tile, made.padded[i], made.positions[i], dims[i].taps, each[i]);
    return made;
}

static std::vector<Dim> joined(std::vector<Dim> taps, const std::vector<Dim> &channels) {
    taps.insert(taps.end(), channels.begin(), channels.end());
    return taps;
}

static std::vector<Dim> taps_of(const std::vector<WindowDim> &dims) {
    std::vector<Dim> taps;
    for (const WindowDim &d : dims) taps.push_back(d.taps);
    return taps;
}

Tile conv(const Tile &x, const Tile &w, const std::vector<WindowDim> &dims, const std::vector<Dim> &channels, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return dot(windows_over(x, dims).tile, w, joined(taps_of(dims), channels));
}

namespace {

// One dim of a transposed convolution. Position p is reached by tap t of the element (p + padding - t dilation) / stride, where that is
// whole: without dilation by the taps (p + padding) % stride + stride i, of which there are fewer.
struct Reached {
    Dim positions, visited;
    Expr element, tap, inside;
};

Reached reached(Builder &f, const WindowDim &d, int64_t end) {
    const Window &window = d.window;
    const Expr s(window.stride), in = extent(d.in.name), taps = extent(d.taps.name);
    const bool dilated = window.dilation != 1;
    Reached r;
    const Expr reach = dilated ? Expr(window.dilation) * taps + Expr(1 - window.dilation) : taps;
    r.positions = f.dim(derived_dim(d.positions, (in - 1) * s + reach + Expr(end - window.padded())));
    r.visited = f.dim(derived_dim(d.taps.name + "V", dilated ? taps : (taps + s - 1) / s));
    const Expr at = variable(d.positions) + Expr(window.padding), i = variable(r.visited.name);
    if (dilated) {
        const Expr from_start = at - i * Expr(window.dilation);
        r.element = from_start / s, r.tap = i;
        r.inside = Expr(0) <= from_start && r.element < in && from_start % s == Expr(0);
        return r;
    }
    r.element = at / s - i, r.tap = at % s + s * i;
    r.inside = Expr(0) <= r.element && r.element < in && r.tap < taps;
    return r;
}

}  // namespace

Tile transposed_conv(const Tile &x, const Tile &w, const std::vector<WindowDim> &dims, const std::vector<Dim> &channels,
                     const std::vector<int64_t> &end, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = x.builder();
    std::vector<Reached> each;
    std::vector<Dim> visited;
    std::vector<std::string> reaching;
    Expr inside;
    for (size_t i = 0; i < dims.size(); i++) {
        check_has("transposed_conv", x, dims[i].in), check_has("transposed_conv", w, dims[i].taps);
        each.push_back(reached(f, dims[i], i < end.size() ? end[i] : 0));
        visited.push_back(each[i].visited);
        reaching.push_back(dims[i].positions);
        inside = inside.defined() ? inside && each[i].inside : each[i].inside;
    }
    for (const Dim &d : visited) reaching.push_back(d.name);
    const auto seen = [&](const Tile &tile, bool of_w) {
        std::vector<std::string> names = tile.dims();
        std::vector<std::pair<std::string, Expr>> index;
        for (size_t i = 0; i < dims.size(); i++) {
            const std::string &own = of_w ? dims[i].taps.name : dims[i].in.name;
            names = replaced(names, own, dims[i].positions);
            index.emplace_back(own, of_w ? each[i].tap : each[i].element);
        }
        for (const Dim &d : visited) names.push_back(d.name);
        const Tile moved = tile.at({index.begin(), index.end()}, names);
        return cast(f.numerics().accumulate, Tile(&f, read_where(moved.value(), inside), names));
    };
    return f.fold(dot_monoid(f.numerics().accumulate), {seen(x, false), seen(w, true)}, names_of(joined(visited, channels)),
                  Tile(&f, inside, reaching))[0];
}

static Tile pool(const Monoid &monoid, const Tile &x, const std::vector<WindowDim> &dims) {
    return x.builder().fold(monoid, {x}, names_of(taps_of(dims)))[0];
}

Tile max_pool(const Tile &x, const std::vector<WindowDim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const double least = is_float(x.dtype()) ? -INFINITY : static_cast<double>(traits_of(x.dtype()).lowest);
    return pool(max_monoid(x.dtype()), windows_over(x, dims, least).tile, dims);
}

Tile average_pool(const Tile &x, const std::vector<WindowDim> &dims, bool counts_padding, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile taken = windows_over(x, dims).tile;
    Expr count;
    std::vector<std::string> of;
    for (const WindowDim &d : dims) {
        Expr one = extent(d.taps.name);
        if (!counts_padding && d.window.padded() != 0) {  // taps t with 0 <= begin + t dilation < |in|
            const Expr begin = variable(d.positions) * Expr(d.window.stride) - Expr(d.window.padding), step(d.window.dilation);
            one = max(min((extent(d.in.name) - begin + step - 1) / step, one) - max((step - 1 - begin) / step, Expr(0)), Expr(0));
            of.push_back(d.positions);
        }
        count = count.defined() ? count * one : one;
    }
    return pool(sum_monoid(x.dtype()), taken, dims) / Tile(&x.builder(), cast(x.dtype(), count), of);
}

static std::vector<WindowDim> both(const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window) {
    return {{H, R, window, "P"}, {W, S, window, "Q"}};
}

Tile conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const std::vector<Dim> &channels,
            const Window &window, Span caller) {
    return conv(x, w, both(H, W, R, S, window), channels, caller);
}

Tile conv1d(const Tile &x, const Tile &w, const Dim &L, const Dim &R, const std::vector<Dim> &channels, const Window &window, Span caller) {
    return conv(x, w, {{L, R, window, "P"}}, channels, caller);
}

Tile transposed_conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S,
                       const std::vector<Dim> &channels, const Window &window, int64_t end, Span caller) {
    return transposed_conv(x, w, both(H, W, R, S, window), channels, {end, end}, caller);
}

Tile max_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, Span caller) {
    return max_pool(x, both(H, W, R, S, window), caller);
}

Tile average_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, Span caller) {
    return average_pool(x, both(H, W, R, S, window), true, caller);
}

}  // namespace tessera
