// The manifest of a generated kernel: what went in and what came out, with every hash. It has no times and no paths, so
// equal inputs give equal manifests.
//
//   { "format": "tessera-manifest", "version": 1, "tessera", "halide", "kernel",
//     "algorithm": {"name", "semantic", "surface"}, "numerics", "fixed": {dim: extent},
//     "target": {"name", "arch", "features"},
//     "schedule": null | {"name", "chain": [{"name", "file"?, "hash"}]},
//     "variants": [{"when": [condition], "resolved"}],
//     "files": {file: hash} }
#pragma once
#include <map>
#include <string>

#include "generators/prepare.h"

namespace tessera {

// `files` maps the names of files to their contents.
std::string manifest_of(const PreparedKernel &prepared, const std::map<std::string, std::string> &files);

const char *tessera_version();
const char *halide_version();

}  // namespace tessera
