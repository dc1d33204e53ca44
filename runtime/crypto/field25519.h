/** Integers modulo 2^255 - 19, in constant time and constant memory: no branch and no index depends on a value, but in tess_field_root. */
#ifndef TESSERA_CRYPTO_FIELD25519_H
#define TESSERA_CRYPTO_FIELD25519_H

#include <stdint.h>

/* Words as wide as the compiler can multiply; the same code works with both. TESS_FIELD_NARROW tries the narrow ones. */
#if defined(__SIZEOF_INT128__) && !defined(TESS_FIELD_NARROW)
typedef uint64_t TessLimb;
__extension__ typedef unsigned __int128 TessWide;
enum { TESS_LIMB_BITS = 64 };
#else
typedef uint32_t TessLimb;
typedef uint64_t TessWide;
enum { TESS_LIMB_BITS = 32 };
#endif
enum { TESS_LIMB_BYTES = TESS_LIMB_BITS / 8, TESS_LIMBS = 256 / TESS_LIMB_BITS, TESS_FIELD_BYTES = 32 };

/** A number below 2^256, the lowest word first; several stand for one element. */
typedef struct TessField {
    TessLimb limbs[TESS_LIMBS];
} TessField;

/** Words from and to little-endian bytes. */
void tess_limbs_read(TessLimb *limbs, int count, const unsigned char *bytes);
void tess_limbs_write(const TessLimb *limbs, int count, unsigned char *bytes);

/** The element of 32 little-endian bytes, all 256 bits of it. */
TessField tess_field(const unsigned char bytes[TESS_FIELD_BYTES]);
TessField tess_field_small(TessLimb value);
/** Its bytes, below 2^255 - 19. */
void tess_field_bytes(const TessField *a, unsigned char bytes[TESS_FIELD_BYTES]);

TessField tess_field_add(const TessField *a, const TessField *b);
TessField tess_field_sub(const TessField *a, const TessField *b);
TessField tess_field_mul(const TessField *a, const TessField *b);
TessField tess_field_inverse(const TessField *a);
/** Takes b where the mask is all ones, a where it is 0. */
TessField tess_field_select(const TessField *a, const TessField *b, TessLimb mask);
int tess_field_equal(const TessField *a, const TessField *b);
int tess_field_is_odd(const TessField *a);
/** A square root of u/v, and 1; 0 where there is none. */
int tess_field_root(const TessField *u, const TessField *v, TessField *root);

#endif
