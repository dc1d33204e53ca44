// Where a layout places what callers give and get.
#pragma once
#include "algorithms/mesh/mesh.h"

namespace tessera {

// Axis -> dim of the algorithm.
using Cut = std::map<std::string, std::string>;

// Whether the layout can be one of the algorithm: the UserErrors of shard() that no stage is needed for.
void check(const Algorithm &algorithm, const Mesh &mesh, const Layout &layout);

// The dims of a tensor that the layout cuts. UserError mesh.twice.
Cut cut_of(const Algorithm &algorithm, const Layout &layout, const std::string &tensor, const std::vector<std::string> &dims);

}  // namespace tessera
