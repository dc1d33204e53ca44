// The reference interpreter over ranks: one process runs all ranks of a program in lock step. A part is evaluated for one rank after the
// other (evaluate/reference.h), and a collective is a function of the arrays of its ranks.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/evaluate/reference.h"
#include "algorithms/mesh/program.h"

namespace tessera {

using Arrays = std::map<std::string, Array>;

// What each rank has of whole tensors, by their placement; `whole` is by the names of inputs and states. UserError mesh.array where an
// array is missing or its shape is no multiple of what a rank has.
std::vector<Arrays> placed(const MeshProgram &program, const Arrays &whole);

// Runs the program: for each rank its outputs, by the caller's names, and states. `given` has each rank's inputs and states. Extents of
// symbolic dims that no tensor has come from `extents`. Errors of `evaluate`.
std::vector<Arrays> evaluate_ranks(const MeshProgram &program, std::vector<Arrays> given,
                                   const std::map<std::string, Scalar> &parameters = {}, const Extents &extents = {});

// Whole outputs and states of what ranks have. UserError mesh.array where ranks of an axis along which it is replicated have different
// bits.
Arrays gathered(const MeshProgram &program, const std::vector<Arrays> &ranks);

// All three, one after the other.
Arrays evaluate_whole(const MeshProgram &program, const Arrays &whole, const std::map<std::string, Scalar> &parameters = {},
                      const Extents &extents = {});

// What each rank of a group has after the collective; `given[r]` is that of the rank with coordinate r.
std::vector<Array> exchanged(const Collective &collective, const std::vector<Array> &given);

}  // namespace tessera
