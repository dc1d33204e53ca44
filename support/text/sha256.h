#pragma once
#include <string>
#include <string_view>

#include "runtime/crypto/sha256.h"

namespace tessera {

// "sha256:<64 hexadecimal digits>" (FIPS 180-4).
std::string sha256(std::string_view bytes);

// The same of bytes that come in parts.
class Sha256 {
public:
    Sha256() { tess_sha256_begin(&sha_); }
    void add(std::string_view bytes) { tess_sha256_add(&sha_, bytes.data(), bytes.size()); }
    std::string text() const;  // of all that was added

private:
    TessSha256 sha_;
};

}  // namespace tessera
