// What the arguments of a tile program say of its dims.
#pragma once
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// The dims whose extents an argument states; for a packed argument, those of the operand; of what is in half bytes, those of its elements.
const std::vector<std::string> &carried_dims(const Argument &argument);
// The tensor that a caller passes: in the place of a packed argument its operand.
Tensor declared_tensor(const Argument &argument);
// The dims that the argument table lists, in order: all but derived ones that no argument carries.
std::vector<Dim> spec_dims(const TileProgram &program);
// A size by the extents of those dims alone.
Expr in_spec_dims(const Expr &size, const TileProgram &program);
// Whether the kernel packs an operand ahead of time.
bool is_packing(const TileProgram &program);

}  // namespace tessera
