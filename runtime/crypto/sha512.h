/** SHA-512 (FIPS 180-4) of a message that comes in parts; Ed25519 hashes with it. */
#ifndef TESSERA_CRYPTO_SHA512_H
#define TESSERA_CRYPTO_SHA512_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_SHA512_BYTES = 64, TESS_SHA512_BLOCK_BYTES = 128 };

typedef struct TessSha512 {
    uint64_t state[8], bytes; /**< bytes of the message so far */
    unsigned char block[TESS_SHA512_BLOCK_BYTES];
} TessSha512;

void tess_sha512_begin(TessSha512 *sha);
void tess_sha512_add(TessSha512 *sha, const void *bytes, uint64_t size);
void tess_sha512_end(TessSha512 *sha, unsigned char hash[TESS_SHA512_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
