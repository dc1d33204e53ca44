#include "runtime/load/archive.h"

#include <string.h>

#include "runtime/load/refusal.h"

enum { MAGIC_BYTES = 8, HEADER_BYTES = 60, NAME_BYTES = 16, SIZE_AT = 48, SIZE_DIGITS = 10, END_AT = 58 };

#define REMEDY "The file is damaged or no output of 'generate'; generate it again."

TessLoadStatus tess_load_archive_begin(TessLoadArchive *archive, const void *bytes, uint64_t size, TessLoadError *error) {
    memset(archive, 0, sizeof *archive);
    archive->bytes = bytes;
    archive->size = size;
    archive->at = MAGIC_BYTES;
    if (size > TESS_LOAD_MAX_BYTES)
        return tess_load_refuse(error, TESS_LOAD_LARGE, "library: expected at most %llu bytes, got %llu. Generate several libraries.",
                                (unsigned long long)TESS_LOAD_MAX_BYTES, (unsigned long long)size);
    if (size >= MAGIC_BYTES && memcmp(bytes, "!<thin>\n", MAGIC_BYTES) == 0)
        return tess_load_refuse(
            error, TESS_LOAD_ARCHIVE,
            "library: expected one that has its objects in itself, got a thin one, which names files. Make it without 'T'.");
    if (size < MAGIC_BYTES || memcmp(bytes, "!<arch>\n", MAGIC_BYTES) != 0)
        return tess_load_refuse(error, TESS_LOAD_ARCHIVE,
                                "library: expected a static library, which begins with '!<arch>', got %llu bytes that do not. " REMEDY,
                                (unsigned long long)size);
    return TESS_LOAD_OK;
}

/* A decimal number of at most `digits` characters, with spaces after it. */
static int number(const unsigned char *text, int digits, uint64_t *value) {
    int i = 0;
    *value = 0;
    for (; i < digits && text[i] >= '0' && text[i] <= '9'; ++i) *value = *value * 10 + (uint64_t)(text[i] - '0');
    if (i == 0) return 0;
    for (; i < digits; ++i)
        if (text[i] != ' ') return 0;
    return 1;
}

static int is_name(const unsigned char *field, const char *name) {
    const size_t length = strlen(name);
    size_t i;
    for (i = length; i < NAME_BYTES; ++i)
        if (field[i] != ' ') return 0;
    return memcmp(field, name, length) == 0;
}

/* A name ends before its first '/'. */
static int until_slash(const char *text, uint64_t most, int *bytes) {
    uint64_t i;
    for (i = 0; i < most && i < 4096; ++i)
        if (text[i] == '/') return *bytes = (int)i, 1;
    return 0;
}

static int name_of(const TessLoadArchive *archive, const unsigned char *field, TessLoadMember *member) {
    uint64_t at;
    if (field[0] != '/') return member->name = (const char *)field, until_slash(member->name, NAME_BYTES, &member->name_bytes);
    if (!number(field + 1, NAME_BYTES - 1, &at) || at >= archive->long_name_bytes) return 0;
    member->name = archive->long_names + at;
    return until_slash(member->name, archive->long_name_bytes - at, &member->name_bytes);
}

TessLoadStatus tess_load_archive_next(TessLoadArchive *archive, TessLoadMember *member, TessLoadError *error) {
    memset(member, 0, sizeof *member);
    while (archive->at < archive->size) {
        const uint64_t at = archive->at, left = archive->size - at;
        const unsigned char *header = archive->bytes + at;
        if (left < HEADER_BYTES || header[END_AT] != '`' || header[END_AT + 1] != '\n')
            return tess_load_refuse(error, TESS_LOAD_ARCHIVE, "library: expected the header of a member at byte %llu, got %s. " REMEDY,
                                    (unsigned long long)at, left < HEADER_BYTES ? "the end of the file" : "something else");
        if (!number(header + SIZE_AT, SIZE_DIGITS, &member->size) || member->size > left - HEADER_BYTES)
            return tess_load_refuse(
                error, TESS_LOAD_ARCHIVE,
                "library: expected a size of at most %llu in the header of the member at byte %llu, got '%.10s'. " REMEDY,
                (unsigned long long)(left - HEADER_BYTES), (unsigned long long)at, (const char *)header + SIZE_AT);
        member->bytes = header + HEADER_BYTES;
        archive->at += HEADER_BYTES + member->size;
        archive->at += archive->at % 2; /* members begin at even bytes, the file's first being 0 */
        if (is_name(header, "/") || is_name(header, "/SYM64/")) continue;
        if (is_name(header, "//")) {
            archive->long_names = (const char *)member->bytes;
            archive->long_name_bytes = member->size;
            continue;
        }
        if (!name_of(archive, header, member))
            return tess_load_refuse(error, TESS_LOAD_ARCHIVE,
                                    "library: expected a name that ends with '/' for the member at byte %llu, or a place in the table of "
                                    "names, got '%.16s'. " REMEDY,
                                    (unsigned long long)at, (const char *)header);
        return TESS_LOAD_OK;
    }
    member->bytes = NULL;
    return TESS_LOAD_OK;
}
