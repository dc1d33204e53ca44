// The largest elements along a dim, and sorting. Numbers are ordered in full: -inf < … < inf < NaN, and -0 is 0, as NumPy's and PyTorch's
// sorts have it. Of equals the one with the lower index comes first. So no order of folding changes a result.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

// Integers that are ordered as numbers are: of f32 an i32, of f64 an i64. The bits of a number grow with it, and those of negative ones
// fall: their other bits are flipped. NaN is the largest integer. An i32 or i64 is its own key.
Tile order_key(const Tile &x, Span caller = std::source_location::current());
// The float of a key.
Tile from_order_key(const Tile &key, Span caller = std::source_location::current());

// The `count` largest over a dim, from the largest down, in one pass: a monoid of `count` pairs of a key and a position, whose step
// inserts an element and whose combine merges two lists (Batcher 1968). Where there are fewer, what is left is (NaN's opposite, the lowest
// key) at position INT32_MAX: declare the dim with a minimum.
struct Ranked {
    Tile key, at;  // at: i32
};
std::vector<Ranked> largest(const Tile &x, const Dim &over, int count, Span caller = std::source_location::current());
// The `count` smallest in the same way, from the smallest up. What is left where there are fewer has the highest key.
std::vector<Ranked> smallest(const Tile &x, const Dim &over, int count, Span caller = std::source_location::current());

// x sorted upwards, or downwards, along a fixed dim, with the positions that its elements had (i32), by Batcher's bitonic network (1968):
// log2(n) (log2(n) + 1) / 2 steps, each a stage of keys and one of positions along a dim "<over>_sorted" of the next power of two.
enum class Order : uint8_t { upwards, downwards };
Ranked sorted(const Tile &x, const Dim &over, Order order = Order::upwards, Span caller = std::source_location::current());

}  // namespace tessera
