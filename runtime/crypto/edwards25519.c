#include "runtime/crypto/edwards25519.h"

#include <string.h>

static const unsigned char d_bytes[TESS_FIELD_BYTES] = {0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41,
                                                        0x41, 0x4d, 0x0a, 0x70, 0x00, 0x98, 0xe8, 0x79, 0x77, 0x79, 0x40,
                                                        0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52};
static const unsigned char base_x[TESS_FIELD_BYTES] = {0x1a, 0xd5, 0x25, 0x8f, 0x60, 0x2d, 0x56, 0xc9, 0xb2, 0xa7, 0x25,
                                                       0x95, 0x60, 0xc7, 0x2c, 0x69, 0x5c, 0xdc, 0xd6, 0xfd, 0x31, 0xe2,
                                                       0xa4, 0xc0, 0xfe, 0x53, 0x6e, 0xcd, 0xd3, 0x36, 0x69, 0x21};
static const unsigned char base_y[TESS_FIELD_BYTES] = {0x58, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66};
/* L, 2^252 + 27742317777372353535851937790883648493. */
static const unsigned char order[TESS_SCALAR_BYTES] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                                       0xa2, 0xde, 0xf9, 0xde, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                                       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10};

static TessPoint point_of(const TessField *x, const TessField *y) {
    TessPoint p;
    p.x = *x;
    p.y = *y;
    p.z = tess_field_small(1);
    p.t = tess_field_mul(x, y);
    return p;
}

TessPoint tess_point_base(void) {
    const TessField x = tess_field(base_x), y = tess_field(base_y);
    return point_of(&x, &y);
}

TessPoint tess_point_zero(void) {
    const TessField x = tess_field_small(0), y = tess_field_small(1);
    return point_of(&x, &y);
}

/* From the four factors of both formulas. */
static TessPoint point_from(const TessField *e, const TessField *f, const TessField *g, const TessField *h) {
    TessPoint p;
    p.x = tess_field_mul(e, f);
    p.y = tess_field_mul(g, h);
    p.t = tess_field_mul(e, h);
    p.z = tess_field_mul(f, g);
    return p;
}

/* Right for all points, equal ones too. */
TessPoint tess_point_add(const TessPoint *p, const TessPoint *q) {
    const TessField d = tess_field(d_bytes);
    TessField a = tess_field_sub(&p->y, &p->x), b = tess_field_add(&p->y, &p->x), c = tess_field_mul(&p->t, &q->t), e, f, g, h;
    e = tess_field_sub(&q->y, &q->x);
    a = tess_field_mul(&a, &e);
    e = tess_field_add(&q->y, &q->x);
    b = tess_field_mul(&b, &e);
    c = tess_field_mul(&c, &d);
    c = tess_field_add(&c, &c);
    h = tess_field_mul(&p->z, &q->z);
    h = tess_field_add(&h, &h);
    e = tess_field_sub(&b, &a);
    f = tess_field_sub(&h, &c);
    g = tess_field_add(&h, &c);
    h = tess_field_add(&b, &a);
    return point_from(&e, &f, &g, &h);
}

TessPoint tess_point_double(const TessPoint *p) {
    TessField a = tess_field_mul(&p->x, &p->x), b = tess_field_mul(&p->y, &p->y), c = tess_field_mul(&p->z, &p->z), e, f, g, h;
    c = tess_field_add(&c, &c);
    h = tess_field_add(&a, &b);
    e = tess_field_add(&p->x, &p->y);
    e = tess_field_mul(&e, &e);
    e = tess_field_sub(&h, &e);
    g = tess_field_sub(&a, &b);
    f = tess_field_add(&c, &g);
    return point_from(&e, &f, &g, &h);
}

TessPoint tess_point_negated(const TessPoint *a) {
    const TessField zero = tess_field_small(0);
    TessPoint p = *a;
    p.x = tess_field_sub(&zero, &a->x);
    p.t = tess_field_sub(&zero, &a->t);
    return p;
}

TessPoint tess_point_select(const TessPoint *a, const TessPoint *b, TessLimb mask) {
    TessPoint p;
    p.x = tess_field_select(&a->x, &b->x, mask);
    p.y = tess_field_select(&a->y, &b->y, mask);
    p.z = tess_field_select(&a->z, &b->z, mask);
    p.t = tess_field_select(&a->t, &b->t, mask);
    return p;
}

int tess_point_is_small(const TessPoint *a) {
    const TessField zero = tess_field_small(0);
    TessPoint p = tess_point_double(a);
    p = tess_point_double(&p);
    p = tess_point_double(&p);
    return tess_field_equal(&p.x, &zero) && tess_field_equal(&p.y, &p.z);
}

