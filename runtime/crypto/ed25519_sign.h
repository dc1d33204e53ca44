/** Signatures of Ed25519 (RFC 8032, section 5.1): for tools that make bundles. An object of its own, which no server links. */
#ifndef TESSERA_CRYPTO_ED25519_SIGN_H
#define TESSERA_CRYPTO_ED25519_SIGN_H

#include "runtime/crypto/ed25519.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The public key of a secret one, which is 32 random bytes. */
void tess_ed25519_public_key(const unsigned char secret_key[TESS_ED25519_KEY_BYTES], unsigned char public_key[TESS_ED25519_KEY_BYTES]);

/** The signature of a message. No branch and no address depends on the secret key, and it is wiped from the stack. */
void tess_ed25519_sign(const unsigned char secret_key[TESS_ED25519_KEY_BYTES], const void *message, uint64_t bytes,
                       unsigned char signature[TESS_ED25519_SIGNATURE_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
