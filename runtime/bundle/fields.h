/** Objects of JSON whose fields stand in one order: read field by field. The first mistake is written to the error, and all that comes
 *  after it gives nothing, so that one look at `status` at the end is enough. */
#ifndef TESSERA_BUNDLE_FIELDS_H
#define TESSERA_BUNDLE_FIELDS_H

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/json.h"

typedef struct TessFields {
    TessJson json;
    TessJsonValue key, value;
    int is_pending;       /**< whether key and value were read and wait for their field */
    int is_ended;         /**< whether the object ended where a field that may be missing was looked for */
    int32_t status, kind; /**< what is wrong; the kind that a mistake has */
    const char *subject;  /**< the file, for messages */
    TessBundleError *error;
} TessFields;

/** Begins with an object. The text must be writable: strings are resolved in their place. */
void tess_fields_begin(TessFields *fields, char *text, uint64_t bytes, const char *subject, int32_t kind, TessBundleError *error);
/** Refuses: what was expected at the value that was read last. Gives 0. */
int tess_fields_refuse(TessFields *fields, const char *expected);
/** The next field, of this name and kind (TESS_JSON_NONE: any); its value is in `value`. */
int tess_fields_next(TessFields *fields, const char *name, TessJsonKind kind);
/** Whether the next field is this one, which may be missing. */
int tess_fields_maybe(TessFields *fields, const char *name, TessJsonKind kind);
/** The end of an object: no field is left. */
int tess_fields_end(TessFields *fields);
/** The next member of an array, of a kind; 0 at its end. */
int tess_fields_item(TessFields *fields, TessJsonKind kind);
/** After the whole text. */
int tess_fields_done(TessFields *fields);

/** A field that is a string: zero-terminated, in the text. "" where something is wrong. */
const char *tess_fields_text(TessFields *fields, const char *name);
/** The string that was read last. */
const char *tess_fields_string(TessFields *fields);
/** A field that is this string. */
void tess_fields_word(TessFields *fields, const char *name, const char *word);
/** A field that is an integer in [0, most]. 0 where something is wrong. */
int64_t tess_fields_integer(TessFields *fields, const char *name, int64_t most);
/** A field that is skipped with all that is in it. */
void tess_fields_skip(TessFields *fields, const char *name, TessJsonKind kind);
/** Bytes of lower-case hexadecimal digits. */
int tess_fields_hex(const char *digits, unsigned char *bytes, uint64_t count);

#endif
