/** Ed25519 (RFC 8032, section 5.1, without a context): whether a signature is of a message and a key. Constant memory, below 4 KB of stack.
 *
 *  An object of its own that only a program links which names it: give it to TessBundleOptions where bundles must be signed. */
#ifndef TESSERA_CRYPTO_ED25519_H
#define TESSERA_CRYPTO_ED25519_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_ED25519_KEY_BYTES = 32, TESS_ED25519_SIGNATURE_BYTES = 64 };

/** 1 where it is, else 0. Strict: S is below L, the key is in its right form and of no small order, R is of no small order, and R is
 *  compared by its bytes. So one message and key have no second signature that others could make. */
int tess_ed25519_verify(const unsigned char signature[TESS_ED25519_SIGNATURE_BYTES], const void *message, uint64_t bytes,
                        const unsigned char public_key[TESS_ED25519_KEY_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
