#include "runtime/crypto/sha512.h"

#include <string.h>

enum { ROUNDS = 80, LENGTH_AT = 112 };

/* The first 64 bits of the fractional parts of the cube roots of the first 80 primes. */
static const uint64_t round_constants[ROUNDS] = {
    UINT64_C(0x428a2f98d728ae22), UINT64_C(0x7137449123ef65cd), UINT64_C(0xb5c0fbcfec4d3b2f), UINT64_C(0xe9b5dba58189dbbc),
    UINT64_C(0x3956c25bf348b538), UINT64_C(0x59f111f1b605d019), UINT64_C(0x923f82a4af194f9b), UINT64_C(0xab1c5ed5da6d8118),
    UINT64_C(0xd807aa98a3030242), UINT64_C(0x12835b0145706fbe), UINT64_C(0x243185be4ee4b28c), UINT64_C(0x550c7dc3d5ffb4e2),
    UINT64_C(0x72be5d74f27b896f), UINT64_C(0x80deb1fe3b1696b1), UINT64_C(0x9bdc06a725c71235), UINT64_C(0xc19bf174cf692694),
    UINT64_C(0xe49b69c19ef14ad2), UINT64_C(0xefbe4786384f25e3), UINT64_C(0x0fc19dc68b8cd5b5), UINT64_C(0x240ca1cc77ac9c65),
    UINT64_C(0x2de92c6f592b0275), UINT64_C(0x4a7484aa6ea6e483), UINT64_C(0x5cb0a9dcbd41fbd4), UINT64_C(0x76f988da831153b5),
    UINT64_C(0x983e5152ee66dfab), UINT64_C(0xa831c66d2db43210), UINT64_C(0xb00327c898fb213f), UINT64_C(0xbf597fc7beef0ee4),
    UINT64_C(0xc6e00bf33da88fc2), UINT64_C(0xd5a79147930aa725), UINT64_C(0x06ca6351e003826f), UINT64_C(0x142929670a0e6e70),
    UINT64_C(0x27b70a8546d22ffc), UINT64_C(0x2e1b21385c26c926), UINT64_C(0x4d2c6dfc5ac42aed), UINT64_C(0x53380d139d95b3df),
    UINT64_C(0x650a73548baf63de), UINT64_C(0x766a0abb3c77b2a8), UINT64_C(0x81c2c92e47edaee6), UINT64_C(0x92722c851482353b),
    UINT64_C(0xa2bfe8a14cf10364), UINT64_C(0xa81a664bbc423001), UINT64_C(0xc24b8b70d0f89791), UINT64_C(0xc76c51a30654be30),
    UINT64_C(0xd192e819d6ef5218), UINT64_C(0xd69906245565a910), UINT64_C(0xf40e35855771202a), UINT64_C(0x106aa07032bbd1b8),
    UINT64_C(0x19a4c116b8d2d0c8), UINT64_C(0x1e376c085141ab53), UINT64_C(0x2748774cdf8eeb99), UINT64_C(0x34b0bcb5e19b48a8),
    UINT64_C(0x391c0cb3c5c95a63), UINT64_C(0x4ed8aa4ae3418acb), UINT64_C(0x5b9cca4f7763e373), UINT64_C(0x682e6ff3d6b2b8a3),
    UINT64_C(0x748f82ee5defb2fc), UINT64_C(0x78a5636f43172f60), UINT64_C(0x84c87814a1f0ab72), UINT64_C(0x8cc702081a6439ec),
    UINT64_C(0x90befffa23631e28), UINT64_C(0xa4506cebde82bde9), UINT64_C(0xbef9a3f7b2c67915), UINT64_C(0xc67178f2e372532b),
    UINT64_C(0xca273eceea26619c), UINT64_C(0xd186b8c721c0c207), UINT64_C(0xeada7dd6cde0eb1e), UINT64_C(0xf57d4f7fee6ed178),
    UINT64_C(0x06f067aa72176fba), UINT64_C(0x0a637dc5a2c898a6), UINT64_C(0x113f9804bef90dae), UINT64_C(0x1b710b35131c471b),
    UINT64_C(0x28db77f523047d84), UINT64_C(0x32caab7b40c72493), UINT64_C(0x3c9ebe0a15c9bebc), UINT64_C(0x431d67c49c100d4c),
    UINT64_C(0x4cc5d4becb3e42b6), UINT64_C(0x597f299cfc657e2a), UINT64_C(0x5fcb6fab3ad6faec), UINT64_C(0x6c44198c4a475817)};

/* The same of the square roots of the first 8. */
static const uint64_t first_state[8] = {UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
                                        UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
                                        UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

static uint64_t rotated(uint64_t value, int by) { return value >> by | value << (64 - by); }

static void add_block(uint64_t state[8], const unsigned char *block) {
    uint64_t w[ROUNDS], v[8];
    int i, j;
    for (i = 0; i < 16; ++i)
        for (w[i] = 0, j = 0; j < 8; ++j) w[i] = w[i] << 8 | block[8 * i + j];
    for (; i < ROUNDS; ++i) {
        const uint64_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotated(x, 1) ^ rotated(x, 8) ^ x >> 7) + w[i - 7] + (rotated(y, 19) ^ rotated(y, 61) ^ y >> 6);
    }
    memcpy(v, state, sizeof v);
    for (i = 0; i < ROUNDS; ++i) {
        const uint64_t a = v[0], e = v[4];
        const uint64_t one =
            v[7] + (rotated(e, 14) ^ rotated(e, 18) ^ rotated(e, 41)) + (v[6] ^ (e & (v[5] ^ v[6]))) + round_constants[i] + w[i];
        const uint64_t two = (rotated(a, 28) ^ rotated(a, 34) ^ rotated(a, 39)) + ((a & v[1]) | (v[2] & (a | v[1])));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (i = 0; i < 8; ++i) state[i] += v[i];
}

void tess_sha512_begin(TessSha512 *sha) {
    memcpy(sha->state, first_state, sizeof first_state);
    sha->bytes = 0;
}

void tess_sha512_add(TessSha512 *sha, const void *bytes, uint64_t size) {
    const unsigned char *from = bytes;
    while (size > 0) {
        const uint64_t filled = sha->bytes % TESS_SHA512_BLOCK_BYTES, room = TESS_SHA512_BLOCK_BYTES - filled;
        const uint64_t n = size < room ? size : room;
        memcpy(sha->block + filled, from, n);
        sha->bytes += n;
        from += n;
        size -= n;
        if (n == room) add_block(sha->state, sha->block);
    }
}

void tess_sha512_end(TessSha512 *sha, unsigned char hash[TESS_SHA512_BYTES]) {
    static const unsigned char one_bit = 0x80, zero = 0;
    const uint64_t bytes = sha->bytes;
    unsigned char length[16] = {0};
    int i;
    for (i = 0; i < 8; ++i) length[15 - i] = (unsigned char)(bytes * 8 >> 8 * i);
    length[7] = (unsigned char)(bytes >> 61);
    tess_sha512_add(sha, &one_bit, 1);
    while (sha->bytes % TESS_SHA512_BLOCK_BYTES != LENGTH_AT) tess_sha512_add(sha, &zero, 1);
    tess_sha512_add(sha, length, sizeof length);
    for (i = 0; i < TESS_SHA512_BYTES; ++i) hash[i] = (unsigned char)(sha->state[i / 8] >> (56 - 8 * (i % 8)));
}
