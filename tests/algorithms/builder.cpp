#include "algorithms/builder.h"

#include <catch2/catch.hpp>

#include "algorithms/error.h"
#include "algorithms/print.h"
#include "algorithms/tile_functions.h"

using namespace tessera;

static std::string words(const std::function<void()> &action) {
    try {
        action();
    } catch (const UserError &e) {
        return e.what();
    }
    return "accepted";
}

TEST_CASE("builder: ids of segments say where one begins, from either end") {
    auto text = [](ScanDirection direction) {
        Builder f("packed");
        Dim M = f.dim("M"), N = f.dim("N");
        Tile x = f.input("x", {M, N}), id = f.input("id", {N}, DType::i32);
        std::string all = to_text(f.output("y", f.scan(sum_monoid(DType::f32), x, N, true, direction, id)).build());
        size_t at = all.find("  y[");
        return all.substr(at, all.find("  outputs") - at);
    };
    CHECK(text(ScanDirection::forward) ==
          "  y[M, N]: f32 = inclusive scan of sum along N of (x[M, N]) anew where not(1 <= N) | (id[N] != load_or(id[N - 1], 1 <= N, 0:i32))\n");
    CHECK(text(ScanDirection::backward) ==
          "  y[M, N]: f32 = inclusive scan of sum backward along N of (x[M, N]) anew where not($0) | (id[N] != load_or(id[N + 1], $0, 0:i32))\n"
          "    $0 = N + 1 < |N|\n");
}

TEST_CASE("builder: segments of a scan are of its dims, and bool or integers") {
    Builder f("scans");
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, N}), w = f.input("w", {K}), b = f.input("b", {N});
    auto scan = [&](const Tile &segments) { return words([&] { f.scan(sum_monoid(DType::f32), x, N, true, ScanDirection::forward, segments); }); };
    CHECK(scan(w < f.scalar(DType::f32, 0)) ==
          "error[shape.scan]: scans: the segments w[K] < 0.0[K] of a scan have the dim 'K', which x[M, N] lacks; broadcast the scanned tile.");
    CHECK(scan(b) == "error[shape.type]: scans: the segments b[N] of a scan are f32; give bool (an element begins a segment) or integers (its segment's id).");
    CHECK(scan(b < f.scalar(DType::f32, 0)) == "accepted");
    CHECK(words([&] { f.scan(sum_monoid(DType::f32), x, K); }) ==
          "error[shape.fold]: scans: a scan along 'K' needs that dim; x[M, N] has M, N.");
}
