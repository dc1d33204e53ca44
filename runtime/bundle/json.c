#include "runtime/bundle/json.h"

#include <string.h>

static int refuse(TessJson *json, uint64_t at, const char *why) {
    if (!json->error) json->error = why, json->at = at;
    return 0;
}

/* The byte at an offset; a zero past the end, which no rule takes. */
static unsigned char byte_at(const TessJson *json, uint64_t at) { return at < json->size ? (unsigned char)json->text[at] : 0; }

static void skip_space(TessJson *json) {
    for (;; ++json->at) {
        const unsigned char c = byte_at(json, json->at);
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    }
}

static int hex_digit(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four hexadecimal digits at an offset, or -1. */
static int32_t four_digits(const TessJson *json, uint64_t at) {
    int32_t value = 0;
    int i;
    for (i = 0; i < 4; ++i) {
        const int digit = hex_digit(byte_at(json, at + (uint64_t)i));
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Bytes of the escape that begins at an offset; 0 where it is none. A character above 0xffff is two of them. */
static uint64_t escape_bytes(const TessJson *json, uint64_t at) {
    const unsigned char c = byte_at(json, at + 1);
    int32_t unit, low;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c) ? 2 : 0;
    unit = four_digits(json, at + 2);
    if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000)) return 0;
    if (unit < 0xd800 || unit >= 0xe000) return 6;
    if (byte_at(json, at + 6) != '\\' || byte_at(json, at + 7) != 'u') return 0;
    low = four_digits(json, at + 8);
    return low >= 0xdc00 && low < 0xe000 ? 12 : 0;
}

/* Bytes of the character above 0x7f that begins at an offset, in the shortest form of UTF-8; 0 where it is none. */
static uint64_t character_bytes(const TessJson *json, uint64_t at) {
    const unsigned char c = byte_at(json, at), next = byte_at(json, at + 1);
    unsigned char least = 0x80, most = 0xbf;
    const uint64_t bytes = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    uint64_t i;
    if (c == 0xe0) least = 0xa0;
    if (c == 0xed) most = 0x9f; /* surrogates */
    if (c == 0xf0) least = 0x90;
    if (c == 0xf4) most = 0x8f;
    if (!bytes || next < least || next > most) return 0;
    for (i = 2; i < bytes; ++i)
        if ((byte_at(json, at + i) & 0xc0) != 0x80) return 0;
    return bytes;
}

/* What follows a quote. */
static int read_string(TessJson *json, TessJsonValue *value) {
    uint64_t at = json->at;
    value->kind = TESS_JSON_STRING;
    value->text = json->text + at;
    for (;;) {
        const unsigned char c = byte_at(json, at);
        uint64_t bytes = 1;
        if (at >= json->size) return refuse(json, at, "the end within a string");
        if (c == '"') break;
        if (c < ' ') return refuse(json, at, "a control character in a string");
        if (c == '\\' && (bytes = escape_bytes(json, at)) == 0) return refuse(json, at, "an escape that there is not");
        if (c >= 0x80 && (bytes = character_bytes(json, at)) == 0) return refuse(json, at, "bytes that are no UTF-8");
        at += bytes;
    }
    value->bytes = at - json->at;
    json->at = at + 1;
    return 1;
}

static int skip_digits(TessJson *json) {
    const uint64_t begin = json->at;
    while (byte_at(json, json->at) >= '0' && byte_at(json, json->at) <= '9') ++json->at;
    return json->at > begin;
}

static int read_number(TessJson *json, TessJsonValue *value) {
    const uint64_t begin = json->at;
    uint64_t first;
    json->at += byte_at(json, begin) == '-';
    first = json->at;
    if (!skip_digits(json)) return refuse(json, begin, "no value");
    if (byte_at(json, first) == '0' && json->at > first + 1) return refuse(json, begin, "a number that begins with 0");
    if (byte_at(json, json->at) == '.' && (++json->at, !skip_digits(json)))
        return refuse(json, begin, "a number without digits after its point");
    if (byte_at(json, json->at) == 'e' || byte_at(json, json->at) == 'E') {
        ++json->at;
        if (byte_at(json, json->at) == '+' || byte_at(json, json->at) == '-') ++json->at;
        if (!skip_digits(json)) return refuse(json, begin, "a number without digits in its exponent");
    }
    value->kind = TESS_JSON_NUMBER;
    value->text = json->text + begin;
    value->bytes = json->at - begin;
    return 1;
}

static int read_word(TessJson *json, const char *word, TessJsonKind kind, TessJsonValue *value) {
    const uint64_t bytes = strlen(word);
    if (json->size - json->at < bytes || memcmp(json->text + json->at, word, bytes) != 0) return refuse(json, json->at, "no value");
    value->kind = kind;
    json->at += bytes;
    return 1;
}

static int open_container(TessJson *json, int is_object, TessJsonValue *value) {
    if (json->depth == TESS_JSON_MAX_DEPTH) return refuse(json, json->at, "more than 32 objects and arrays within each other");
    json->objects = (json->objects & ~(UINT32_C(1) << json->depth)) | (uint32_t)is_object << json->depth;
    json->depth++;
    json->at++;
    json->opened = 1;
    value->kind = is_object ? TESS_JSON_OBJECT : TESS_JSON_ARRAY;
    return 1;
}

