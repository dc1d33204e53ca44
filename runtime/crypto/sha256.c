#include "runtime/crypto/sha256.h"

#include <string.h>

enum { BLOCK_BYTES = TESS_SHA256_BLOCK_BYTES, ROUNDS = 64, LENGTH_BYTES = 8 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The same of the square roots of the first 8. */
static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* Takes whole blocks into the state. */
typedef void (*AddBlocks)(uint32_t state[8], const unsigned char *bytes, uint64_t blocks);

static uint32_t rotated(uint32_t value, int by) { return value >> by | value << (32 - by); }

/* A round writes two of the eight; each has the names moved on by one, so that no value is moved. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                          \
    do {                                                                                                          \
        h += (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + (g ^ (e & (f ^ g))) + round_constants[i] + w[i]; \
        d += h;                                                                                                   \
        h += (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) | (c & (a | b)));                       \
    } while (0)

static void add_block(uint32_t state[8], const unsigned char *block) {
    uint32_t w[ROUNDS], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    int i;
    for (i = 0; i < 16; ++i)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (; i < ROUNDS; ++i) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotated(x, 7) ^ rotated(x, 18) ^ x >> 3) + w[i - 7] + (rotated(y, 17) ^ rotated(y, 19) ^ y >> 10);
    }
    for (i = 0; i < ROUNDS; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void add_blocks_plain(uint32_t state[8], const unsigned char *bytes, uint64_t blocks) {
    for (; blocks > 0; --blocks, bytes += BLOCK_BYTES) add_block(state, bytes);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

static int has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 9 & c >> 19 & 1)) return 0; /* SSSE3, SSE4.1 */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1;
}

/* Four rounds, and the four words that come 16 after those of `m0`. */
#define FOUR_ROUNDS(i, m0, m1, m2, m3)                                                                          \
    do {                                                                                                        \
        const __m128i words = _mm_add_epi32(m0, _mm_loadu_si128((const __m128i *)(round_constants + 4 * (i)))); \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);                                                        \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));                               \
        m0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(m0, m1), _mm_alignr_epi8(m3, m2, 4)), m3); \
    } while (0)

