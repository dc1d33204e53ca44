// Rewritten stages between collectives, made into the parts of a program.
#pragma once
#include "algorithms/mesh/program.h"

namespace tessera {

// What a rewrite makes, in order.
using MeshItem = std::variant<Stage, Collective>;

// The program with its steps: the stages that outputs and states need, each in the last part that can have it, one part between two
// collectives. Stages that make offsets of rows are in each part that reads them. `program` has its mesh, tensors of callers, outputs, and
// the dims and tensors that items use; `algorithm` is what the rewrite was of. UserError mesh.ragged: offsets of a state that is written.
MeshProgram with_parts(MeshProgram program, const Algorithm &algorithm, const std::vector<MeshItem> &items);

}  // namespace tessera
