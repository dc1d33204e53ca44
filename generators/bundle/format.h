// manifest.json of a bundle as a value, written and read (docs/bundle.md, schedules/tessera-bundle.schema.json).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

inline constexpr const char *bundle_format = "tessera-bundle", *bundle_manifest_member = "manifest.json",
                            *bundle_signature_member = "signature", *bundle_weights_member = "weights.safetensors",
                            *bundle_replay_member = "replay/expected.json", *bundle_replay_inputs_member = "replay/inputs.safetensors";
inline constexpr int bundle_version = 1;

struct BundleTarget {
    std::string name, arch;
    std::vector<std::string> features;
    friend bool operator==(const BundleTarget &, const BundleTarget &) = default;
};

struct BundleLibrary {
    std::string name;
    bool is_module = false;
    std::vector<std::string> targets;       // best first
    std::string archive, header, manifest;  // members
};

struct BundleArgument {
    std::string name, role, dtype;
    std::vector<std::string> dims;
    friend bool operator==(const BundleArgument &, const BundleArgument &) = default;
};

struct BundleParameter {
    std::string name, dtype;
    friend bool operator==(const BundleParameter &, const BundleParameter &) = default;
};

// An argument that code takes packed.
struct BundlePacking {
    std::string argument, layout, function;
};

struct BundleCode {
    std::string target;
    size_t library = 0;
    std::string bits, schedule;  // "" for plain loops
    std::vector<BundlePacking> packed;
};

struct BundleWeight {
    std::string argument;
    size_t tensor = 0;
};

struct BundleKernel {
    std::string name;
    std::string algorithm, semantic, surface, numerics;
    std::optional<std::string> program;  // a member
    std::map<std::string, int64_t> options, fixed;
    std::vector<BundleArgument> arguments;
    std::vector<BundleParameter> parameters;
    std::vector<BundleCode> code;  // in the order of the bundle's targets
    std::vector<BundleWeight> weights;
};

// Types are those of safetensors and, of integers of 4 bits, I4 and U4. Where a type has 4 bits, `dims` count elements, of which a byte has
// two, and rows are of even length.
struct BundleTensor {
    std::string name, type;
    std::vector<int64_t> dims;
    uint64_t offset = 0, bytes = 0;

    bool is_in_half_bytes() const { return type == "F4" || type == "I4" || type == "U4"; }
    // Whether weights.safetensors has it under this type and shape: as it is or, of 4 bits, as bytes.
    bool is_stored_as(const std::string &stored, const std::vector<int64_t> &extents) const;
};

struct BundlePackedTensor {
    size_t tensor = 0;
    std::string layout, member;
};

struct BundleLicence {
    std::string name, licence;
    std::optional<std::string> member;
};

struct BundleMember {
    std::string path;
    uint64_t offset = 0, bytes = 0;
    std::string sha256;
};

struct BundleManifest {
    std::string tessera, halide, name;
    std::vector<BundleTarget> targets;  // best first
    std::vector<BundleLibrary> libraries;
    std::vector<BundleKernel> kernels;
    std::vector<BundleTensor> tensors;
    std::vector<BundlePackedTensor> packed;
    std::vector<BundleLicence> licences;
    std::optional<std::string> replay;
    std::vector<BundleMember> members;
    uint64_t end = 0;

    const BundleMember *find(std::string_view path) const;  // null where there is none
};

// The text, which is the only one of this value.
std::string text_of(const BundleManifest &manifest);
// The value of a text from strangers. UserErrors json.*; bundle.version; bundle.manifest where it contradicts itself: a number of nothing,
// a member that is not listed, a name twice, members in another order.
BundleManifest parse_bundle_manifest(std::string_view text, const std::string &subject);

// Where a member comes in the file: before those of a larger one.
std::pair<int, std::string> bundle_order(const std::string &path);
// "code/avx512,avx2": the folder of what a library has for its targets.
std::string folder_of_targets(const std::string &first, const std::vector<std::string> &targets);
// Best first: by arch, then the one of most features, then by name.
bool is_better_target(const BundleTarget &a, const BundleTarget &b);

}  // namespace tessera
