#include "runtime/bundle/fields.h"

#include <stdio.h>
#include <string.h>

#include "runtime/bundle/refusal.h"

int tess_fields_refuse(TessFields *f, const char *expected) {
    if (!f->status)
        f->status =
            tess_bundle_refuse(f->error, f->kind, "%s: expected %s at or before byte %llu, got %s. Make it again, or get it again.",
                               f->subject, expected, (unsigned long long)f->json.at, f->json.error ? f->json.error : "something else");
    return 0;
}

static int refuse_field(TessFields *f, const char *name) {
    char expected[120];
    snprintf(expected, sizeof expected, "the field '%s'", name);
    return tess_fields_refuse(f, expected);
}

void tess_fields_begin(TessFields *f, char *text, uint64_t bytes, const char *subject, int32_t kind, TessBundleError *error) {
    memset(f, 0, sizeof *f);
    f->subject = subject;
    f->kind = kind;
    f->error = error;
    tess_json_begin(&f->json, text, bytes, &f->value);
    if (f->value.kind != TESS_JSON_OBJECT) tess_fields_refuse(f, "an object");
}

int tess_fields_maybe(TessFields *f, const char *name, TessJsonKind kind) {
    if (f->status || f->is_ended) return 0;
    if (!f->is_pending) f->is_pending = tess_json_next(&f->json, &f->key, &f->value);
    if (!f->is_pending) {
        f->is_ended = 1;
        return f->json.error ? refuse_field(f, name) : 0;
    }
    if (!tess_json_is(&f->key, name)) return 0;
    f->is_pending = 0;
    return kind == TESS_JSON_NONE || f->value.kind == kind ? 1 : refuse_field(f, name);
}

int tess_fields_next(TessFields *f, const char *name, TessJsonKind kind) {
    return tess_fields_maybe(f, name, kind) ? 1 : refuse_field(f, name);
}

int tess_fields_end(TessFields *f) {
    if (f->status) return 0;
    if (!f->is_ended && (f->is_pending || tess_json_next(&f->json, &f->key, &f->value) || f->json.error))
        return tess_fields_refuse(f, "the end of an object with the known fields");
    f->is_ended = 0;
    return 1;
}

int tess_fields_item(TessFields *f, TessJsonKind kind) {
    if (f->status) return 0;
    if (!tess_json_next(&f->json, &f->key, &f->value)) return f->json.error ? tess_fields_refuse(f, "a list") : 0;
    return kind == TESS_JSON_NONE || f->value.kind == kind ? 1 : tess_fields_refuse(f, "a list of values of one kind");
}

int tess_fields_done(TessFields *f) {
    if (!f->status && !tess_json_end(&f->json)) tess_fields_refuse(f, "nothing after the object");
    return !f->status;
}

/* The reader is past the string, and what it becomes is not longer. */
const char *tess_fields_string(TessFields *f) {
    char *text = (char *)(uintptr_t)f->value.text;
    if (f->status) return "";
    if (tess_json_copy(&f->value, text, f->value.bytes + 1) < 0) return tess_fields_refuse(f, "a text without zeros"), "";
    return text;
}

const char *tess_fields_text(TessFields *f, const char *name) {
    return tess_fields_next(f, name, TESS_JSON_STRING) ? tess_fields_string(f) : "";
}

void tess_fields_word(TessFields *f, const char *name, const char *word) {
    if (tess_fields_next(f, name, TESS_JSON_STRING) && !tess_json_is(&f->value, word)) refuse_field(f, name);
}

int64_t tess_fields_integer(TessFields *f, const char *name, int64_t most) {
    int64_t number = 0;
    if (!tess_fields_next(f, name, TESS_JSON_NUMBER)) return 0;
    if (tess_json_integer(&f->value, 0, most, &number)) return number;
    return refuse_field(f, name);
}

void tess_fields_skip(TessFields *f, const char *name, TessJsonKind kind) {
    if (tess_fields_next(f, name, kind)) tess_json_skip(&f->json, &f->value);
}

int tess_fields_hex(const char *digits, unsigned char *bytes, uint64_t count) {
    uint64_t i;
    if (strlen(digits) != 2 * count) return 0;
    for (i = 0; i < 2 * count; ++i) {
        const char c = digits[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return 0;
        bytes[i / 2] = (unsigned char)(i % 2 ? bytes[i / 2] | digit : digit << 4);
    }
    return 1;
}
