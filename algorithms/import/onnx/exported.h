// Functions that Tessera exported (algorithms/export/onnx): a function of the domain `tessera` says in its metadata which algorithm it was
// made of, so importing gives that algorithm again, and not what its nodes say of it. A function whose nodes were changed since is imported
// by its nodes, as any other.
#pragma once
#include <optional>

#include "algorithms/import/onnx/imported.h"
#include "algorithms/ir/algorithm.h"

namespace tessera::onnx {

inline constexpr const char *exported_domain = "tessera";
// Keys of metadata_props.
inline constexpr const char *exported_hash = "tessera.semantic_hash";
inline constexpr const char *exported_algorithm = "tessera.algorithm";  // its JSON (algorithms/text/json.h)
inline constexpr const char *exported_body = "tessera.body";            // body_digest
inline constexpr const char *exported_dim = "tessera.dim.";             // and a dim's name: its constraints, for people

// What a function gives: the algorithm's outputs, then what its states have become.
std::vector<Tensor> exported_results(const Algorithm &algorithm);

// The hash of a function's nodes, and of those of functions that they call. Names of nodes do not count.
std::string body_digest(const ModelFunction &function, const Model &model);

// The algorithm that a function was made of. Nothing where it does not say so, where its nodes are others now, or where the algorithm is
// not legal or not the one whose hash it has.
std::optional<Algorithm> exported_algorithm_of(const ModelFunction &function, const Model &model);

// The whole model, where its graph is one call of such a function. Nothing where it is not, or where the options ask for what only an
// import by nodes can do (`bind`, `multiples`, `until`).
std::optional<Imported> import_exported(const Model &model, const ImportOptions &options);

}  // namespace tessera::onnx
