/** The points of edwards25519 (RFC 8032, section 5.1), and the numbers that multiply them. */
#ifndef TESSERA_CRYPTO_EDWARDS25519_H
#define TESSERA_CRYPTO_EDWARDS25519_H

#include "runtime/crypto/field25519.h"

enum { TESS_POINT_BYTES = 32, TESS_SCALAR_BYTES = 32 };

/** A point (x/z, y/z), and t = x y / z. */
typedef struct TessPoint {
    TessField x, y, z, t;
} TessPoint;

TessPoint tess_point_base(void);
TessPoint tess_point_zero(void);
TessPoint tess_point_add(const TessPoint *a, const TessPoint *b);
TessPoint tess_point_double(const TessPoint *a);
TessPoint tess_point_negated(const TessPoint *a);
/** b where the mask is all ones, a where it is 0. */
TessPoint tess_point_select(const TessPoint *a, const TessPoint *b, TessLimb mask);
/** Whether 8 times the point is zero: there are eight of these. */
int tess_point_is_small(const TessPoint *a);
void tess_point_write(const TessPoint *a, unsigned char bytes[TESS_POINT_BYTES]);
/** 0 where the bytes are no point, or not its only right form. */
int tess_point_read(const unsigned char bytes[TESS_POINT_BYTES], TessPoint *point);

/** The order of the base point is L. The number of 64 little-endian bytes modulo L. In constant time. */
void tess_scalar_reduce(const unsigned char wide[2 * TESS_SCALAR_BYTES], unsigned char scalar[TESS_SCALAR_BYTES]);
/** (a b + c) modulo L. In constant time. */
void tess_scalar_mul_add(const unsigned char a[TESS_SCALAR_BYTES], const unsigned char b[TESS_SCALAR_BYTES],
                         const unsigned char c[TESS_SCALAR_BYTES], unsigned char scalar[TESS_SCALAR_BYTES]);
/** Whether it is below L. */
int tess_scalar_is_reduced(const unsigned char scalar[TESS_SCALAR_BYTES]);
static inline int tess_scalar_bit(const unsigned char scalar[TESS_SCALAR_BYTES], int bit) { return scalar[bit / 8] >> bit % 8 & 1; }

#endif
