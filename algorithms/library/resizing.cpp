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

    Tile at(const Expr &row, const Expr &column) const { return x.at({{"H", row}, {"W", column}}, {"N", "P", "Q", "C"}); }
};

Expr whole(const Expr &e) { return cast(DType::i64, e); }

// Where position p of `to` falls between elements of `from`: a fraction of whole numbers, so nothing is rounded before the weight is.
struct Between {
    Tile element;  // (to) i64, from 0 up
    Tile weight;   // (to) of the element after it
};

Between between(Builder &f, const Dim &from, const Dim &to, bool align_corners) {
    const Expr p = whole(variable(to.name)), in = whole(extent(from.name)), out = whole(extent(to.name)), one = constant_int(DType::i64, 1);
    const Expr zero = constant_int(DType::i64, 0), two = constant_int(DType::i64, 2);
    const Expr above = align_corners ? p * (in - one) : max((two * p + one) * in - out, zero);  // half a pixel: (p + 1/2) in / out - 1/2
    const Expr below = align_corners ? max(out - one, one) : two * out;
    const Tile element = f.tile(above / below, {to}).named(from.name + "_element");
    const DType type = f.numerics().compute;
    const Tile weight = f.tile(cast(type, above % below) / cast(type, below), {to}).named(from.name + "_weight");
    return {element, weight};
}

}  // namespace

Algorithm resize_nearest_nhwc(const Numerics &n) {
    Images i("resize_nearest_nhwc", n);
    const auto nearest = [&](const Dim &from, const Dim &to) {
        const Expr element = whole(variable(to.name)) * whole(extent(from.name)) / whole(extent(to.name));
        return bounded(i.f.tile(element, {to}).named(from.name + "_element").value(), Expr(0), extent(from.name));
    };
    return i.f.output("y", i.at(nearest(i.H, i.P), nearest(i.W, i.Q))).build();  // (N, P, Q, C)
}

std::vector<Option> bilinear_options() { return {yes_or_no("align_corners", "the first and last elements of x and y fall on each other")}; }

Algorithm resize_bilinear_nhwc(const Numerics &n, const Options &o) {
    Images i("resize_bilinear_nhwc", n);
    const Between rows = between(i.f, i.H, i.P, o.at("align_corners")), columns = between(i.f, i.W, i.Q, o.at("align_corners"));
    const auto clamped = [](const Tile &element, int64_t more, const Dim &from) {
        return bounded(element.value() + constant_int(DType::i64, more), Expr(0), extent(from.name));
    };
    const auto mixed = [](const Tile &a, const Tile &b, const Tile &weight) { return a * (1 - weight) + b * weight; };
    const auto row = [&](int64_t more) {
        const Expr at = clamped(rows.element, more, i.H);
        return mixed(i.at(at, clamped(columns.element, 0, i.W)), i.at(at, clamped(columns.element, 1, i.W)), columns.weight);
    };
    return i.f.output("y", broadcast(mixed(row(0), row(1), rows.weight), {i.N, i.P, i.Q, i.C})).build();
}

}  // namespace tessera::library
