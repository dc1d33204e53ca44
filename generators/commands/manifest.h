// The manifest of a generated library: what went in and what came out, with every hash. It has no times and no paths, so
// equal inputs give equal manifests.
//
//   { "format": "tessera-manifest", "version": 1, "tessera", "halide", "emit", "kernel",
//     "algorithm": {"name", "semantic", "surface"}, "options": {name: integer}, "numerics", "policy": its words, "effects": [name],
//     "fixed": {dim: extent}, "arguments": [{"name", "role": "input" | "output" | "inout", "dtype", "dims"}], "parameters",
//     "constants": [{"name", "dtype", "bytes"}],
//     "targets": [{"name", "arch", "features",
//                  "schedule": null | {"name", "match": "named" | "exact" | "nearest" | "family" | "derived",
//                               "chain": [{"name", "file"?, "hash"}],
//                               "tuned_for": {dim: integer}?},
//                  "variants": [{"when": [condition], "resolved", "bytes"}],
//                  "packings": [{"function", "operand", "layout": [axis], "layout_hash", "variants"}],
//                  "certificate": certificate_json? (generate --certificate), "bytes"}],
//     "entry_bytes", "symbols": {"public": [name], "needs": [name]},
//     "licences": {"embedded": [], "linked": [{"name", "licence", "text"}]},
//     "files": {file: hash} }
//
// A module (module.h) has "library", its name, in place of "kernel", and "kernels": for each the fields from "kernel" to "constants", and
// "targets" with "name", "schedule", "variants" and "packings". Its own "targets" have the rest.
//
// `match` says how the schedule was come by (best_match.h); of the nearest, `tuned_for` are the extents that it was tuned for.
// Targets are in the order in which the library tries them, variants as well. A variant's bytes are its code, a target's its
// objects with constants and callees, those of the entry what all share; null where the object is not ELF. `packings` are of the operands
// that the kernel takes packed, and `layout_hash` stands in the header of what their functions write. `needs` are the functions
// that the library calls and does not have. Licences are of what is in the library, and of what it has to be linked with;
// `text` is the file in Tessera's folder of documents. "emit" is the name of the emitter; of one that makes no objects there is no Halide,
// and "halide", bytes and "symbols" are left out.
#pragma once
#include <map>
#include <string>

#include "compiler/emit/emitter.h"
#include "generators/certify/certificate_json.h"
#include "generators/kernel/prepared_library.h"

namespace tessera {

// `files` maps the names of files to their contents; `archive`, the library or its C, is one of them.
// `request` asks for certificates of errors, or is null.
std::string manifest_of(const PreparedLibrary &library, const Emitter &emitter, const std::string &archive,
                        const std::map<std::string, std::string> &files, const CertificateRequest *request = nullptr);

}  // namespace tessera
