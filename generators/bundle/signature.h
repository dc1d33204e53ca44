// Signatures of bundles (docs/bundle.md, "signature"), and keys as files in PEM.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

using KeyBytes = std::array<unsigned char, 32>;

// The secret key of a file as `openssl genpkey -algorithm ed25519` writes it. UserError bundle.key for anything else.
KeyBytes read_secret_key(const std::filesystem::path &file);
// The public key of a file as `openssl pkey -pubout` writes it. UserError bundle.key.
KeyBytes read_public_key(const std::filesystem::path &file);

// The text of the member `signature`; `key` is a name for people. UserError bundle.key for a name that cannot be.
std::string signature_text(const std::string &manifest, const KeyBytes &secret, const std::string &key);

struct Signature {
    std::string key;
    KeyBytes public_key{};
};
// Who signed the manifest. UserErrors json.*; bundle.signature where the text is none, or is not of this manifest and key, or where
// `wanted` is another key.
Signature check_signature(const std::string &text, const std::string &manifest, const std::optional<KeyBytes> &wanted,
                          const std::string &subject);

std::string hexadecimal(const unsigned char *bytes, size_t count);

}  // namespace tessera
