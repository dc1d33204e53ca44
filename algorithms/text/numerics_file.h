// A numerics policy as a file, by tessera-numerics.schema.json: {"format": "tessera-numerics", "version": 1, "name": "mine", "storage":
// "bf16", "outputs": "f32", "states": "f32", "weights": "nvfp4", "compute": "f32", "accumulate": "f32", "rounding": "nearest_even",
// "saturate": false, "denormals": "gradual"}. All but name and storage may be left out: compute is then f32, or f64 for storage in f64,
// accumulate is compute, outputs, states and weights are storage, and denormals are "any". A policy may be given by the path of one
// wherever it is given by name.
#pragma once
#include <filesystem>

#include "algorithms/ir/numerics.h"

namespace tessera {

// A file is read as input from strangers. UserErrors: numerics.file no regular file · numerics.too-large over 1 MiB · json.* with the
// place (json_parse.h, json_reader.h) · numerics.format · numerics.policy as check · numerics.duplicate for the name of one of Tessera's.
Numerics read_numerics(const std::filesystem::path &file);

}  // namespace tessera
