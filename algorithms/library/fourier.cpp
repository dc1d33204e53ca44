#include "algorithms/fourier.h"
#include "algorithms/library/library.h"

namespace tessera::library {

std::vector<Option> fourier_options() { return {{"N", "points of the transform", 256, 1, max_fourier_points}}; }

namespace {

struct Points {  // what all transforms have
    Points(const std::string &name, const Numerics &n, const Options &o) : f(name, n), count(o.at("N")) { fourier_radices(count); }
    Builder f;
    int64_t count;
    Dim B = f.dim("B"), N = f.dim("N", count), C = f.dim("C", 2);
    Dim bins() { return f.dim("K", count / 2 + 1); }
};

}  // namespace

Algorithm fft(const Numerics &n, const Options &o) {
    Points i("fft", n, o);
    Tile x = i.f.input("x", {i.B, i.N, i.C});
    return i.f.output("y", tessera::fft(x, i.N, i.C)).build();  // (B, N, C)
}

Algorithm ifft(const Numerics &n, const Options &o) {
    Points i("ifft", n, o);
    Tile x = i.f.input("x", {i.B, i.N, i.C});
    return i.f.output("y", tessera::ifft(x, i.N, i.C)).build();  // (B, N, C)
}

Algorithm rfft(const Numerics &n, const Options &o) {
    Points i("rfft", n, o);
    Tile x = i.f.input("x", {i.B, i.N});
    return i.f.output("y", tessera::rfft(x, i.N, i.bins(), i.C)).build();  // (B, K, C)
}

Algorithm irfft(const Numerics &n, const Options &o) {
    Points i("irfft", n, o);
    Dim K = i.bins();
    Tile x = i.f.input("x", {i.B, K, i.C});
    return i.f.output("y", tessera::irfft(x, K, i.N, i.C)).build();  // (B, N)
}

}  // namespace tessera::library
