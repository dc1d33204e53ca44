// A bundle that is open: its manifest, and its members where the manifest says that they are.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "generators/bundle/format.h"
#include "support/files/stored_zip.h"

namespace tessera {

inline constexpr uint64_t bundle_max_manifest = 16u << 20, bundle_max_archive = uint64_t{1} << 30, bundle_max_text = 16u << 20;

class Bundle {
public:
    // UserErrors of StoredZip and parse_bundle_manifest; bundle.members where the zip has other members than the manifest; bundle.manifest
    // where the text is not the one that text_of gives. Hashes are not compared.
    explicit Bundle(const std::filesystem::path &file);

    const StoredZip &zip() const { return zip_; }
    const std::string &subject() const { return subject_; }
    const BundleManifest &manifest() const { return manifest_; }
    const std::string &manifest_text() const { return text_; }
    const std::optional<std::string> &signature_text() const { return signature_; }

    // A member's bytes, which have the hash that the manifest states. UserErrors bundle.hash; bundle.too-large.
    std::string read(const std::string &path, uint64_t most) const;
    // Compares the hash without keeping the bytes.
    void check_hash(const BundleMember &member) const;

private:
    [[noreturn]] void refuse(const char *id, const std::string &why) const;
    StoredZip zip_;
    std::string subject_, text_;
    BundleManifest manifest_;
    std::optional<std::string> signature_;
};

}  // namespace tessera
