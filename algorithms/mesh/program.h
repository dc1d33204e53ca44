// A program over a mesh says what each rank computes, and when ranks exchange tensors. All ranks run the same text.
//
//   MeshProgram := name, Mesh, dims, parameters, [MeshTensor], [MeshStep], outputs
//   MeshStep    := Algorithm | Collective          in order
//   Collective  := kind, axis, tensor, result, monoid
//
// An Algorithm between collectives is a part: a kernel of its own, whose inputs, states and outputs are tensors of the program of the
// same name. So no kernel ever has a collective in it, and collectives stand where control is the same on every rank. A part knows its rank
// by parameters: `rank_parameter("data")` is the coordinate on the axis.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/mesh/mesh.h"

namespace tessera {

// Along an axis of n ranks. Dims are those of one rank; what moves does so along the outermost dim, as it lies in memory.
//   all_reduce      tensor (c, …) partial, result (…) replicate: the fold of all n c chunks
//   reduce_scatter  tensor (c, n e, …) partial, result (e, …) sharded along its outermost dim: part r of the fold
//   all_gather      tensor (e, …) sharded along its outermost dim, result (n e, …) replicate
//   all_to_all      tensor (n f, e, …) sharded along its second dim, result (n, f, e, …) sharded along its second: part i is from rank i
// Chunks are numbered over the ranks, those of rank r from r c on, and are the leaves of one tree: [0, C) is split behind its first 2^k
// chunks, 2^k the largest power of two below C, and so on. Each node is rounded to the type.
enum class CollectiveKind : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all };
constexpr CollectiveKind collective_kinds[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                                               CollectiveKind::all_to_all};
const char *name_of(CollectiveKind kind);

struct Collective {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::string axis, tensor, result;
    MeshMonoid monoid = MeshMonoid::sum;  // of a fold
    friend bool operator==(const Collective &, const Collective &) = default;
};
bool folds(const Collective &collective);

// What a rank has of a tensor.
struct MeshTensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::string> dims;  // outermost first; of a dim that is cut, the rank's part
    Placement placement;
    std::optional<Role> role = {};  // input or state; none: a step makes it
};

using MeshStep = std::variant<Algorithm, Collective>;

struct MeshProgram {
    std::string name;
    Mesh mesh;
    std::vector<Dim> dims;              // of its tensors
    std::vector<Parameter> parameters;  // the caller's, the same on all ranks
    std::vector<MeshTensor> tensors;
    std::vector<MeshStep> steps;
    std::vector<std::pair<std::string, std::string>> outputs;  // what the caller calls it, and the tensor

    const MeshTensor *find_tensor(const std::string &name) const;
    const MeshTensor &tensor(const std::string &name) const;  // InternalError where there is none
    const Dim *find_dim(const std::string &name) const;
};

// The parameter of parts that is the rank's coordinate on an axis, an i32.
std::string rank_parameter(const std::string &axis);

// The extent of a dim that is fixed, equal to such, or derived from such alone; 1 where it is not known.
int64_t known_extent(const std::vector<Dim> &dims, const std::string &name);

// Bytes that one rank sends in a collective, by the cheapest known way: (n - 1) / n of an all-gather's or a reduce-scatter's whole and of
// what a rank has for an all-to-all, twice that of an all-reduce. Dims whose extent no fixed ones decide count as 1.
int64_t bytes_sent(const MeshProgram &program, const Collective &collective);

// One line for each tensor and step; parts are named with what they read and make.
std::string to_text(const MeshProgram &program);
// The same, and each part's own text below its line.
std::string to_whole_text(const MeshProgram &program);

// The hash of what is computed and exchanged, the parts' semantic hashes in it (text/hash.h); names of tensors count.
std::string hash_of(const MeshProgram &program);

// Throws UserError mesh.<rule> where a value is no legal program: axis, tensor, order, placement, collective, part, output. Among the
// rules:
//   an axis cuts at most one dim of a tensor, and a dim is cut by at most one axis;
//   a collective takes a placement that its tensor has, and gives the one that follows;
//   what a part makes is the same on all ranks of an axis only if nothing that it is made of differs along it;
//   partial values go into collectives alone.
void verify(const MeshProgram &program);

}  // namespace tessera