__attribute__((target("sha,sse4.1"))) static void add_blocks_fast(uint32_t s[8], const unsigned char *bytes, uint64_t blocks) {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i abef = _mm_set_epi32((int)s[0], (int)s[1], (int)s[4], (int)s[5]),
            cdgh = _mm_set_epi32((int)s[2], (int)s[3], (int)s[6], (int)s[7]);
    for (; blocks > 0; --blocks, bytes += BLOCK_BYTES) {
        const __m128i abef_before = abef, cdgh_before = cdgh, *block = (const __m128i *)(const void *)bytes;
        __m128i m0 = _mm_shuffle_epi8(_mm_loadu_si128(block), big_endian), m1 = _mm_shuffle_epi8(_mm_loadu_si128(block + 1), big_endian);
        __m128i m2 = _mm_shuffle_epi8(_mm_loadu_si128(block + 2), big_endian),
                m3 = _mm_shuffle_epi8(_mm_loadu_si128(block + 3), big_endian);
        int i;
        for (i = 0; i < ROUNDS / 4; i += 4) {
            FOUR_ROUNDS(i, m0, m1, m2, m3);
            FOUR_ROUNDS(i + 1, m1, m2, m3, m0);
            FOUR_ROUNDS(i + 2, m2, m3, m0, m1);
            FOUR_ROUNDS(i + 3, m3, m0, m1, m2);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    s[0] = (uint32_t)_mm_extract_epi32(abef, 3), s[1] = (uint32_t)_mm_extract_epi32(abef, 2);
    s[4] = (uint32_t)_mm_extract_epi32(abef, 1), s[5] = (uint32_t)_mm_extract_epi32(abef, 0);
    s[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), s[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
    s[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), s[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

#elif defined(__AARCH64EL__) && defined(__GNUC__) && defined(__linux__)
#include <arm_neon.h>
#include <sys/auxv.h>

static int has_instructions(void) { return getauxval(AT_HWCAP) >> 6 & 1; }

__attribute__((target("+crypto"))) static void add_blocks_fast(uint32_t s[8], const unsigned char *bytes, uint64_t blocks) {
    uint32x4_t abcd = vld1q_u32(s), efgh = vld1q_u32(s + 4);
    for (; blocks > 0; --blocks, bytes += BLOCK_BYTES) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t m[4];
        int i;
        for (i = 0; i < 4; ++i) m[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * i)));
        for (i = 0; i < ROUNDS / 4; ++i) {
            const uint32x4_t words = vaddq_u32(m[0], vld1q_u32(round_constants + 4 * i)), abcd_here = abcd;
            const uint32x4_t next = vsha256su1q_u32(vsha256su0q_u32(m[0], m[1]), m[2], m[3]);
            abcd = vsha256hq_u32(abcd, efgh, words);
            efgh = vsha256h2q_u32(efgh, abcd_here, words);
            m[0] = m[1], m[1] = m[2], m[2] = m[3], m[3] = next;
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(s, abcd);
    vst1q_u32(s + 4, efgh);
}

#else
#define add_blocks_fast add_blocks_plain
static int has_instructions(void) { return 0; }
#endif

/* The processor is asked once: in a virtual machine that takes microseconds. */
static AddBlocks best_way(void) {
    enum { UNKNOWN, NO, YES };
    static int cache = UNKNOWN;
    int known = __atomic_load_n(&cache, __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = has_instructions() ? YES : NO;
        __atomic_store_n(&cache, known, __ATOMIC_RELAXED);
    }
    return known == YES ? add_blocks_fast : add_blocks_plain;
}

static void add_by(AddBlocks add, TessSha256 *sha, const unsigned char *bytes, uint64_t size) {
    const uint64_t filled = sha->bytes % BLOCK_BYTES;
    uint64_t blocks;
    sha->bytes += size;
    if (filled > 0) {
        const uint64_t room = BLOCK_BYTES - filled, first = size < room ? size : room;
        if (first > 0) memcpy(sha->block + filled, bytes, first);
        if (first < room) return;
        add(sha->state, sha->block, 1);
        bytes += first;
        size -= first;
    }
    blocks = size / BLOCK_BYTES;
    if (blocks > 0) add(sha->state, bytes, blocks);
    if (size % BLOCK_BYTES) memcpy(sha->block, bytes + blocks * BLOCK_BYTES, size % BLOCK_BYTES);
}

/* A bit, zeros, and the length in bits end the last block. */
static void end_by(AddBlocks add, TessSha256 *sha, unsigned char hash[TESS_SHA256_BYTES]) {
    unsigned char end[2 * BLOCK_BYTES] = {0};
    const uint64_t rest = sha->bytes % BLOCK_BYTES, blocks = rest + 1 + LENGTH_BYTES <= BLOCK_BYTES ? 1 : 2;
    int i;
    if (rest) memcpy(end, sha->block, rest);
    end[rest] = 0x80;
    for (i = 0; i < LENGTH_BYTES; ++i) end[blocks * BLOCK_BYTES - 1 - (uint64_t)i] = (unsigned char)(sha->bytes * 8 >> 8 * i);
    add(sha->state, end, blocks);
    for (i = 0; i < TESS_SHA256_BYTES; ++i) hash[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

static void hash_by(AddBlocks add, const void *bytes, uint64_t size, unsigned char hash[TESS_SHA256_BYTES]) {
    TessSha256 sha;
    tess_sha256_begin(&sha);
    add_by(add, &sha, bytes, size);
    end_by(add, &sha, hash);
}

void tess_sha256_begin(TessSha256 *sha) {
    memcpy(sha->state, first_state, sizeof first_state);
    sha->bytes = 0;
}

void tess_sha256_add(TessSha256 *sha, const void *bytes, uint64_t size) { add_by(best_way(), sha, bytes, size); }

void tess_sha256_end(TessSha256 *sha, unsigned char hash[TESS_SHA256_BYTES]) { end_by(best_way(), sha, hash); }

void tess_sha256_plain(const void *bytes, uint64_t size, unsigned char hash[TESS_SHA256_BYTES]) {
    hash_by(add_blocks_plain, bytes, size, hash);
}

void tess_sha256(const void *bytes, uint64_t size, unsigned char hash[TESS_SHA256_BYTES]) { hash_by(best_way(), bytes, size, hash); }
