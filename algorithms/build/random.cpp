#include "algorithms/build/random.h"

#include <numbers>

#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/conversions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double low_word = 0xffffffff;
constexpr double unit = 0x1p-24;  // of uniform numbers: what f32 holds exactly

Tile number_like(const Tile &a, double value) { return a.builder().scalar(a.dtype(), value); }
Tile low(const Tile &a) { return a && number_like(a, low_word); }
Tile high(const Tile &a) { return low(a >> number_like(a, 32)); }

// Products of 32 bits by 32, of which the mask tells compilers: one instruction for each vector of them.
struct Product {
    Tile high, low;
};
Product multiply(double factor, const Tile &word) {
    const Tile product = low(word) * factor;
    return {high(product), low(product)};
}

// The words of a block as f32 of 24 bits, or 23 and a half.
Tile fraction(const Tile &word) { return cast(DType::f32, cast(DType::i32, word >> number_like(word, 8))) * unit; }
Tile open_fraction(const Tile &word) { return (cast(DType::f32, cast(DType::i32, word >> number_like(word, 9))) * 2.0 + 1.0) * unit; }

// UserError random.type.
void check_stream(const RandomStream &stream) {
    for (const auto &[tile, name] : {std::pair{&stream.seed, "seed"}, {&stream.step, "step"}})
        if (!static_cast<bool>(*tile) || tile->dtype() != DType::i64 || !tile->dims().empty())
            throw UserError("random.type",
                            std::string("a random stream's ") + name + ": expected a tile of i64 without dims, got " +
                                (static_cast<bool>(*tile) ? tile->describe() + " of " + name_of(tile->dtype()) : std::string("none")) +
                                ". Declare it as a parameter of i64, or cast it.");
}

Tile drawn(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims) { return random_word(stream, element_number(f, dims)); }

std::array<Tile, 4> block(const RandomStream &stream, const Tile &number) {
    check_stream(stream);
    number.builder().draws();
    const Tile own = number_like(number, stream.number);
    return philox4x32({low(number), high(number), stream.step, own}, {stream.seed, high(stream.seed)});
}

Tile one_of(const Tile &position, const std::array<Tile, 4> &words) {
    return select(position < 2.0, select(position == 0.0, words[0], words[1]), select(position == 2.0, words[2], words[3]));
}

}  // namespace

std::array<Tile, 4> philox4x32(const std::array<Tile, 4> &counter, const std::array<Tile, 2> &key) {
    constexpr int rounds = 10;
    constexpr double factor[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};
    std::array<Tile, 4> c;
    for (size_t i = 0; i < 4; i++) c[i] = low(counter[i]);
    for (int round = 0; round < rounds; round++) {
        const Tile k0 = low(key[0] + round * weyl[0]), k1 = low(key[1] + round * weyl[1]);
        const Product a = multiply(factor[0], c[0]), b = multiply(factor[1], c[2]);
        c = {b.high ^ c[1] ^ k0, b.low, a.high ^ c[3] ^ k1, a.low};
    }
    return c;
}

Tile element_number(Builder &f, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Tile number = f.scalar(DType::i64, 0);
    for (const Dim &d : dims) number = number * cast(DType::i64, f.tile(extent(d.name), {})) + cast(DType::i64, f.index(d));
    return number;
}

Tile random_word(const RandomStream &stream, const Tile &element, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return one_of(element && number_like(element, 3), block(stream, element >> number_like(element, 2)));
}

Tile uniform(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return fraction(drawn(f, stream, dims));
}
Tile uniform_open(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return open_fraction(drawn(f, stream, dims));
}

Tile normal(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile element = element_number(f, dims);
    const std::array<Tile, 4> words = block(stream, element >> number_like(element, 2));
    const Tile in_front = (element && number_like(element, 2)) == 0.0, even = (element && number_like(element, 1)) == 0.0;
    const Tile radius = sqrt(log(open_fraction(select(in_front, words[0], words[2]))) * -2.0);
    const Tile angle = fraction(select(in_front, words[1], words[3])) * (2 * std::numbers::pi);
    return radius * select(even, cos(angle), sin(angle));
}

Tile bernoulli(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, const Tile &p, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return uniform(f, stream, dims) < p;
}

Tile round_stochastic(const Tile &x, DType type, const Tile &word, bool saturate, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile joined = cast(DType::i64, x) + cast(DType::i64, word);  // its dims
    return Tile(&x.builder(), round_stochastic(x.value(), type, word.value(), saturate), joined.dims());
}

Tile round_stochastic(const Tile &x, DType type, const RandomStream &stream, bool saturate, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<Dim> dims;
    for (const std::string &d : x.dims()) dims.push_back(x.builder().dim_named(d));
    return round_stochastic(x, type, drawn(x.builder(), stream, dims), saturate);
}

Tile dropout(Builder &f, const Tile &x, const RandomStream &stream, const Tile &p, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (!is_float(x.dtype()))
        throw UserError("random.type", "dropout of " + x.describe() + ": expected floats, which 1 / (1 - p) can scale, got " +
                                           name_of(x.dtype()) + ". Cast it to f32 first.");
    std::vector<Dim> dims;
    for (const std::string &d : x.dims()) dims.push_back(f.dim_named(d));
    const Tile keeps = !bernoulli(f, stream, dims, p);
    return select(keeps, x * cast(x.dtype(), 1.0 / (1.0 - p)), number_like(x, 0));
}

}  // namespace tessera
