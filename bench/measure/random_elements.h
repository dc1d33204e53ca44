/* Random elements, the same on every machine: each is a function of the seed and of its position alone (SplitMix64; Steele, Lea, Flood
 * 2014), so that any part of a tensor can be made by itself, by whoever needs it. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Floats are uniform in [-1, 1), of 53 bits for f64, 8 bits for floats of one byte and 24 bits otherwise, rounded to nearest even; integers
 * are in 0 ..= 7. */
typedef enum RandomKind {
    RANDOM_F64,
    RANDOM_F32,
    RANDOM_BF16,
    RANDOM_F16,
    RANDOM_I8, /* and u8 */
    RANDOM_I32,
    RANDOM_I64,
    RANDOM_BOOL,
    /* Floats of one byte: mantissa and exponent's bias. */
    RANDOM_F8_3_7,
    RANDOM_F8_3_8,
    RANDOM_F8_2_15,
    RANDOM_F8_2_16,
    RANDOM_SCALE,  /* f8e8m0fnu: powers of two, 2^-7 ..= 1 */
    RANDOM_F6,     /* floats of 6 bits: all codes alike */
    RANDOM_HALVES, /* two elements of 4 bits: all codes alike */
    RANDOM_KINDS
} RandomKind;

/* The number at this position, from 0. */
uint64_t random_number(uint64_t seed, uint64_t position);

/* Bytes of an element of that kind. */
int64_t random_element_bytes(RandomKind kind);

/* Elements first to first + count - 1 of a tensor of that seed, one beside the other. */
void random_elements(RandomKind kind, uint64_t seed, int64_t first, int64_t count, void *elements);

#ifdef __cplusplus
}
#endif