void tess_point_write(const TessPoint *a, unsigned char bytes[TESS_POINT_BYTES]) {
    const TessField inverse = tess_field_inverse(&a->z), x = tess_field_mul(&a->x, &inverse), y = tess_field_mul(&a->y, &inverse);
    tess_field_bytes(&y, bytes);
    bytes[TESS_POINT_BYTES - 1] |= (unsigned char)(tess_field_is_odd(&x) << 7);
}

int tess_point_read(const unsigned char bytes[TESS_POINT_BYTES], TessPoint *point) {
    const TessField zero = tess_field_small(0), one = tess_field_small(1), d = tess_field(d_bytes);
    const int is_odd = bytes[TESS_POINT_BYTES - 1] >> 7;
    unsigned char low[TESS_POINT_BYTES], again[TESS_POINT_BYTES];
    TessField x, y, u, v;
    memcpy(low, bytes, sizeof low);
    low[TESS_POINT_BYTES - 1] &= 0x7f;
    y = tess_field(low);
    tess_field_bytes(&y, again);
    if (memcmp(low, again, sizeof low) != 0) return 0; /* not below the modulus */
    v = tess_field_mul(&y, &y);
    u = tess_field_sub(&v, &one);
    v = tess_field_mul(&v, &d);
    v = tess_field_add(&v, &one);
    if (!tess_field_root(&u, &v, &x)) return 0;
    if (tess_field_equal(&x, &zero) && is_odd) return 0;
    if (tess_field_is_odd(&x) != is_odd) x = tess_field_sub(&zero, &x);
    *point = point_of(&x, &y);
    return 1;
}

/* a - L where that is not negative, else a. */
static void subtract_order(TessLimb a[TESS_LIMBS], const TessLimb l[TESS_LIMBS]) {
    TessLimb rest[TESS_LIMBS], borrow = 0;
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) {
        const TessWide limb = (TessWide)a[i] - l[i] - borrow;
        rest[i] = (TessLimb)limb;
        borrow = (TessLimb)(limb >> TESS_LIMB_BITS) & 1;
    }
    for (i = 0; i < TESS_LIMBS; ++i) a[i] = (a[i] & ((TessLimb)0 - borrow)) | (rest[i] & (borrow - 1));
}

/* Bit by bit from the highest: twice what there is and the bit, less L where it reaches it. */
static void reduce(const TessLimb wide[2 * TESS_LIMBS], unsigned char scalar[TESS_SCALAR_BYTES]) {
    TessLimb rest[TESS_LIMBS] = {0}, l[TESS_LIMBS];
    int bit, i;
    tess_limbs_read(l, TESS_LIMBS, order);
    for (bit = 2 * TESS_LIMBS * TESS_LIMB_BITS - 1; bit >= 0; --bit) {
        TessLimb carry = wide[bit / TESS_LIMB_BITS] >> bit % TESS_LIMB_BITS & 1;
        for (i = 0; i < TESS_LIMBS; ++i) {
            const TessLimb out = rest[i] >> (TESS_LIMB_BITS - 1);
            rest[i] = (TessLimb)(rest[i] << 1 | carry);
            carry = out;
        }
        subtract_order(rest, l);
    }
    tess_limbs_write(rest, TESS_LIMBS, scalar);
}

void tess_scalar_reduce(const unsigned char wide[2 * TESS_SCALAR_BYTES], unsigned char scalar[TESS_SCALAR_BYTES]) {
    TessLimb limbs[2 * TESS_LIMBS];
    tess_limbs_read(limbs, 2 * TESS_LIMBS, wide);
    reduce(limbs, scalar);
}

void tess_scalar_mul_add(const unsigned char a[TESS_SCALAR_BYTES], const unsigned char b[TESS_SCALAR_BYTES],
                         const unsigned char c[TESS_SCALAR_BYTES], unsigned char scalar[TESS_SCALAR_BYTES]) {
    TessLimb ones[TESS_LIMBS], others[TESS_LIMBS], sum[2 * TESS_LIMBS] = {0};
    TessWide carry;
    int i, j;
    tess_limbs_read(ones, TESS_LIMBS, a);
    tess_limbs_read(others, TESS_LIMBS, b);
    tess_limbs_read(sum, TESS_LIMBS, c);
    /* Each row's carry goes to a word that is still 0: c is in the words below. */
    for (i = 0; i < TESS_LIMBS; ++i) {
        carry = 0;
        for (j = 0; j < TESS_LIMBS; ++j) {
            carry += (TessWide)ones[i] * others[j] + sum[i + j];
            sum[i + j] = (TessLimb)carry;
            carry >>= TESS_LIMB_BITS;
        }
        sum[i + TESS_LIMBS] = (TessLimb)carry;
    }
    reduce(sum, scalar);
}

int tess_scalar_is_reduced(const unsigned char scalar[TESS_SCALAR_BYTES]) {
    int i = TESS_SCALAR_BYTES - 1;
    while (i > 0 && scalar[i] == order[i]) --i;
    return scalar[i] < order[i];
}
