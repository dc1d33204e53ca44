#include "runtime/crypto/ed25519.h"

#include <string.h>

#include "runtime/crypto/edwards25519.h"
#include "runtime/crypto/sha512.h"

int tess_ed25519_verify(const unsigned char signature[TESS_ED25519_SIGNATURE_BYTES], const void *message, uint64_t bytes,
                        const unsigned char public_key[TESS_ED25519_KEY_BYTES]) {
    const unsigned char *r = signature, *s = signature + TESS_POINT_BYTES;
    unsigned char hash[TESS_SHA512_BYTES], k[TESS_SCALAR_BYTES], again[TESS_POINT_BYTES];
    TessPoint key, sums[3], point = tess_point_zero();
    TessSha512 sha;
    int bit;
    if (!tess_scalar_is_reduced(s) || !tess_point_read(public_key, &key) || tess_point_is_small(&key)) return 0;
    tess_sha512_begin(&sha);
    tess_sha512_add(&sha, r, TESS_POINT_BYTES);
    tess_sha512_add(&sha, public_key, TESS_POINT_BYTES);
    tess_sha512_add(&sha, message, bytes);
    tess_sha512_end(&sha, hash);
    tess_scalar_reduce(hash, k);
    /* s B - k A, both at once: every pair of bits adds one of the three sums. Nothing here is secret. */
    sums[0] = tess_point_base();
    sums[1] = tess_point_negated(&key);
    sums[2] = tess_point_add(&sums[0], &sums[1]);
    for (bit = 252; bit >= 0; --bit) {
        const int which = tess_scalar_bit(s, bit) + 2 * tess_scalar_bit(k, bit);
        point = tess_point_double(&point);
        if (which) point = tess_point_add(&point, &sums[which - 1]);
    }
    tess_point_write(&point, again);
    return memcmp(r, again, sizeof again) == 0 && !tess_point_is_small(&point);
}
