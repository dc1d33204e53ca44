// Operators of signals: Fourier transforms, windows and the weights of mel spectrograms.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "algorithms/build/fourier.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

// Tables that are made when the model is imported end here, in elements.
constexpr int64_t most_made = int64_t{1} << 24;

DType output_type(Context &c) {
    const auto number = static_cast<int32_t>(c.node.integer("output_datatype", type_number(DType::f32)));
    const std::optional<DType> type = dtype_of(number);
    if (!type) c.refuse("its type is " + type_name(number) + ".", "Choose another type.", "onnx.type");
    return *type;
}

int64_t one_number(Context &c, size_t input, const char *what, int64_t least, int64_t most) {
    const std::vector<int64_t> numbers = c.numbers(input, what);
    if (numbers.size() != 1)
        c.refuse(std::string("its ") + what + " has " + std::to_string(numbers.size()) + " elements; expected one.", "Check the exporter.");
    if (numbers[0] < least || numbers[0] > most)
        c.refuse(std::string("its ") + what + " is " + std::to_string(numbers[0]) + "; expected " + std::to_string(least) +
                     " ..= " + std::to_string(most) + ".",
                 "Check the exporter.");
    return numbers[0];
}

// a - b cos(2 pi i / n) + d cos(4 pi i / n)
std::vector<Value> window(Context &c) {
    const int64_t size = one_number(c, 0, "size", 0, most_made);
    const bool periodic = c.node.integer("periodic", 1) != 0;
    const auto turns = static_cast<double>(periodic ? size : std::max<int64_t>(size - 1, 1));
    const std::string &kind = c.node.op;
    const double a = kind == "HannWindow" ? 0.5 : kind == "HammingWindow" ? 25.0 / 46 : 0.42;
    const double b = kind == "BlackmanWindow" ? 0.5 : 1 - a, d = kind == "BlackmanWindow" ? 0.08 : 0;
    std::vector<double> values;
    for (int64_t i = 0; i < size; i++) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / turns;
        values.push_back(a - b * std::cos(angle) + d * std::cos(2 * angle));
    }
    return {c.constant(Array(output_type(c), {size}, values))};
}

// Triangles over the bins of a spectrum, whose corners are equally far apart in mel: 2595 log10(1 + hertz / 700).
std::vector<Value> mel_weights(Context &c) {
    const int64_t filters = one_number(c, 0, "number of mel bins", 1, most_made),
                  length = one_number(c, 1, "DFT's length", 1, 2 * max_fourier_points),
                  rate = one_number(c, 2, "sample rate", 1, INT32_MAX);
    const int64_t bins = length / 2 + 1;
    if (bins > most_made / filters)
        c.refuse("it has " + std::to_string(bins) + " x " + std::to_string(filters) + " weights.", "Give it as an initializer.");
    auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double low = mel(c.reals(3, "lower edge").at(0)), high = mel(c.reals(4, "upper edge").at(0));
    // ONNX divides the range into two parts more than there are filters.
    const double step = (high - low) / static_cast<double>(filters + 2);
    std::vector<int64_t> corners;
    for (int64_t i = 0; i < filters + 2; i++) {
        const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
        const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
        if (!(bin >= 0) || bin >= static_cast<double>(bins))
            c.refuse("its filters reach to bin " + std::to_string(bin) + " of " + std::to_string(bins) + ".",
                     "Keep its edges between 0 and half of the sample rate.");
        corners.push_back(static_cast<int64_t>(bin));
    }
    std::vector<double> weights(static_cast<size_t>(bins * filters), 0.0);
    for (int64_t i = 0; i < filters; i++) {
        const auto at = static_cast<size_t>(i);
        const int64_t left = corners[at], center = corners[at + 1], right = corners[at + 2];
        auto put = [&](int64_t bin, double weight) { weights[static_cast<size_t>(bin * filters + i)] = weight; };
        auto part = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
        for (int64_t bin = left; bin <= center; bin++) put(bin, center == left ? 1 : part(bin - left, center - left));
        for (int64_t bin = center; bin < right; bin++) put(bin, part(right - bin, right - center));
    }
    return {c.constant(Array(output_type(c), {bins, filters}, weights))};
}

// A signal along one of its axes: complex numbers lie along the last axis, of 1 (real) or 2 elements.
struct Signal {
    std::vector<Axis> batch;                                    // all axes but those two
    std::function<Tile(const Expr &point, int64_t part)> read;  // over the batch and what `point` uses
    bool is_complex = false;
};

// The transform of `points` of it along its first axis of pairs, or of reals: a tile over (batch…, pairs), and how its parts are read.
struct Spectrum {
    Tile pairs;
    Dim along;
    int64_t points = 0;  // that are there; the rest are reflections
};

Dim points_dim(Context &c, const std::vector<Axis> &batch, int64_t extent) { return c.dim(c.new_axis(Expr(extent), batch)); }

