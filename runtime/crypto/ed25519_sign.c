#include "runtime/crypto/ed25519_sign.h"

#include "runtime/crypto/edwards25519.h"
#include "runtime/crypto/sha512.h"

/* Not left out as a store that nobody reads. */
static void wipe(void *bytes, uint64_t size) {
    volatile unsigned char *byte = bytes;
    for (; size > 0; --size) *byte++ = 0;
}

/* A number times the base point: all 256 bits double and add, and the sum is taken where the bit is set. */
static void base_times(const unsigned char scalar[TESS_SCALAR_BYTES], unsigned char bytes[TESS_POINT_BYTES]) {
    const TessPoint base = tess_point_base();
    TessPoint point = tess_point_zero(), sum;
    int bit;
    for (bit = 255; bit >= 0; --bit) {
        point = tess_point_double(&point);
        sum = tess_point_add(&point, &base);
        point = tess_point_select(&point, &sum, (TessLimb)0 - (TessLimb)tess_scalar_bit(scalar, bit));
    }
    tess_point_write(&point, bytes);
    wipe(&point, sizeof point);
    wipe(&sum, sizeof sum);
}

/* A secret key is hashed to the number, and what makes the nonces. */
static void expand(const unsigned char secret_key[TESS_ED25519_KEY_BYTES], unsigned char expanded[TESS_SHA512_BYTES]) {
    TessSha512 sha;
    tess_sha512_begin(&sha);
    tess_sha512_add(&sha, secret_key, TESS_ED25519_KEY_BYTES);
    tess_sha512_end(&sha, expanded);
    wipe(&sha, sizeof sha);
    expanded[0] &= 248;
    expanded[31] &= 127;
    expanded[31] |= 64;
}

void tess_ed25519_public_key(const unsigned char secret_key[TESS_ED25519_KEY_BYTES], unsigned char public_key[TESS_ED25519_KEY_BYTES]) {
    unsigned char expanded[TESS_SHA512_BYTES];
    expand(secret_key, expanded);
    base_times(expanded, public_key);
    wipe(expanded, sizeof expanded);
}

void tess_ed25519_sign(const unsigned char secret_key[TESS_ED25519_KEY_BYTES], const void *message, uint64_t bytes,
                       unsigned char signature[TESS_ED25519_SIGNATURE_BYTES]) {
    unsigned char expanded[TESS_SHA512_BYTES], hash[TESS_SHA512_BYTES], nonce[TESS_SCALAR_BYTES], k[TESS_SCALAR_BYTES];
    unsigned char public_key[TESS_ED25519_KEY_BYTES];
    TessSha512 sha;
    expand(secret_key, expanded);
    base_times(expanded, public_key);
    tess_sha512_begin(&sha);
    tess_sha512_add(&sha, expanded + 32, 32);
    tess_sha512_add(&sha, message, bytes);
    tess_sha512_end(&sha, hash);
    tess_scalar_reduce(hash, nonce);
    base_times(nonce, signature);
    tess_sha512_begin(&sha);
    tess_sha512_add(&sha, signature, TESS_POINT_BYTES);
    tess_sha512_add(&sha, public_key, TESS_POINT_BYTES);
    tess_sha512_add(&sha, message, bytes);
    tess_sha512_end(&sha, hash);
    tess_scalar_reduce(hash, k);
    tess_scalar_mul_add(k, expanded, nonce, signature + TESS_POINT_BYTES);
    wipe(expanded, sizeof expanded);
    wipe(nonce, sizeof nonce);
    wipe(hash, sizeof hash);
    wipe(&sha, sizeof sha);
}
