// Hashes of an algorithm, as sha256 gives them. They are taken of canonical texts, so they are the same on
// every platform and in every run.
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// What is computed, names aside: renaming the algorithm, its dims, tensors, parameters, stages, monoids, parts or call scopes keeps
// it; changing an expression, a type, a constant, a monoid, a dim's constraints, the numerics or the order of parameters, of
// inputs, of states or of outputs changes it. Inputs, states and parameters count by position. All else counts only if the outputs
// or the last versions of states depend on it; the order of stages matters only through the states that they read and write. A call
// counts as its callee's semantic hash with its arguments; inlining it changes the hash. The algorithm must be legal (verify.h).
std::string semantic_hash(const Algorithm &algorithm);
// The text that semantic_hash is taken of: one line for each dim, distinct expression, monoid and stage, numbered in the
// order in which the outputs need them.
std::string semantic_text(const Algorithm &algorithm);

// The addresses that a schedule can name: dims; tensors with role and dims; stages with kind, dims, reduced dims and
// parts; calls with scope, dims and callee's surface. Not their order, nor types, sizes, constraints or expressions, so
// fixing a dim's extent keeps it.
std::string surface_hash(const Algorithm &algorithm);
std::string surface_text(const Algorithm &algorithm);

}  // namespace tessera