Tile over(Context &c, const Tile &t, std::vector<Axis> batch, const Dim &along) {
    batch.push_back({Expr(), along.name});
    std::vector<std::string> dims;
    for (const Axis &a : batch)
        if (!a.dim.empty()) dims.push_back(a.dim);
    return Tile(&c.f, c.space.resolved(t.value()), dims);
}

// The points n of a transform of `n` points, forward: of a real signal half of them.
Spectrum forward(Context &c, const Signal &signal, int64_t n) {
    check_fourier_points(n);
    if (!signal.is_complex) {
        std::vector<Axis> taken = signal.batch;
        const Axis in = c.new_axis(Expr(n), taken);
        taken.push_back(in);
        const Dim N = c.dim(in), K = points_dim(c, taken, 2 * (n / 2 + 1));
        return {rfft(over(c, signal.read(variable(N.name), 0), signal.batch, N), N, K), K, n / 2 + 1};
    }
    const Dim N = points_dim(c, signal.batch, 2 * n);
    const Expr point = variable(N.name) / Expr(2);
    const Tile re = signal.read(point, 0), im = signal.read(point, 1);
    const Expr pair = select(variable(N.name) % Expr(2) == Expr(0), re.value(), im.value());
    return {fft(over(c, Tile(&c.f, pair, re.dims()), signal.batch, N), N), N, n};
}

// Element `part` of point `point` of n: what is not there is the conjugate of its reflection.
Expr part_of(const Spectrum &s, int64_t n, const Expr &point, const Expr &part, bool all) {
    auto at = [&](const Expr &p) { return substitute(s.pairs.value(), {{s.along.name, p * Expr(2) + part}}); };
    if (!all || s.points == n) return at(point);
    const Expr there = point < Expr(s.points), reflected = select(there, point, Expr(n) - point);
    const Expr value = at(reflected);
    return select(there || part == Expr(0), value, -value);
}

// (batch…, points, 2) with the points where they were in x.
Value spectrum_value(Context &c, const Spectrum &s, int64_t n, bool onesided, const std::vector<Axis> &batch, size_t axis, DType dtype) {
    const int64_t count = onesided ? n / 2 + 1 : n;
    std::vector<Axis> taken = batch;
    auto add = [&](int64_t extent) {
        taken.push_back(c.new_axis(Expr(extent), taken));
        return taken.back();
    };
    const Axis K = add(count), P = add(2);
    const Expr value = part_of(s, n, at(K), at(P), !onesided);
    std::vector<Axis> axes = batch;
    axes.insert(axes.begin() + static_cast<int64_t>(axis), K);
    axes.push_back(P);
    std::vector<Axis> order = batch;
    order.push_back(K), order.push_back(P);
    std::vector<std::string> dims;
    for (const Axis &a : order)
        if (!a.dim.empty()) dims.push_back(a.dim);
    return c.result(Tile(&c.f, value, dims), axes, dtype);
}

// x along `axis`, zeros beyond its end.
Signal signal_of(Context &c, const Value &x, size_t axis) {
    Signal signal;
    const int64_t parts = c.fixed(x.axes.back(), "the extent of its last axis");
    if (parts != 1 && parts != 2)
        c.refuse("its last axis has " + std::to_string(parts) + " elements; expected 1 (real) or 2 (complex).", "Check the exporter.");
    signal.is_complex = parts == 2;
    for (size_t i = 0; i + 1 < x.axes.size(); i++)
        if (i != axis)
            signal.batch.push_back(x.axes[i].extent.is_constant(1) ? Axis{Expr(1), ""} : c.new_axis(x.axes[i].extent, signal.batch));
    const Value source = x.is_constant() || x.is_known() || x.tile.value().kind() == ExprKind::load ? x : c.kept(x);
    signal.read = [&c, source, axis, batch = signal.batch](const Expr &point, int64_t part) {
        std::vector<Expr> index;
        size_t next = 0;
        for (size_t i = 0; i + 1 < source.axes.size(); i++) index.push_back(i == axis ? point : at(batch[next++]));
        index.push_back(Expr(part));
        return c.read(source, index, batch);
    };
    return signal;
}

// Beyond `extent` elements the signal is 0.
Signal padded(Context &c, const Signal &signal, const Expr &extent, int64_t wanted) {
    const std::optional<int64_t> there = c.space.number(extent);
    if (there && *there >= wanted) return signal;
    Signal made = signal;
    made.read = [&c, read = signal.read, extent](const Expr &point, int64_t part) {
        const Tile t = read(point, part);
        const Expr inside = point < extent;
        return Tile(&c.f, select(inside, read_where(c.space.resolved(t.value()), inside), constant(t.dtype(), 0)), t.dims());
    };
    return made;
}

