// A mesh of ranks, and where the elements of a tensor lie on it.
//
//   Mesh      := [(axis, ranks)]                    ranks are numbered row-major: the last axis varies fastest
//   Layout    := dim -> axis; a tensor may say otherwise; chunks of a fold
//   Placement := for each axis  shard(dim) | partial(monoid) | replicate
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

struct MeshAxis {
    std::string name;
    int64_t ranks = 1;
    friend bool operator==(const MeshAxis &, const MeshAxis &) = default;
};

struct Mesh {
    std::vector<MeshAxis> axes;

    int64_t ranks() const;                            // of all axes
    int64_t ranks_on(const std::string &axis) const;  // InternalError where there is no such axis
    bool has(const std::string &axis) const;
    int64_t coordinate(int64_t rank, const std::string &axis) const;
    // The ranks that differ from this one along that axis alone, by their coordinate on it.
    std::vector<int64_t> group(int64_t rank, const std::string &axis) const;
    friend bool operator==(const Mesh &, const Mesh &) = default;
};
constexpr size_t max_mesh_axes = 8;         // TESS_MESH_MAX_AXES of runtime/mesh/mesh.h
constexpr int64_t max_mesh_ranks = 4096;    // TESS_MESH_MAX_RANKS of runtime/mesh/engine.h, of all axes together
constexpr int64_t max_mesh_chunks = 65536;  // TESS_MESH_MAX_CHUNKS

// "data=2,tensor=4". UserError mesh.text.
Mesh mesh_named(const std::string &text);
std::string to_string(const Mesh &mesh);
// UserError mesh.axis: a name that is none, twice the same, no rank on an axis, more than max_mesh_ranks of all axes.
void check(const Mesh &mesh);

// Which dims are cut along which axis: each rank then has so much of a dim. A dim that is not named is whole everywhere.
struct Layout {
    std::map<std::string, std::string> dims;                            // dim -> axis
    std::map<std::string, std::map<std::string, std::string>> tensors;  // input, state or output -> dim -> axis, "": whole
    // C of folds over dims that are cut: their elements are folded in C chunks, and these in a fixed tree, so the result is the same for
    // each number of ranks that divides C. 0: as many as ranks.
    int64_t chunks = 0;
};

// "M=data,w.N=tensor,w.K=": of an algorithm, since names of tensors and dims may both have points. UserError mesh.text,
// where it says something twice too.
Layout layout_named(const Algorithm &algorithm, const std::string &text, int64_t chunks = 0);

// What partial results are folded by, element by element: two to one, as TessMonoid of runtime/mesh/mesh.h. Of equal zeros a maximum or a
// minimum is the later one, and a NaN on either side is the result.
enum class MeshMonoid : uint8_t { sum, max, min, product };
constexpr MeshMonoid mesh_monoids[] = {MeshMonoid::sum, MeshMonoid::max, MeshMonoid::min, MeshMonoid::product};
const char *name_of(MeshMonoid monoid);

enum class PlacementKind : uint8_t { shard, partial };

// What a rank has along one axis. shard: its part of a dim, of which each rank has as much. partial: its chunks along a dim, which are to
// be folded over all ranks. `dim` is that of the tensor, as it is on one rank.
struct AxisPlacement {
    PlacementKind kind = PlacementKind::shard;
    std::string dim;
    MeshMonoid monoid = MeshMonoid::sum;  // partial
    friend bool operator==(const AxisPlacement &, const AxisPlacement &) = default;
};

// By axis. An axis that is missing: each of its ranks has the same.
using Placement = std::map<std::string, AxisPlacement>;
// "data: shard(M.data), tensor: replicate"; "replicate" where that is so of all axes.
std::string to_string(const Mesh &mesh, const Placement &placement);
std::string to_string(const Placement &placement, const std::string &axis);  // "shard(M.data)"

}  // namespace tessera
