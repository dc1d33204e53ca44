#include "runtime/abi/decimal.h"

#include <string.h>

/* Enough for 2^1127: the least f64 has 1074 places, and its digits are times 10 and 2. */
enum { LIMBS = 40, MOST_DIGITS = 17 };

/* An integer, its lowest limb first. */
typedef struct Big {
    uint32_t limb[LIMBS];
} Big;

static void set(Big *a, uint64_t value, int shift) {
    int i;
    memset(a, 0, sizeof *a);
    for (i = 0; i < 64; ++i)
        if ((value >> i & 1u) != 0u) a->limb[(i + shift) / 32] |= UINT32_C(1) << (i + shift) % 32;
}

static void times_ten(Big *a) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < LIMBS; ++i) {
        carry += (uint64_t)a->limb[i] * 10u;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static int compare(const Big *a, const Big *b) {
    int i;
    for (i = LIMBS - 1; i >= 0; --i)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

static void add(Big *a, const Big *b) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < LIMBS; ++i) {
        carry += (uint64_t)a->limb[i] + b->limb[i];
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void subtract(Big *a, const Big *b) {
    uint64_t borrow = 0;
    int i;
    for (i = 0; i < LIMBS; ++i) {
        const uint64_t left = (uint64_t)a->limb[i] - b->limb[i] - borrow;
        a->limb[i] = (uint32_t)left;
        borrow = left >> 63;
    }
}

static int compare_sum(const Big *a, const Big *b, const Big *with) {
    Big sum = *a;
    add(&sum, b);
    return compare(&sum, with);
}

/* The digits of mantissa * 2^exponent, which is over the number 0.d1d2d3… * 10^result. */
static int digits_of(uint64_t mantissa, int exponent, int at_power, char *digits) {
    Big rest, unit, up, down; /* the number, 1, and half the way to its neighbours, all times one factor */
    const int even = (mantissa & 1u) == 0u, extra = at_power ? 2 : 1;
    int tens = 0, n = 0;
    set(&rest, mantissa, (exponent > 0 ? exponent : 0) + extra);
    set(&unit, 1, (exponent < 0 ? -exponent : 0) + extra);
    set(&up, 1, (exponent > 0 ? exponent : 0) + extra - 1);
    set(&down, 1, exponent > 0 ? exponent : 0);
    while (compare_sum(&rest, &up, &unit) > (even ? -1 : 0)) times_ten(&unit), ++tens;
    for (;;) {
        Big next = rest, step = up;
        times_ten(&next);
        times_ten(&step);
        if (compare_sum(&next, &step, &unit) > (even ? -1 : 0)) break;
        rest = next, up = step;
        times_ten(&down);
        --tens;
    }
    for (;;) {
        int low, high;
        char digit = '0';
        times_ten(&rest);
        times_ten(&up);
        times_ten(&down);
        while (compare(&rest, &unit) >= 0) subtract(&rest, &unit), ++digit;
        low = compare(&rest, &down) < (even ? 1 : 0);
        high = compare_sum(&rest, &up, &unit) > (even ? -1 : 0);
        if (!low && !high && n + 1 < MOST_DIGITS) {
            digits[n++] = digit;
            continue;
        }
        if (high && (!low || compare_sum(&rest, &rest, &unit) > 0)) ++digit;
        digits[n++] = digit;
        digits[n] = '\0';
        return tens;
    }
}

static char *put(char *to, const char *from, int n) {
    memcpy(to, from, (size_t)n);
    return to + n;
}

static char *put_zeros(char *to, int n) {
    for (; n > 0; --n) *to++ = '0';
    return to;
}

void tess_abi2_decimal(uint64_t bits, int wide, char *text) {
    const int fraction = wide ? 52 : 23, exponents = wide ? 0x7ff : 0xff;
    const int field = (int)(bits >> fraction) & exponents;
    const uint64_t hidden = UINT64_C(1) << fraction, below = bits & (hidden - 1u);
    char digits[MOST_DIGITS + 1];
    int tens, n, at;
    if ((bits >> (wide ? 63 : 31) & 1u) != 0u && !(field == exponents && below != 0u)) *text++ = '-';
    if (field == exponents || (field == 0 && below == 0u)) {
        memcpy(text, field == 0 ? "0" : below != 0u ? "nan" : "inf", field == 0 ? 2 : 4);
        return;
    }
    tens = digits_of(field == 0 ? below : below | hidden, (field == 0 ? 1 : field) - exponents / 2 - fraction, field > 1 && below == 0u,
                     digits);
    n = (int)strlen(digits);
    if (tens > 0 && tens <= 16) { /* 123.4, 12300 */
        at = n < tens ? n : tens;
        text = put_zeros(put(text, digits, at), tens - at);
        if (n > tens) *text++ = '.', text = put(text, digits + tens, n - tens);
    } else if (tens <= 0 && tens > -4) { /* 0.00123 */
        text = put(put_zeros(put(text, "0.", 2), -tens), digits, n);
    } else { /* 1.23e+45 */
        const int power = tens > 0 ? tens - 1 : 1 - tens;
        *text++ = digits[0];
        if (n > 1) *text++ = '.', text = put(text, digits + 1, n - 1);
        *text++ = 'e';
        *text++ = tens > 0 ? '+' : '-';
        if (power >= 100) *text++ = (char)('0' + power / 100);
        *text++ = (char)('0' + power / 10 % 10);
        *text++ = (char)('0' + power % 10);
    }
    *text = '\0';
}
