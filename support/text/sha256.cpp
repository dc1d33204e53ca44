#include "support/text/sha256.h"

namespace tessera {

std::string Sha256::text() const {
    TessSha256 sha = sha_;
    unsigned char hash[TESS_SHA256_BYTES];
    tess_sha256_end(&sha, hash);
    std::string text = "sha256:";
    for (const unsigned char byte : hash)
        for (const int shift : {4, 0}) text += "0123456789abcdef"[byte >> shift & 15];
    return text;
}

std::string sha256(std::string_view bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.text();
}

}  // namespace tessera
