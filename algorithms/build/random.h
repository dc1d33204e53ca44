// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011).
//
// A number is a pure function of what it is drawn from and of its element's number, so its bits are the same under every schedule, on any
// number of threads and on every target, and a backward pass draws a mask again instead of storing it. The words are those of Random123's
// philox4x32-10.
#pragma once
#include <array>

#include "algorithms/build/builder.h"

namespace tessera {

// What numbers are drawn from. Two that differ in anything give independent numbers. UserError random.type where seed or step is none of
// these.
struct RandomStream {
    Tile seed;            // i64 without dims, such as a parameter: the key, 64 bits
    Tile step;            // i64 without dims: which draw it is, such as the step of a training; its low 32 bits count
    uint32_t number = 0;  // which of the program's draws it is
};

// The four words of a block, each an i64 in 0 ..= 2^32 - 1. Counter and key are i64, of which the low 32 bits count.
std::array<Tile, 4> philox4x32(const std::array<Tile, 4> &counter, const std::array<Tile, 2> &key);

// The number of each point of the dims in row-major order, as i64.
Tile element_number(Builder &f, const std::vector<Dim> &dims, Span caller = std::source_location::current());
// Word e mod 4 of block e / 4 for element e >= 0, as an i64 in 0 ..= 2^32 - 1. The block's counter is e / 4 in 64 bits, the step, and the
// stream's number.
Tile random_word(const RandomStream &stream, const Tile &element, Span caller = std::source_location::current());

// For each point of the dims a number of its own.
Tile uniform(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims,
             Span caller = std::source_location::current());  // f32, multiples of 2^-24 in 0 ..< 1
Tile uniform_open(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims,
                  Span caller = std::source_location::current());  // f32, odd multiples of 2^-24 in 0 <..< 1
// f32 of mean 0 and variance 1, at most 5.77 in magnitude. Two neighbours share a pair of uniform numbers (Box, Muller 1958).
Tile normal(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, Span caller = std::source_location::current());
// bool: true with probability p, rounded to a multiple of 2^-24; p is an f32 tile without dims. False where p is NaN.
Tile bernoulli(Builder &f, const RandomStream &stream, const std::vector<Dim> &dims, const Tile &p,
               Span caller = std::source_location::current());
// x / (1 - p) where a number of its own keeps it, and 0 elsewhere (Srivastava et al., JMLR 2014); p is an f32 tile without dims. With the
// same stream, of x's gradient it gives the gradient. UserError random.type for integers.
Tile dropout(Builder &f, const Tile &x, const RandomStream &stream, const Tile &p, Span caller = std::source_location::current());

// x rounded to a narrow float at random, to the next value away from zero with the probability that its distance from the one toward zero
// says: the sum of many has no bias. `word` are random bits, 32 of an i64, such as random_word's. UserError expr.cast where x is not f32.
Tile round_stochastic(const Tile &x, DType type, const Tile &word, bool saturate = false, Span caller = std::source_location::current());
// With a word of its own for each point of x.
Tile round_stochastic(const Tile &x, DType type, const RandomStream &stream, bool saturate = false,
                      Span caller = std::source_location::current());

}  // namespace tessera
