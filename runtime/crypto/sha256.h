/** SHA-256 (FIPS 180-4), by the processor's own instructions where it has them: 1 to 2 GB a second instead of 0.25. */
#ifndef TESSERA_CRYPTO_SHA256_H
#define TESSERA_CRYPTO_SHA256_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_SHA256_BYTES = 32, TESS_SHA256_BLOCK_BYTES = 64 };

/** A message that comes in parts. A copy goes on by itself. */
typedef struct TessSha256 {
    uint32_t state[8];
    uint64_t bytes; /**< of the message so far */
    unsigned char block[TESS_SHA256_BLOCK_BYTES];
} TessSha256;

void tess_sha256_begin(TessSha256 *sha);
/** `bytes` may be null where there are none. */
void tess_sha256_add(TessSha256 *sha, const void *bytes, uint64_t size);
void tess_sha256_end(TessSha256 *sha, unsigned char hash[TESS_SHA256_BYTES]);

/** The hash of `size` bytes. `bytes` may be null where there are none. */
void tess_sha256(const void *bytes, uint64_t size, unsigned char hash[TESS_SHA256_BYTES]);

/** The same in plain C, whatever the processor has. */
void tess_sha256_plain(const void *bytes, uint64_t size, unsigned char hash[TESS_SHA256_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
