// Makes bundles of what `generate` wrote.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/expr/dtype.h"
#include "generators/bundle/format.h"

namespace tessera {

struct BundleRequest {
    std::filesystem::path file;
    std::string name;                            // "" for that of the file
    std::vector<std::filesystem::path> folders;  // that `generate` wrote to
    std::vector<std::string> weights;            // "<file>" or "<kernel>=<file>": safetensors or GGUF
    std::optional<DType> floats = {};            // of weights: see WeightsFile
    std::vector<std::string> bindings;           // "<kernel>.<argument>=<tensor>" or "<argument>=<tensor>"
    std::vector<std::filesystem::path> records, licences, assets;
    std::optional<std::filesystem::path> replay;  // a folder with expected.json and, where that names tensors, inputs.safetensors
    // Signs the manifest's text: gives the member `signature`.
    std::function<std::string(const std::string &manifest)> sign = {};
};

struct MadeBundle {
    BundleManifest manifest;
    std::vector<std::string> notes;  // weights that stay unpacked, were rounded or are bound to no argument, and why
};

// Writes the bundle, whole or not at all. Equal files make equal bundles, whatever their folders are called. An argument is bound to the
// tensor <kernel>.<argument>, or else <argument>, where the weights have it, or to the one that `bindings` says. Tensors of
// "<kernel>=<file>" are called <kernel>.<name>. UserErrors of read_generated, WeightsFile, read_examples, write_stored_zip; bundle.folder,
// bundle.file, bundle.too-large for what is not there or too large; bundle.version for libraries of several versions of Tessera;
// bundle.target, bundle.kernel, bundle.repeated where libraries do not go together; bundle.weight for a binding of nothing, weights of no
// kernel, or another type or shape than the argument's; safetensors.repeated for two tensors of one name.
MadeBundle make_bundle(const BundleRequest &request);

}  // namespace tessera
