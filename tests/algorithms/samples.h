// Hand-built algorithms that together use every kind of expression and every body, and seeded random expressions.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera::test {

Algorithm matmul();         // dot
Algorithm softmax();        // max, sum and maps
Algorithm layernorm();      // welford, a parameter
Algorithm attention();      // online softmax, a mask
Algorithm prefix_sums();    // an exclusive scan
Algorithm suffix_maxima();  // a backward scan with segments
Algorithm segmented_sum();  // a ragged dim
Algorithm ring_buffer();    // two updates of one state, a read between
Algorithm histogram();      // a computed destination, where
Algorithm argmax();
Algorithm every_expression();      // every kind, every operation, every constant type
Algorithm feed_forward();          // two calls of one callee, a shared constant
Algorithm layers();                // a call that repeats, of views
std::vector<Algorithm> samples();  // all of them

// A random legal expression of that type over x[M, K] of f32, n[K] of i32, dims M and K and the parameter "p".
Expr random_expr(std::mt19937 &random, DType type, int depth);

// The same algorithm with every name changed to prefix + name.
Algorithm renamed(const Algorithm &algorithm, const std::string &prefix);
// Field by field, expressions by content.
bool same(const Algorithm &a, const Algorithm &b);

}  // namespace tessera::test
