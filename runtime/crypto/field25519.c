#include "runtime/crypto/field25519.h"

#include <string.h>

void tess_limbs_read(TessLimb *limbs, int count, const unsigned char *bytes) {
    int i, j;
    for (i = 0; i < count; ++i) {
        limbs[i] = 0;
        for (j = TESS_LIMB_BYTES - 1; j >= 0; --j) limbs[i] = (TessLimb)(limbs[i] << 8 | bytes[i * TESS_LIMB_BYTES + j]);
    }
}

void tess_limbs_write(const TessLimb *limbs, int count, unsigned char *bytes) {
    int i;
    for (i = 0; i < count * TESS_LIMB_BYTES; ++i) bytes[i] = (unsigned char)(limbs[i / TESS_LIMB_BYTES] >> 8 * (i % TESS_LIMB_BYTES));
}

TessField tess_field(const unsigned char bytes[TESS_FIELD_BYTES]) {
    TessField a;
    tess_limbs_read(a.limbs, TESS_LIMBS, bytes);
    return a;
}

TessField tess_field_small(TessLimb value) {
    TessField a;
    memset(&a, 0, sizeof a);
    a.limbs[0] = value;
    return a;
}

/* Adds a small number; gives the carry out. */
static TessLimb add_small(TessField *a, TessWide carry) {
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) {
        carry += a->limbs[i];
        a->limbs[i] = (TessLimb)carry;
        carry >>= TESS_LIMB_BITS;
    }
    return (TessLimb)carry;
}

/* 2^256 is 38. The second carry leaves so small a number that there is no third. */
static void fold(TessField *a, TessLimb carry) { add_small(a, (TessWide)add_small(a, (TessWide)carry * 38) * 38); }

void tess_field_bytes(const TessField *a, unsigned char bytes[TESS_FIELD_BYTES]) {
    const TessLimb top = (TessLimb)1 << (TESS_LIMB_BITS - 1);
    TessField low = *a, more;
    low.limbs[TESS_LIMBS - 1] &= ~top;
    add_small(&low, (TessWide)19 * (a->limbs[TESS_LIMBS - 1] >> (TESS_LIMB_BITS - 1))); /* at most 2^255 + 18 */
    more = low;
    add_small(&more, 19); /* reaches 2^255 where `low` is not below the modulus */
    low = tess_field_select(&low, &more, (TessLimb)0 - (more.limbs[TESS_LIMBS - 1] >> (TESS_LIMB_BITS - 1)));
    low.limbs[TESS_LIMBS - 1] &= ~top;
    tess_limbs_write(low.limbs, TESS_LIMBS, bytes);
}

TessField tess_field_add(const TessField *a, const TessField *b) {
    TessField sum;
    TessWide carry = 0;
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) {
        carry += (TessWide)a->limbs[i] + b->limbs[i];
        sum.limbs[i] = (TessLimb)carry;
        carry >>= TESS_LIMB_BITS;
    }
    fold(&sum, (TessLimb)carry);
    return sum;
}

static TessLimb subtract_small(TessField *a, TessLimb borrow) {
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) {
        const TessWide rest = (TessWide)a->limbs[i] - borrow;
        a->limbs[i] = (TessLimb)rest;
        borrow = (TessLimb)(rest >> TESS_LIMB_BITS) & 1;
    }
    return borrow;
}

TessField tess_field_sub(const TessField *a, const TessField *b) {
    TessField rest;
    TessLimb borrow = 0;
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) {
        const TessWide limb = (TessWide)a->limbs[i] - b->limbs[i] - borrow;
        rest.limbs[i] = (TessLimb)limb;
        borrow = (TessLimb)(limb >> TESS_LIMB_BITS) & 1;
    }
    subtract_small(&rest, (TessLimb)(38 * subtract_small(&rest, (TessLimb)(38 * borrow))));
    return rest;
}

