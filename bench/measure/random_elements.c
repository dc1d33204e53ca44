#include "bench/measure/random_elements.h"

#include <string.h>

static inline uint64_t number_at(uint64_t seed, uint64_t position) {
    uint64_t z = seed + (position + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t random_number(uint64_t seed, uint64_t position) { return number_at(seed, position); }

int64_t random_element_bytes(RandomKind kind) {
    switch (kind) {
    case RANDOM_F64:
    case RANDOM_I64: return 8;
    case RANDOM_F32:
    case RANDOM_I32: return 4;
    case RANDOM_BF16:
    case RANDOM_F16: return 2;
    case RANDOM_I8:
    case RANDOM_BOOL:
    case RANDOM_F8_3_7:
    case RANDOM_F8_3_8:
    case RANDOM_F8_2_15:
    case RANDOM_F8_2_16:
    case RANDOM_SCALE:
    case RANDOM_F6:
    case RANDOM_HALVES: return 1;
    case RANDOM_KINDS: break;
    }
    return 0;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The upper bits of what is cut off by so many bits, to nearest even. */
static uint32_t rounded(uint32_t bits, int cut) { return (bits + (((uint32_t)1 << (cut - 1)) - 1) + ((bits >> cut) & 1)) >> cut; }

static float f32_of(uint32_t random) { return (float)((int32_t)(random >> 8) - (1 << 23)) * 0x1p-23f; }

/* Scaled so that the exponents of f16 are the lowest ones of f32, where its subnormal numbers are subnormal too. */
static uint16_t f16_of(uint32_t random) {
    const uint32_t bits = bits_of(f32_of(random) * 0x1p-112f);
    return (uint16_t)((bits >> 16 & 0x8000) | rounded(bits & 0x7fffffff, 13));
}

/* The same for floats of one byte; without -0, which some of them do not have. */
static uint8_t f8_of(uint32_t random, int mantissa, int bias) {
    const float scale = bias == 7 ? 0x1p-120f : bias == 8 ? 0x1p-119f : bias == 15 ? 0x1p-112f : 0x1p-111f;
    const uint32_t bits = bits_of(f32_of(random) * scale), magnitude = rounded(bits & 0x7fffffff, 23 - mantissa);
    return (uint8_t)(magnitude | (magnitude ? bits >> 24 & 0x80 : 0));
}

/* Elements are made a block at a time, by loops of a fixed length and without conditions, which compilers make vectors of. A number's low
 * bytes are its first elements. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "no target of Tessera's has its high bytes first"
#endif
enum { BLOCK = 256 }; /* numbers */

typedef union Block {
    uint64_t numbers[BLOCK];
    uint32_t halves[2 * BLOCK];
    unsigned char bytes[8 * BLOCK];
    double f64[BLOCK];
    float f32[2 * BLOCK];
    uint16_t f16[2 * BLOCK];
} Block;

static void keep_bits(uint64_t mask, const Block *from, Block *to) {
    for (int i = 0; i < BLOCK; i++) to->numbers[i] = from->numbers[i] & mask;
}

static inline void each_f8(const Block *from, Block *to, int mantissa, int bias) {
    for (int i = 0; i < 8 * BLOCK; i++) to->bytes[i] = f8_of((uint32_t)from->bytes[i] << 24 | 0x800000, mantissa, bias);
}

static void convert(RandomKind kind, const Block *from, Block *to) {
    switch (kind) {
    case RANDOM_F64:
        for (int i = 0; i < BLOCK; i++) to->f64[i] = (double)((int64_t)(from->numbers[i] >> 10) - ((int64_t)1 << 53)) * 0x1p-53;
        break;
    case RANDOM_F32:
        for (int i = 0; i < 2 * BLOCK; i++) to->f32[i] = f32_of(from->halves[i]);
        break;
    case RANDOM_BF16:
        for (int i = 0; i < 2 * BLOCK; i++) to->f16[i] = (uint16_t)rounded(bits_of(f32_of(from->halves[i])), 16);
        break;
    case RANDOM_F16:
        for (int i = 0; i < 2 * BLOCK; i++) to->f16[i] = f16_of(from->halves[i]);
        break;
    case RANDOM_I8: keep_bits(UINT64_C(0x0707070707070707), from, to); break;
    case RANDOM_I32: keep_bits(UINT64_C(0x0000000700000007), from, to); break;
    case RANDOM_I64: keep_bits(7, from, to); break;
    case RANDOM_BOOL: keep_bits(UINT64_C(0x0101010101010101), from, to); break;
    case RANDOM_F8_3_7: each_f8(from, to, 3, 7); break;
    case RANDOM_F8_3_8: each_f8(from, to, 3, 8); break;
    case RANDOM_F8_2_15: each_f8(from, to, 2, 15); break;
    case RANDOM_F8_2_16: each_f8(from, to, 2, 16); break;
    case RANDOM_SCALE:
        for (int i = 0; i < 8 * BLOCK; i++) to->bytes[i] = (unsigned char)(120 + (from->bytes[i] & 7));
        break;
    case RANDOM_F6: keep_bits(UINT64_C(0x3f3f3f3f3f3f3f3f), from, to); break;
    case RANDOM_HALVES: keep_bits(~UINT64_C(0), from, to); break;
    case RANDOM_KINDS: break;
    }
}

void random_elements(RandomKind kind, uint64_t seed, int64_t first, int64_t count, void *elements) {
    const int64_t bytes = random_element_bytes(kind), in_block = BLOCK * (bytes == 2 ? 2 : 8 / bytes);
    unsigned char *to = elements;
    while (count > 0) {
        const int64_t block = first / in_block, skip = first % in_block, n = count < in_block - skip ? count : in_block - skip;
        Block random, made;
        for (uint64_t i = 0; i < BLOCK; i++) random.numbers[i] = number_at(seed, (uint64_t)block * BLOCK + i);
        convert(kind, &random, &made);
        memcpy(to, made.bytes + skip * bytes, (size_t)(n * bytes));
        first += n, count -= n, to += n * bytes;
    }
}
