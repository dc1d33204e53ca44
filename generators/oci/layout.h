// A folder in OCI's image layout (https://github.com/opencontainers/image-spec, image-layout.md): `oci-layout`, `index.json`, and blobs by
// the hash of their bytes. Other tools push and pull such folders; here they are files from strangers.
//
// Whoever writes holds an exclusive lock on `oci-layout`, whoever reads a shared one. Each file is made beside its place and renamed, the
// index last, so a process that is killed leaves a folder with the index from before, and perhaps blobs that nothing names.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/files/untrusted_file.h"

namespace tessera {

inline constexpr const char *oci_manifest_type = "application/vnd.oci.image.manifest.v1+json",
                            *oci_index_type = "application/vnd.oci.image.index.v1+json",
                            *oci_empty_type = "application/vnd.oci.empty.v1+json", *oci_ref_name = "org.opencontainers.image.ref.name",
                            *oci_title = "org.opencontainers.image.title";
inline constexpr uint64_t oci_max_document = 16u << 20;
inline constexpr size_t oci_max_entries = 100'000;

// What a document says of a blob.
struct OciDescriptor {
    std::string media_type, digest;  // "sha256:" and 64 hexadecimal digits
    uint64_t size = 0;
    std::string artifact_type = {};
    std::map<std::string, std::string> annotations = {};
    friend bool operator==(const OciDescriptor &, const OciDescriptor &) = default;
};

struct OciManifest {
    std::string artifact_type;
    OciDescriptor config;
    std::vector<OciDescriptor> layers;
    std::map<std::string, std::string> annotations;
};

std::string text_of(const OciManifest &manifest);
// UserErrors json.*; registry.document for another schema, a digest that is none of SHA-256, or too many entries. Fields that are not known
// are left out: the specification allows them.
OciManifest parse_oci_manifest(const std::string &text, const std::string &subject);

class OciLayout {
public:
    enum class For { reading, writing };

    // Takes the lock, which goes with the object. For writing, a folder that is not there or is empty becomes a layout. UserErrors
    // registry.folder where it is none; registry.document where its files are not as they should be.
    OciLayout(const std::filesystem::path &folder, For purpose);
    ~OciLayout();
    OciLayout(const OciLayout &) = delete;
    OciLayout &operator=(const OciLayout &) = delete;

    const std::filesystem::path &folder() const { return folder_; }
    // What index.json names, in its order.
    const std::vector<OciDescriptor> &entries() const { return entries_; }
    const OciDescriptor *find(const std::string &name) const;  // by its ref name; null where there is none

    // A blob that is at most `most` bytes, with its hash. UserErrors registry.blob where it is not there, or has another size or hash.
    std::string read(const OciDescriptor &descriptor, uint64_t most) const;
    // The file of a blob of the right size; check_hash reads it.
    std::shared_ptr<const RegularFile> file(const OciDescriptor &descriptor) const;
    void check_hash(const OciDescriptor &descriptor) const;

    // Adds a blob of these bytes; `each` gives them part by part, as often as it is asked. One that is there with these bytes stays.
    OciDescriptor add(const std::string &media_type, const std::function<void(const std::function<void(std::string_view)> &)> &each);
    OciDescriptor add(const std::string &media_type, const std::string &text);
    // Replaces index.json.
    void set_entries(std::vector<OciDescriptor> entries);

    struct Stray {
        std::string name;      // below blobs/sha256
        bool is_blob = false;  // a regular file with a name that a blob can have
        uint64_t bytes = 0;
    };
    // All that lies in blobs/sha256.
    std::vector<Stray> stored() const;
    void remove(const std::string &digits);
    // Folders that killed processes left are removed, those of others that run stay.
    void remove_abandoned();

private:
    [[noreturn]] void refuse(const char *id, const std::string &why) const;
    void begin();
    void read_index();
    std::filesystem::path folder_;
    int lock_ = -1;
    std::vector<OciDescriptor> entries_;
};

// Whether a text is "sha256:" and 64 lower-case hexadecimal digits.
bool is_oci_digest(std::string_view text);

}  // namespace tessera
