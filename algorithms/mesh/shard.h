// What one rank of a mesh computes of an algorithm: a rewrite of dims.
//
//   MeshProgram per_rank = shard(algorithm, mesh_named("data=2"), layout_named(algorithm, "M=data"));
//
// A dim |d| on an axis of n ranks becomes |d| / n, and its index the rank's coordinate times |d| / n, plus the index: so masks, positions
// and the numbers of random elements are those of the whole. For each stage, where d is
//
//   one of its dims                        each rank has its part of the result
//   folded                                 each rank folds its chunks; then all_reduce of sums, products, and maxima and minima that are
//                                          NaN where an element is (max_monoid, not max_number_monoid), reduce_scatter where another of its
//                                          dims is on the axis; of other monoids an all_gather of what the chunks gave, and a fold of these
//                                          on each rank
//   a scatter's computed position          likewise, each rank with a copy of all positions
//   absent                                 every rank of the axis computes the same
// and a tensor that is read at another index than d's own is gathered first; or, where it is cut along another of its dims, exchanged by an
// all_to_all. What is folded or gathered once is used by all later stages.
//
// Where several dims of a stage are on one axis, the one is taken that moves the fewest bytes; of equal ones the first, and dims of the
// result come before folded ones. Of those that a monoid folds that is not commutative only the outermost may be cut. Scans run along whole
// dims, and so do stages with ragged rows: what they read is gathered.
//
// Inputs, states and outputs are placed as the layout says of their dims, the first of them where two are on one axis. States are updated
// where they lie.
//
// Bits: with Layout::chunks, the results are the same for all numbers of ranks that divide it. They are those of the algorithm itself
// where no fold of floats is cut, where one rank folds one chunk, and where the fold is exact.
#pragma once
#include "algorithms/mesh/program.h"

namespace tessera {

// UserErrors, with stage, dim, axis and placements: mesh.axis; mesh.unknown-axis; mesh.unknown-dim; mesh.unknown-tensor; mesh.extent: a
// dim on an axis is not fixed (bind_extents); mesh.divides; mesh.chunks; mesh.ragged: sizes of other dims depend on the dim's index, or
// are of a state that is written between collectives; mesh.twice: two dims of a tensor on one axis, by the layout's word on it, or a dim
// twice in a tensor; mesh.state: a stage writes a state where another rank has it, or two states that are placed differently;
// mesh.repeat: a call that repeats.
MeshProgram shard(const Algorithm &algorithm, const Mesh &mesh, const Layout &layout);

}  // namespace tessera