static int read_value(TessJson *json, TessJsonValue *value) {
    skip_space(json);
    switch (byte_at(json, json->at)) {
    case '{': return open_container(json, 1, value);
    case '[': return open_container(json, 0, value);
    case '"': json->at++; return read_string(json, value);
    case 't': return read_word(json, "true", TESS_JSON_TRUE, value);
    case 'f': return read_word(json, "false", TESS_JSON_FALSE, value);
    case 'n': return read_word(json, "null", TESS_JSON_NULL, value);
    default: return read_number(json, value);
    }
}

void tess_json_begin(TessJson *json, const char *text, uint64_t size, TessJsonValue *value) {
    memset(json, 0, sizeof *json);
    memset(value, 0, sizeof *value);
    json->text = text;
    json->size = size;
    if (!read_value(json, value)) value->kind = TESS_JSON_NONE;
}

int tess_json_next(TessJson *json, TessJsonValue *key, TessJsonValue *value) {
    const int is_object = json->depth > 0 && (json->objects >> (json->depth - 1) & 1);
    memset(key, 0, sizeof *key);
    memset(value, 0, sizeof *value);
    if (json->error || json->depth == 0) return 0;
    skip_space(json);
    if (byte_at(json, json->at) == (is_object ? '}' : ']')) {
        json->at++;
        json->depth--;
        json->opened = 0;
        return 0;
    }
    if (!json->opened) {
        if (byte_at(json, json->at) != ',') return refuse(json, json->at, "no comma and no end of an object or array");
        json->at++;
        skip_space(json);
    }
    json->opened = 0;
    if (is_object) {
        if (byte_at(json, json->at) != '"') return refuse(json, json->at, "no key of an object");
        json->at++;
        if (!read_string(json, key)) return 0;
        skip_space(json);
        if (byte_at(json, json->at) != ':') return refuse(json, json->at, "no colon after a key");
        json->at++;
    }
    return read_value(json, value);
}

void tess_json_skip(TessJson *json, const TessJsonValue *value) {
    const uint32_t outside = json->depth - 1;
    TessJsonValue key, inner;
    if (value->kind != TESS_JSON_OBJECT && value->kind != TESS_JSON_ARRAY) return;
    while (!json->error && json->depth > outside) tess_json_next(json, &key, &inner);
}

int tess_json_end(TessJson *json) {
    if (json->error) return 0;
    if (json->depth > 0) return refuse(json, json->at, "an object or array that was not read to its end");
    skip_space(json);
    return json->at == json->size ? 1 : refuse(json, json->at, "something after the value");
}

/* The character at `*at` of a string that was checked, as UTF-8, its escape resolved; moves on. Gives its bytes. */
static int resolve(const TessJsonValue *value, uint64_t *at, char out[4]) {
    static const char names[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    TessJson json;
    int32_t code;
    memset(&json, 0, sizeof json);
    json.text = value->text;
    json.size = value->bytes;
    out[0] = value->text[*at];
    if (out[0] != '\\') return ++*at, 1;
    if (byte_at(&json, *at + 1) != 'u') {
        const char *name = strchr(names, byte_at(&json, *at + 1));
        out[0] = name ? characters[name - names] : '\0';
        *at += 2;
        return 1;
    }
    code = four_digits(&json, *at + 2);
    *at += 6;
    if (code >= 0xd800 && code < 0xdc00) {
        code = 0x10000 + ((code - 0xd800) << 10) + (four_digits(&json, *at + 2) - 0xdc00);
        *at += 6;
    }
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 63)), 2;
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 63)), out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18), out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63)), out[3] = (char)(0x80 | (code & 63));
    return 4;
}

int tess_json_is(const TessJsonValue *value, const char *text) {
    uint64_t at = 0;
    if (value->kind != TESS_JSON_STRING) return 0;
    while (at < value->bytes) {
        char out[4];
        const int n = resolve(value, &at, out);
        int i;
        for (i = 0; i < n; ++i)
            if (*text == '\0' || *text++ != out[i]) return 0;
    }
    return *text == '\0';
}

int64_t tess_json_copy(const TessJsonValue *value, char *buffer, uint64_t capacity) {
    uint64_t at = 0, length = 0;
    if (value->kind != TESS_JSON_STRING || capacity == 0) return -1;
    while (at < value->bytes) {
        char out[4];
        const int n = resolve(value, &at, out);
        if (out[0] == '\0' || capacity - length <= (uint64_t)n) return -1;
        memcpy(buffer + length, out, (size_t)n);
        length += (uint64_t)n;
    }
    buffer[length] = '\0';
    return (int64_t)length;
}

int tess_json_integer(const TessJsonValue *value, int64_t least, int64_t most, int64_t *number) {
    uint64_t i = 0, size = 0;
    int negative;
    if (value->kind != TESS_JSON_NUMBER) return 0;
    negative = value->text[0] == '-';
    for (i = (uint64_t)negative; i < value->bytes; ++i) {
        const char c = value->text[i];
        if (c < '0' || c > '9' || size > (UINT64_MAX - 9) / 10) return 0;
        size = size * 10 + (uint64_t)(c - '0');
    }
    if (size > (uint64_t)INT64_MAX) return 0;
    *number = negative ? -(int64_t)size : (int64_t)size;
    return *number >= least && *number <= most;
}
