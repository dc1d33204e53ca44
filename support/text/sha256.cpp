#include "support/text/sha256.h"

#include <openssl/evp.h>

#include "support/text/error.h"

namespace tessera {

std::string sha256(std::string_view bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    require(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1, "SHA-256 failed");
    std::string text = "sha256:";
    for (unsigned int i = 0; i < size; i++) {
        text += "0123456789abcdef"[digest[i] >> 4];
        text += "0123456789abcdef"[digest[i] & 15];
    }
    return text;
}

}  // namespace tessera
