#include "runtime/mesh/fold.h"

#include <string.h>

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* The payload of a NaN would depend on how the compiler orders operands, so each is the same one. */
static inline float one_nan_f32(float x) { return x == x ? x : float_of(0x7fc00000u); }

static inline double one_nan_f64(double x) {
    const uint64_t bits = UINT64_C(0x7ff8000000000000);
    double nan;
    memcpy(&nan, &bits, 8);
    return x == x ? x : nan;
}

static inline float from_bf16(uint16_t x) { return float_of((uint32_t)x << 16); }

/* To nearest, ties to even. */
static inline uint16_t to_bf16(float x) {
    const uint32_t bits = bits_of(x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)(x == x ? rounded : 0x7fc0u);
}

/* Both without a branch, so that loops over them are vectorised: exponents are moved by multiplying with powers of two. */
static inline float from_f16(uint16_t x) {
    const uint32_t word = (uint32_t)x << 16, twice = word + word;
    const float normal = float_of((twice >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
    const float subnormal = float_of(twice >> 17 | 126u << 23) - 0.5f;
    return float_of((word & 0x80000000u) | (twice < 1u << 27 ? bits_of(subnormal) : bits_of(normal)));
}

static inline uint16_t to_f16(float x) {
    const uint32_t word = bits_of(x), twice = word + word;
    const float scaled = (float_of(word & 0x7fffffffu) * 0x1.0p+112f) * 0x1.0p-110f;
    uint32_t bias = twice & 0xff000000u, bits;
    bias = bias < 0x71000000u ? 0x71000000u : bias;
    bits = bits_of(float_of((bias >> 1) + 0x07800000u) + scaled);
    bits = (bits >> 13 & 0x7c00u) + (bits & 0xfffu);
    return (uint16_t)((word >> 16 & 0x8000u) | (twice > 0xff000000u ? 0x7e00u : bits));
}

static inline uint16_t one_nan_f16(float x) { return x == x ? to_f16(x) : (uint16_t)0x7e00; }

#define SAME(x) (x)
#define FOLD(name, type, load, store, expression)                                                  \
    static void name(void *result, const void *left, const void *right, int64_t count) {           \
        type *to = result;                                                                         \
        const type *a = left, *b = right;                                                          \
        int64_t i;                                                                                 \
        INDEPENDENT for (i = 0; i < count; ++i) to[i] = store(expression(load(a[i]), load(b[i]))); \
    }

#define ADD(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
/* A NaN on either side is the result. */
#define GREATER(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define LESS(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define GREATER_INTEGER(x, y) ((x) > (y) ? (x) : (y))
#define LESS_INTEGER(x, y) ((x) < (y) ? (x) : (y))

#define FLOATS(name, type, load, store)          \
    FOLD(sum_##name, type, load, store, ADD)     \
    FOLD(max_##name, type, load, store, GREATER) \
    FOLD(min_##name, type, load, store, LESS)    \
    FOLD(product_##name, type, load, store, TIMES)

/* Unsigned, so that sums and products wrap. */
#define INTEGERS(name, type, unsigned_type)             \
    FOLD(sum_##name, unsigned_type, SAME, SAME, ADD)    \
    FOLD(max_##name, type, SAME, SAME, GREATER_INTEGER) \
    FOLD(min_##name, type, SAME, SAME, LESS_INTEGER)    \
    FOLD(product_##name, unsigned_type, SAME, SAME, TIMES)

FLOATS(f32, float, SAME, one_nan_f32)
FLOATS(f64, double, SAME, one_nan_f64)
FLOATS(f16, uint16_t, from_f16, one_nan_f16)
FLOATS(bf16, uint16_t, from_bf16, to_bf16)
INTEGERS(i32, int32_t, uint32_t)
INTEGERS(i64, int64_t, uint64_t)

TessMeshFold tess_mesh_fold_of(int32_t dtype, int32_t monoid) {
    static const struct {
        int32_t dtype;
        TessMeshFold fold[4];
    } folds[] = {
        {TESS_F32, {sum_f32, max_f32, min_f32, product_f32}}, {TESS_F64, {sum_f64, max_f64, min_f64, product_f64}},
        {TESS_F16, {sum_f16, max_f16, min_f16, product_f16}}, {TESS_BF16, {sum_bf16, max_bf16, min_bf16, product_bf16}},
        {TESS_I32, {sum_i32, max_i32, min_i32, product_i32}}, {TESS_I64, {sum_i64, max_i64, min_i64, product_i64}},
    };
    size_t i;
    if (monoid < TESS_SUM || monoid > TESS_PRODUCT) return NULL;
    for (i = 0; i < sizeof folds / sizeof folds[0]; ++i)
        if (folds[i].dtype == dtype) return folds[i].fold[monoid - TESS_SUM];
    return NULL;
}

/* The bits of the fold of nothing. */
static uint64_t nothing(int32_t dtype, int32_t monoid) {
    switch (dtype) {
    case TESS_F32: return monoid == TESS_MAX ? 0xff800000u : monoid == TESS_MIN ? 0x7f800000u : monoid == TESS_PRODUCT ? 0x3f800000u : 0;
    case TESS_F16: return monoid == TESS_MAX ? 0xfc00u : monoid == TESS_MIN ? 0x7c00u : monoid == TESS_PRODUCT ? 0x3c00u : 0;
    case TESS_BF16: return monoid == TESS_MAX ? 0xff80u : monoid == TESS_MIN ? 0x7f80u : monoid == TESS_PRODUCT ? 0x3f80u : 0;
    case TESS_F64:
        return monoid == TESS_MAX       ? UINT64_C(0xfff0000000000000)
               : monoid == TESS_MIN     ? UINT64_C(0x7ff0000000000000)
               : monoid == TESS_PRODUCT ? UINT64_C(0x3ff0000000000000)
                                        : 0;
    case TESS_I32: return monoid == TESS_MAX ? 0x80000000u : monoid == TESS_MIN ? 0x7fffffffu : monoid == TESS_PRODUCT;
    default: return monoid == TESS_MAX ? UINT64_C(1) << 63 : monoid == TESS_MIN ? (uint64_t)INT64_MAX : monoid == TESS_PRODUCT;
    }
}

void tess_mesh_fill(int32_t dtype, int32_t monoid, void *result, uint64_t bytes) {
    const uint64_t bits = nothing(dtype, monoid), size = tess_dtype_size(dtype);
    const uint32_t bits32 = (uint32_t)bits;
    const uint16_t bits16 = (uint16_t)bits;
    const void *element = size == 8 ? (const void *)&bits : size == 4 ? (const void *)&bits32 : (const void *)&bits16;
    unsigned char *to = result;
    uint64_t at;
    for (at = 0; at < bytes; at += size) memcpy(to + at, element, size);
}

int32_t tess_mesh_fold(int32_t dtype, int32_t monoid, void *result, const void *left, const void *right, int64_t count) {
    const TessMeshFold fold = tess_mesh_fold_of(dtype, monoid);
    if (fold == NULL) return monoid < TESS_SUM || monoid > TESS_PRODUCT ? TESS_MESH_COLLECTIVE : TESS_DTYPE;
    if (count < 0 || (uint64_t)count > (uint64_t)(INT64_MAX / 16)) return TESS_MESH_COUNT;
    if (count > 0 && (result == NULL || left == NULL || right == NULL)) return TESS_NULL_DATA;
    fold(result, left, right, count);
    return TESS_OK;
}
