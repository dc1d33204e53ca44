/** JSON (RFC 8259) as a stranger wrote it, pulled value by value from its text: no allocation, and nothing is kept but where the reader
 *  is. Depth, numbers, escapes and UTF-8 are checked while it reads. What an object says twice is the caller's to find.
 *
 *      TessJson json;
 *      TessJsonValue key, value;
 *      tess_json_begin(&json, text, size, &value);
 *      if (value.kind == TESS_JSON_OBJECT)
 *          while (tess_json_next(&json, &key, &value)) {
 *              if (tess_json_is(&key, "count")) ok = tess_json_integer(&value, 0, 100, &count);
 *              else tess_json_skip(&json, &value);
 *          }
 *      if (!tess_json_end(&json)) …                        json.error says what is wrong at byte json.at
 */
#ifndef TESSERA_BUNDLE_JSON_H
#define TESSERA_BUNDLE_JSON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most objects and arrays within each other. */
enum { TESS_JSON_MAX_DEPTH = 32 };

typedef enum TessJsonKind {
    TESS_JSON_NONE, /**< no value: the text is no JSON */
    TESS_JSON_OBJECT,
    TESS_JSON_ARRAY,
    TESS_JSON_STRING,
    TESS_JSON_NUMBER,
    TESS_JSON_TRUE,
    TESS_JSON_FALSE,
    TESS_JSON_NULL
} TessJsonKind;

/** A value; of a string what is between the quotes, with its escapes; of a number its characters. */
typedef struct TessJsonValue {
    TessJsonKind kind;
    const char *text;
    uint64_t bytes;
} TessJsonValue;

typedef struct TessJson {
    const char *text;
    uint64_t size, at;
    const char *error; /**< what is wrong at byte `at`, or null */
    uint32_t depth;    /**< of open objects and arrays */
    uint32_t objects;  /**< a bit for each of them: whether it is an object */
    int opened;        /**< whether nothing of the innermost was read */
} TessJson;

/** Begins with the value that the text is. Where it is an object or an array, tess_json_next reads what is in it. */
void tess_json_begin(TessJson *json, const char *text, uint64_t size, TessJsonValue *value);

/** The next member of the innermost object or array that is open, and 1; its key is empty in an array. 0 at its end, which closes it, and
 *  where something is wrong. A value that is an object or array is open then: it has to be read to its end, or skipped. */
int tess_json_next(TessJson *json, TessJsonValue *key, TessJsonValue *value);

/** Goes past a value that was just given. */
void tess_json_skip(TessJson *json, const TessJsonValue *value);

/** Whether all was well and nothing follows. */
int tess_json_end(TessJson *json);

/** Whether a value is this string. */
int tess_json_is(const TessJsonValue *value, const char *text);

/** Copies a string with its escapes resolved, and a zero. Gives its bytes without the zero; -1 where it is no string, has a zero in it, or
 *  does not fit into `capacity`. A buffer of value->bytes + 1 always has room. */
int64_t tess_json_copy(const TessJsonValue *value, char *buffer, uint64_t capacity);

/** Whether a value is an integer, without fraction or exponent, in [least, most]. */
int tess_json_integer(const TessJsonValue *value, int64_t least, int64_t most, int64_t *number);

#ifdef __cplusplus
}
#endif
#endif
