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
    return derived_dim(name, extent(in.name) + Expr(2 * window.padding));
}

Dim positions_dim(const std::string &name, const Dim &in, const Dim &taps, const Window &window) {
    Expr room = extent(in.name) - Expr(window.dilation) * extent(taps.name) + Expr(2 * window.padding + window.dilation - 1);
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
    const SpanScope line = SpanScope::entered(caller);
    Tile moved = x;
    Expr inside;
    for (size_t i = 0; i < from.size(); i++) {
        check_has("pad", x, from[i]);
        Expr at = variable(x.builder().dim(to[i]).name) - Expr(window.padding);
        moved = moved.at({{from[i].name, at}}, replaced(moved.dims(), from[i].name, to[i].name));
        if (window.padding == 0) continue;
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

Windows2d windows2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, double outside,
                    Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Dim HP = padded_dim("HP", H, window), WP = padded_dim("WP", W, window);
    const Dim P = positions_dim("P", H, R, window), Q = positions_dim("Q", W, S, window);
    const Tile padded = pad(x, {H, W}, {HP, WP}, window, outside).named("padded");
    const Tile rows = windows(padded, HP, P, R, window);
    return {windows(rows, WP, Q, S, window), HP, WP, P, Q};
}

static std::vector<Dim> joined(std::vector<Dim> taps, const std::vector<Dim> &channels) {
    taps.insert(taps.end(), channels.begin(), channels.end());
    return taps;
}

Tile conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const std::vector<Dim> &channels,
            const Window &window, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return dot(windows2d(x, H, W, R, S, window).tile, w, joined({R, S}, channels));
}

Tile conv1d(const Tile &x, const Tile &w, const Dim &L, const Dim &R, const std::vector<Dim> &channels, const Window &window, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Dim LP = padded_dim("LP", L, window);
    Tile padded = pad(x, {L}, {LP}, window).named("padded");
    return dot(windows(padded, LP, positions_dim("P", L, R, window), R, window), w, joined({R}, channels));
}

namespace {

// One dim of a transposed convolution. Tap t + stride i of those of position p + padding = stride h + t reaches it from h - i.
struct Reached {
    Dim positions, visited;
    Expr element, tap, inside;
};

Reached reached(Builder &f, const std::string &name, const Dim &in, const Dim &taps, const Window &window, int64_t end) {
    const Expr s(window.stride);
    Reached r;
    r.positions = f.dim(derived_dim(name, (extent(in.name) - 1) * s + extent(taps.name) + Expr(end - 2 * window.padding)));
    r.visited = f.dim(derived_dim(taps.name + "V", (extent(taps.name) + s - 1) / s));
    const Expr at = variable(name) + Expr(window.padding), i = variable(r.visited.name);
    r.element = at / s - i, r.tap = at % s + s * i;
    r.inside = Expr(0) <= r.element && r.element < extent(in.name) && r.tap < extent(taps.name);
    return r;
}

}  // namespace

Tile transposed_conv2d(const Tile &x, const Tile &w, const Dim &H, const Dim &W, const Dim &R, const Dim &S,
                       const std::vector<Dim> &channels, const Window &window, int64_t end, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = x.builder();
    const Reached rows = reached(f, "P", H, R, window, end), columns = reached(f, "Q", W, S, window, end);
    const Expr inside = rows.inside && columns.inside;
    const auto seen = [&](const Tile &tile, const Dim &row, const Expr &r, const Dim &column, const Expr &c) {
        std::vector<std::string> dims = replaced(replaced(tile.dims(), row.name, "P"), column.name, "Q");
        dims.push_back(rows.visited.name), dims.push_back(columns.visited.name);
        const Tile moved = tile.at({{row.name, r}, {column.name, c}}, dims);
        return cast(f.numerics().accumulate, Tile(&f, read_where(moved.value(), inside), dims));
    };
    const std::vector<Dim> taps = joined({rows.visited, columns.visited}, channels);
    return f.fold(dot_monoid(f.numerics().accumulate), {seen(x, H, rows.element, W, columns.element), seen(w, R, rows.tap, S, columns.tap)},
                  names_of(taps), Tile(&f, inside, {"P", "Q", rows.visited.name, columns.visited.name}))[0];
}

static Tile pool(const Monoid &monoid, const Tile &x, const Dim &R, const Dim &S) {
    return x.builder().fold(monoid, {x}, {R.name, S.name})[0];
}

Tile max_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const double least = is_float(x.dtype()) ? -INFINITY : static_cast<double>(traits_of(x.dtype()).lowest);
    return pool(max_monoid(x.dtype()), windows2d(x, H, W, R, S, window, least).tile, R, S);
}

Tile average_pool2d(const Tile &x, const Dim &H, const Dim &W, const Dim &R, const Dim &S, const Window &window, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile taken = windows2d(x, H, W, R, S, window).tile;
    Tile taps(&x.builder(), cast(x.dtype(), extent(R.name) * extent(S.name)), {});
    return pool(sum_monoid(x.dtype()), taken, R, S) / taps;
}

}  // namespace tessera
