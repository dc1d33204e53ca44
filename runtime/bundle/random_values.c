#include "runtime/bundle/random_values.h"

#include <string.h>

void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]) {
    uint32_t low = key[0], high = key[1];
    int round;
    memcpy(words, counter, 4 * sizeof *words);
    for (round = 0; round < 10; ++round) {
        const uint64_t a = UINT64_C(0xd2511f53) * words[0], b = UINT64_C(0xcd9e8d57) * words[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ words[1] ^ low, (uint32_t)b, (uint32_t)(a >> 32) ^ words[3] ^ high, (uint32_t)a};
        memcpy(words, next, sizeof next);
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
}

/* A float type: bits of its exponent and its fraction, the exponent of 1, whether -0 is something else. */
typedef struct Format {
    int32_t dtype;
    int exponent, fraction, bias, has_no_negative_zero;
} Format;

static const Format formats[] = {
    {TESS_F16, 5, 10, 15, 0},      {TESS_BF16, 8, 7, 127, 0},   {TESS_F8E4M3, 4, 3, 7, 0},      {TESS_F8E4M3FN, 4, 3, 7, 0},
    {TESS_F8E4M3FNUZ, 4, 3, 8, 1}, {TESS_F8E5M2, 5, 2, 15, 0},  {TESS_F8E5M2FNUZ, 5, 2, 16, 1}, {TESS_F6E2M3FN, 2, 3, 1, 0},
    {TESS_F6E3M2FN, 3, 2, 3, 0},   {TESS_F4E2M1FN, 2, 1, 1, 0},
};

/* n 2^-23 for -2^23 <= n < 2^23, to the nearest in a format, ties to even. Every format reaches 1. */
static uint32_t rounded(int32_t n, const Format *f) {
    const uint32_t sign = n < 0, magnitude = n < 0 ? 0u - (uint32_t)n : (uint32_t)n;
    uint32_t kept, rest, half;
    int top = -1, exponent, drop;
    while (top < 23 && magnitude >> (top + 1)) ++top; /* magnitude is in [2^top, 2^(top+1)) */
    if (top < 0) return 0;
    exponent = top - 23 + f->bias; /* 1 or more: a normal number */
    drop = exponent >= 1 ? top - f->fraction : 24 - f->bias - f->fraction;
    if (drop <= 0) {
        kept = magnitude << -drop;
    } else {
        const uint32_t below = drop > 25 ? 0 : (UINT32_C(1) << drop) - 1;
        if (drop > 25) return sign && !f->has_no_negative_zero ? sign << (f->exponent + f->fraction) : 0;
        kept = magnitude >> drop;
        rest = magnitude & below;
        half = UINT32_C(1) << (drop - 1);
        kept += rest > half || (rest == half && (kept & 1));
    }
    /* The leading one of a normal number adds one to the exponent, and so does a carry out of the fraction. */
    if (exponent >= 1) kept += (uint32_t)(exponent - 1) << f->fraction;
    if (kept == 0 && f->has_no_negative_zero) return 0;
    return sign << (f->exponent + f->fraction) | kept;
}

static void put_element(unsigned char *data, int32_t dtype, uint64_t at, uint32_t word) {
    const int32_t n = (int32_t)(word >> 8) - (1 << 23);
    const float f32 = (float)n / 8388608.0f;
    const double f64 = (double)n / 8388608.0;
    const int64_t i64 = (int64_t)word;
    uint32_t bits = word;
    size_t i;
    switch (dtype) {
    case TESS_F32: memcpy(data + 4 * at, &f32, sizeof f32); return;
    case TESS_F64: memcpy(data + 8 * at, &f64, sizeof f64); return;
    case TESS_I64: memcpy(data + 8 * at, &i64, sizeof i64); return;
    case TESS_I32: memcpy(data + 4 * at, &word, sizeof word); return;
    case TESS_BOOL: data[at] = (unsigned char)(word & 1); return;
    default: break;
    }
    for (i = 0; i < sizeof formats / sizeof *formats; ++i)
        if (formats[i].dtype == dtype) bits = rounded(n, &formats[i]);
    if (tess_is_half_byte(dtype)) {
        data[at / 2] = (unsigned char)(data[at / 2] | (bits & 15) << 4 * (at % 2));
    } else if (tess_dtype_size(dtype) == 2) {
        const uint16_t two = (uint16_t)bits;
        memcpy(data + 2 * at, &two, sizeof two);
    } else {
        data[at] = (unsigned char)bits;
    }
}

int tess_random_values(void *data, int32_t dtype, uint64_t elements, uint64_t row, uint64_t seed, uint32_t argument, uint32_t step) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const int is_half = tess_is_half_byte(dtype);
    uint32_t words[4];
    uint64_t i;
    if (dtype == TESS_F8E8M0FNU || (!is_half && tess_dtype_size(dtype) == 0)) return 0;
    if (elements == 0 || row == 0) return 1;
    if (is_half) memset(data, 0, elements / row * ((row + 1) / 2));
    for (i = 0; i < elements; ++i) {
        if (i % 4 == 0) {
            const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), argument, step};
            tess_philox(counter, key, words);
        }
        put_element(data, dtype, is_half ? i / row * (row + row % 2) + i % row : i, words[i % 4]);
    }
    return 1;
}