std::vector<Value> dft(Context &c) {
    const Value &x = c.in(0);
    if (x.rank() < 2) c.refuse("its input has " + std::to_string(x.rank()) + " axes; expected 2 or more.", "Check the exporter.");
    const int64_t number = c.opset < 20 ? c.node.integer("axis", 1) : c.has(2) ? c.numbers(2, "axis").at(0) : -2;
    const auto axis = static_cast<size_t>(c.axis(number, x.rank()));
    if (axis + 1 == x.axes.size()) c.refuse("it transforms the axis of real and imaginary parts.", "Check the exporter.");
    const bool inverse = c.node.integer("inverse", 0) != 0, onesided = c.node.integer("onesided", 0) != 0;
    const Expr extent = x.axes[axis].extent;
    int64_t n = 0;
    if (c.has(1)) n = one_number(c, 1, "length", 1, max_fourier_points);
    else
        n = inverse && onesided ? 2 * (c.fixed(x.axes[axis], "the axis that it transforms") - 1)
                                : c.fixed(x.axes[axis], "the axis that it transforms");
    check_fourier_points(n);
    const Signal whole = signal_of(c, x, axis);
    const Signal signal = padded(c, whole, extent, inverse && onesided ? n / 2 + 1 : n);
    if (!inverse) return {spectrum_value(c, forward(c, signal, n), n, onesided, signal.batch, axis, x.dtype)};
    auto pair = [&](const Dim &d) {
        const Expr point = variable(d.name) / Expr(2);
        const Tile re = signal.read(point, 0);
        const Expr im = signal.is_complex ? signal.read(point, 1).value() : constant(re.dtype(), 0);
        return over(c, Tile(&c.f, select(variable(d.name) % Expr(2) == Expr(0), re.value(), im), re.dims()), signal.batch, d);
    };
    if (!onesided) {
        const Dim N = points_dim(c, signal.batch, 2 * n);
        return {spectrum_value(c, {ifft(pair(N), N), N, n}, n, false, signal.batch, axis, x.dtype)};
    }
    std::vector<Axis> taken = signal.batch;
    const Axis all = c.new_axis(Expr(n), taken);
    taken.push_back(all);
    const Dim K = points_dim(c, taken, 2 * (n / 2 + 1)), N = c.dim(all);
    std::vector<Axis> axes = signal.batch;
    axes.insert(axes.begin() + static_cast<int64_t>(axis), all);
    axes.push_back({Expr(1), ""});
    return {c.result(irfft(pair(K), K, N), axes, x.dtype)};
}

std::vector<Value> stft(Context &c) {
    Value x = c.in(0);
    if (x.rank() == 2) {
        std::vector<Axis> axes = x.axes;
        axes.push_back({Expr(1), ""});
        x = c.with_axes(x, axes);
    }
    if (x.rank() != 3)
        c.refuse("its signal has " + std::to_string(x.rank()) + " axes; expected (batch, length, 1 or 2).", "Check the exporter.");
    const int64_t step = one_number(c, 1, "frame step", 1, INT32_MAX);
    int64_t n = 0;
    if (c.has(3)) n = one_number(c, 3, "frame length", 1, max_fourier_points);
    else n = c.has(2) ? c.fixed(c.in(2).axes.at(0), "the length of its window") : c.fixed(x.axes[1], "the length of its signal");
    check_fourier_points(n);
    if (c.has(2) && c.fixed(c.in(2).axes.at(0), "the length of its window") != n)
        c.refuse("its window has " + brief(c.in(2).axes[0].extent) + " elements, its frames " + std::to_string(n) + ".",
                 "Check the exporter.", "onnx.broadcast");
    const bool onesided = c.node.integer("onesided", 1) != 0;
    const Signal whole = signal_of(c, x, 1);
    Signal frames = whole;
    const Axis F = c.new_axis(max((x.axes[1].extent - Expr(n)) / Expr(step) + 1, Expr(0)), whole.batch);
    frames.batch.push_back(F);
    frames.read = [&c, &whole, F, step](const Expr &point, int64_t part) {
        const Tile t = whole.read(at(F) * Expr(step) + point, part);
        std::vector<std::string> dims = t.dims();
        if (std::find(dims.begin(), dims.end(), F.dim) == dims.end()) dims.push_back(F.dim);
        const Tile framed(&c.f, t.value(), dims);
        if (!c.has(2)) return framed;
        const Tile w = cast(framed.dtype(), c.read(c.in(2), {point}, {}));
        return Tile(&c.f, framed.value() * w.value(), dims);
    };
    const Spectrum s = forward(c, frames, n);
    return {spectrum_value(c, s, n, onesided, frames.batch, frames.batch.size(), x.dtype)};
}

}  // namespace

std::vector<Operator> signal_operators() {
    return {
        {"DFT", dft},
        {"STFT", stft},
        {"HannWindow", window},
        {"HammingWindow", window},
        {"BlackmanWindow", window},
        {"MelWeightMatrix", mel_weights},
    };
}

}  // namespace tessera::onnx
