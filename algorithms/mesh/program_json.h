// JSON of programs over a mesh, an exact round trip (tessera-mesh-program.schema.json). Parts and declarations are algorithms as
// text/json.h writes them; what is declared has no steps, and its tensors are inputs but for states.
//
//   { "format": "tessera-mesh-program", "version": 1, "mesh": [["data", 2]],
//     "declares": {…, "dims": […], "parameters": […], "tensors": […]},
//     "placements": {"x": {"data": {"shard": "M.data"}}, "acc.partial": {"data": {"partial": "K.data.chunks", "monoid": "sum"}}},
//     "steps": [{"part": {…}}, {"collective": {"kind": "all_reduce", "axis": "data", "tensor": "acc.partial", "result": "acc",
//                                              "monoid": "sum"}}],
//     "outputs": [["y", "y.placed"]] }
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "algorithms/mesh/program.h"

namespace tessera {

inline constexpr const char *mesh_program_format = "tessera-mesh-program";
inline constexpr int mesh_program_version = 1;

nlohmann::json to_json(const MeshProgram &program);
// The inverse. It checks the form; verify (program.h) says whether the value is a legal program. UserErrors of algorithm_from_json.
MeshProgram mesh_program_from_json(const nlohmann::json &value);

}  // namespace tessera
