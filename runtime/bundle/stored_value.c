#include "runtime/bundle/stored_value.h"

#include <math.h>
#include <string.h>

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A hexadecimal float of at most 53 bits, so that the double is exact. */
static int read_float(const char *text, double *value) {
    const int is_negative = *text == '-';
    uint64_t bits = 0;
    int exponent = 0, digits = 0, power = 0, power_is_negative, has_point = 0;
    text += is_negative;
    if (strcmp(text, "inf") == 0) return *value = is_negative ? -HUGE_VAL : HUGE_VAL, 1;
    if (strcmp(text, "nan") == 0) return *value = (double)NAN, 1;
    if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return 0;
    for (text += 2; *text == '.' || digit_of(*text) >= 0; ++text) {
        if (*text == '.') {
            if (has_point++) return 0;
            continue;
        }
        if (bits >> 52) return 0;
        bits = bits << 4 | (uint64_t)digit_of(*text);
        exponent -= has_point ? 4 : 0;
        ++digits;
    }
    if (digits == 0 || digits > 300 || bits >> 53 || (*text != 'p' && *text != 'P')) return 0;
    power_is_negative = *++text == '-';
    if (*text == '-' || *text == '+') ++text;
    if (!*text) return 0;
    for (; *text; ++text) {
        if (*text < '0' || *text > '9' || power > 100000) return 0;
        power = power * 10 + (*text - '0');
    }
    *value = ldexp((double)bits, exponent + (power_is_negative ? -power : power));
    if (is_negative) *value = -*value;
    /* Nothing was lost: it is finite, and scaled back it is the same. */
    return bits == 0 || (!isinf(*value) && *value != 0 &&
                         ldexp(*value, -(exponent + (power_is_negative ? -power : power))) == (is_negative ? -(double)bits : (double)bits));
}

static int read_integer(const char *text, int *is_negative, uint64_t *magnitude) {
    *is_negative = *text == '-';
    *magnitude = 0;
    text += *is_negative;
    if (!*text) return 0;
    for (; *text; ++text) {
        if (*text < '0' || *text > '9' || *magnitude > (UINT64_MAX - 9) / 10) return 0;
        *magnitude = *magnitude * 10 + (uint64_t)(*text - '0');
    }
    return 1;
}

int tess_stored_value(const char *text, int32_t dtype, unsigned char *value) {
    const size_t size = tess_dtype_size(dtype);
    uint64_t magnitude, most, bits;
    int is_negative;
    if (dtype == TESS_F32 || dtype == TESS_F64) {
        double number;
        float narrow;
        if (!read_float(text, &number)) return 0;
        narrow = (float)number;
        if (dtype == TESS_F64) return memcpy(value, &number, sizeof number), 1;
        if ((double)narrow != number && number == number) return 0;
        return memcpy(value, &narrow, sizeof narrow), 1;
    }
    if (!read_integer(text, &is_negative, &magnitude)) return 0;
    if (dtype == TESS_BOOL || dtype == TESS_U8) most = dtype == TESS_BOOL ? 1 : 255;
    else if (dtype == TESS_I8 || dtype == TESS_I32 || dtype == TESS_I64) most = (UINT64_C(1) << (8 * size - 1)) - 1 + (uint64_t)is_negative;
    else return 0;
    if (magnitude > most || (is_negative && magnitude > 0 && (dtype == TESS_BOOL || dtype == TESS_U8))) return 0;
    bits = is_negative ? 0 - magnitude : magnitude;
    /* Little-endian, as all processors are that code is loaded on. */
    memcpy(value, &bits, size);
    return 1;
}

uint64_t tess_stored_u64(TessFields *f, const char *name) {
    uint64_t number = 0, i;
    int is_one;
    if (!tess_fields_next(f, name, TESS_JSON_NONE)) return 0;
    is_one = f->value.bytes > 0 && (f->value.kind == TESS_JSON_NUMBER || f->value.kind == TESS_JSON_STRING);
    for (i = 0; is_one && i < f->value.bytes; ++i) {
        const char c = f->value.text[i];
        is_one = c >= '0' && c <= '9' && number <= UINT64_MAX / 10 && number * 10 <= UINT64_MAX - (uint64_t)(c - '0');
        number = number * 10 + (uint64_t)(c - '0');
    }
    if (!is_one) return (uint64_t)tess_fields_refuse(f, "an integer of 64 bits without a sign, as a number or its digits as a text");
    return number;
}
