// Whether a bundle is what its manifest says, and whether its code comes again from what it was made from.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "generators/bundle/bundle.h"
#include "generators/bundle/signature.h"
#include "generators/registry/registry.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct BundleCheck {
    std::vector<std::string> passed;    // a line each
    std::vector<std::string> problems;  // the words of UserErrors
};

// Hashes of all members; tensors against the header of weights.safetensors; heads of packed tensors; libraries against the manifests that
// generate wrote; algorithms against their hashes; names of schedules; replay; the signature, which must be of
// `wanted` where that is given.
BundleCheck check_bundle(const Bundle &bundle, const std::optional<KeyBytes> &wanted);

// Generates each library again from programs and schedules, and compares archive, header and hashes of bits; packs the weights again. A
// library without its programs is a problem. `limits` are those of compiling one kernel.
BundleCheck rebuild_bundle(const Registry &registry, const Bundle &bundle, const Limits &limits);

}  // namespace tessera
