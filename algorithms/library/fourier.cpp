#include "algorithms/build/fourier.h"
#include "algorithms/library/library.h"

namespace tessera::library {

std::vector<Option> fourier_options() { return {{"points", "how many are transformed", 256, 1, max_fourier_points}}; }

namespace {

struct Points {  // what all transforms have
    Points(const std::string &name, const Numerics &n, const Options &o) : f(name, n), count(o.at("points")) {
        check_fourier_points(count);
    }
    Builder f;
    int64_t count;
    Dim B = f.dim("B");
    Dim pairs() { return f.dim("N", 2 * count); }
    Dim reals() { return f.dim("N", count); }
    Dim bins() { return f.dim("K", 2 * (count / 2 + 1)); }
};

}  // namespace

Algorithm fft(const Numerics &n, const Options &o) {
    Points i("fft", n, o);
    Tile x = i.f.input("x", {i.B, i.pairs()});
    return i.f.output("y", tessera::fft(x, i.pairs())).build();  // (B, N)
}

Algorithm ifft(const Numerics &n, const Options &o) {
    Points i("ifft", n, o);
    Tile x = i.f.input("x", {i.B, i.pairs()});
    return i.f.output("y", tessera::ifft(x, i.pairs())).build();  // (B, N)
}

Algorithm rfft(const Numerics &n, const Options &o) {
    Points i("rfft", n, o);
    Tile x = i.f.input("x", {i.B, i.reals()});
    return i.f.output("y", tessera::rfft(x, i.reals(), i.bins())).build();  // (B, K)
}

Algorithm irfft(const Numerics &n, const Options &o) {
    Points i("irfft", n, o);
    Tile x = i.f.input("x", {i.B, i.bins()});
    return i.f.output("y", tessera::irfft(x, i.bins(), i.reals())).build();  // (B, N)
}

}  // namespace tessera::library