TessField tess_field_mul(const TessField *a, const TessField *b) {
    TessLimb product[2 * TESS_LIMBS] = {0};
    TessField low;
    TessWide carry;
    int i, j;
    for (i = 0; i < TESS_LIMBS; ++i) {
        carry = 0;
        for (j = 0; j < TESS_LIMBS; ++j) {
            carry += (TessWide)a->limbs[i] * b->limbs[j] + product[i + j];
            product[i + j] = (TessLimb)carry;
            carry >>= TESS_LIMB_BITS;
        }
        product[i + TESS_LIMBS] = (TessLimb)carry;
    }
    carry = 0;
    for (i = 0; i < TESS_LIMBS; ++i) {
        carry += (TessWide)product[i + TESS_LIMBS] * 38 + product[i];
        low.limbs[i] = (TessLimb)carry;
        carry >>= TESS_LIMB_BITS;
    }
    fold(&low, (TessLimb)carry);
    return low;
}

/* a to a power that is known: its low byte, 29 or more bytes 0xff, its high byte. */
static TessField power(const TessField *a, unsigned low, unsigned high) {
    TessField result = tess_field_small(1);
    int bit;
    for (bit = 254; bit >= 0; --bit) {
        const unsigned byte = bit < 8 ? low : bit >= 248 ? high : 0xff;
        result = tess_field_mul(&result, &result);
        if (byte >> bit % 8 & 1) result = tess_field_mul(&result, a);
    }
    return result;
}

TessField tess_field_inverse(const TessField *a) { return power(a, 0xeb, 0x7f); }

TessField tess_field_select(const TessField *a, const TessField *b, TessLimb mask) {
    TessField taken;
    int i;
    for (i = 0; i < TESS_LIMBS; ++i) taken.limbs[i] = (a->limbs[i] & ~mask) | (b->limbs[i] & mask);
    return taken;
}

int tess_field_equal(const TessField *a, const TessField *b) {
    unsigned char ones[TESS_FIELD_BYTES], others[TESS_FIELD_BYTES];
    unsigned differ = 0;
    int i;
    tess_field_bytes(a, ones);
    tess_field_bytes(b, others);
    for (i = 0; i < TESS_FIELD_BYTES; ++i) differ |= (unsigned)(ones[i] ^ others[i]);
    return differ == 0;
}

int tess_field_is_odd(const TessField *a) {
    unsigned char bytes[TESS_FIELD_BYTES];
    tess_field_bytes(a, bytes);
    return bytes[0] & 1;
}

/* u v^3 (u v^7)^((p-5)/8) is a root of u/v or of -u/v; the root of -1 makes one of the other. */
int tess_field_root(const TessField *u, const TessField *v, TessField *root) {
    static const unsigned char root_of_minus_one[TESS_FIELD_BYTES] = {0xb0, 0xa0, 0x0e, 0x4a, 0x27, 0x1b, 0xee, 0xc4, 0x78, 0xe4, 0x2f,
                                                                      0xad, 0x06, 0x18, 0x43, 0x2f, 0xa7, 0xd7, 0xfb, 0x3d, 0x99, 0x00,
                                                                      0x4d, 0x2b, 0x0b, 0xdf, 0xc1, 0x4f, 0x80, 0x24, 0x83, 0x2b};
    const TessField zero = tess_field_small(0), minus_u = tess_field_sub(&zero, u), i = tess_field(root_of_minus_one);
    TessField v3 = tess_field_mul(v, v), v7, uv3, square;
    v3 = tess_field_mul(&v3, v);
    v7 = tess_field_mul(&v3, &v3);
    v7 = tess_field_mul(&v7, v);
    v7 = tess_field_mul(&v7, u);
    uv3 = tess_field_mul(u, &v3);
    *root = power(&v7, 0xfd, 0x0f);
    *root = tess_field_mul(root, &uv3);
    square = tess_field_mul(root, root);
    square = tess_field_mul(&square, v);
    if (tess_field_equal(&square, u)) return 1;
    if (!tess_field_equal(&square, &minus_u)) return 0;
    *root = tess_field_mul(root, &i);
    return 1;
}
