#include "runtime/bundle/stored_tensor.h"

#include <string.h>

#include "runtime/bundle/json.h"

typedef struct ElementType {
    const char *name;
    uint8_t code, bits;
} ElementType;

/* What safetensors has, as DLPack numbers it. */
static const ElementType element_types[] = {
    {"F32", 2, 32},         {"F16", 2, 16},     {"BF16", 4, 16},        {"F64", 2, 64},     {"I8", 0, 8},
    {"U8", 1, 8},           {"I16", 0, 16},     {"U16", 1, 16},         {"I32", 0, 32},     {"U32", 1, 32},
    {"I64", 0, 64},         {"U64", 1, 64},     {"BOOL", 6, 8},         {"C64", 5, 64},     {"F8_E4M3", 10, 8},
    {"F8_E4M3FNUZ", 11, 8}, {"F8_E5M2", 12, 8}, {"F8_E5M2FNUZ", 13, 8}, {"F8_E8M0", 14, 8},
};

TessType tess_stored_type(const char *name) {
    TessType type = {0, 0, 1};
    size_t i;
    for (i = 0; i < sizeof element_types / sizeof *element_types; ++i)
        if (strcmp(element_types[i].name, name) == 0) {
            type.code = element_types[i].code;
            type.bits = element_types[i].bits;
        }
    return type;
}

/* The entry of a tensor, whose object is open: whether it is of the type and the extents. Gives where its bytes are. */
static int read_entry(TessJson *json, const TessTensor *like, int64_t offsets[2]) {
    TessJsonValue key, value, inner;
    char type[24];
    int32_t axis = 0, ends = 0;
    int is_type = 0, is_shape = 0;
    while (tess_json_next(json, &key, &value)) {
        if (tess_json_is(&key, "dtype") && tess_json_copy(&value, type, sizeof type) >= 0) {
            const TessType known = tess_stored_type(type);
            is_type = known.bits && known.bits == like->type.bits && known.code == like->type.code;
        } else if (tess_json_is(&key, "shape") && value.kind == TESS_JSON_ARRAY) {
            for (is_shape = 1; tess_json_next(json, &key, &inner); ++axis) {
                int64_t extent;
                tess_json_skip(json, &inner);
                if (axis >= like->rank || !tess_json_integer(&inner, 0, INT64_MAX, &extent) || extent != like->extents[axis]) is_shape = 0;
            }
        } else if (tess_json_is(&key, "data_offsets") && value.kind == TESS_JSON_ARRAY) {
            while (tess_json_next(json, &key, &inner)) {
                tess_json_skip(json, &inner);
                if (ends < 2 && !tess_json_integer(&inner, 0, INT64_MAX, &offsets[ends])) ends = 3;
                ++ends;
            }
        } else {
            tess_json_skip(json, &value);
        }
    }
    return !json->error && is_type && is_shape && axis == like->rank && ends == 2;
}

const unsigned char *tess_stored_tensor(const unsigned char *file, uint64_t size, const char *name, const TessTensor *like) {
    const uint64_t bytes = tess_bytes(like->type.code | like->type.bits << 8, like->rank, like->extents);
    uint64_t header = 0, data;
    int64_t offsets[2];
    TessJson json;
    TessJsonValue key, value;
    int i;
    if (!file || size < 8) return NULL;
    for (i = 7; i >= 0; --i) header = header << 8 | file[i];
    if (header > size - 8) return NULL;
    data = 8 + header;
    tess_json_begin(&json, (const char *)file + 8, header, &value);
    if (value.kind != TESS_JSON_OBJECT) return NULL;
    while (tess_json_next(&json, &key, &value)) {
        if (!tess_json_is(&key, name) || value.kind != TESS_JSON_OBJECT) {
            tess_json_skip(&json, &value);
            continue;
        }
        if (!read_entry(&json, like, offsets) || offsets[1] < offsets[0] || (uint64_t)offsets[1] > size - data ||
            (uint64_t)(offsets[1] - offsets[0]) != bytes)
            return NULL;
        return file + data + offsets[0];
    }
    return NULL;
}
