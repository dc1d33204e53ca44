#include "runtime/load/refusal.h"

#include <stdio.h>
#include <string.h>

void tess_refusal_write(char text[TESS_REFUSAL_BYTES], const char *format, va_list arguments) {
    char *c;
    vsnprintf(text, TESS_REFUSAL_BYTES, format, arguments);
    for (c = text; *c; ++c)
        if (*c < ' ' || *c > '~') *c = '?';
}

void tess_refusal_name_file(char text[TESS_REFUSAL_BYTES], const char *path) {
    char said[TESS_REFUSAL_BYTES];
    memcpy(said, text, sizeof said);
    snprintf(text, TESS_REFUSAL_BYTES, "file '%.200s': %.800s", path, said);
}

TessLoadStatus tess_load_refuse(TessLoadError *error, TessLoadStatus status, const char *format, ...) {
    va_list arguments;
    if (!error) return status;
    error->status = status;
    va_start(arguments, format);
    tess_refusal_write(error->text, format, arguments);
    va_end(arguments);
    return status;
}

void tess_load_blame_file(TessLoadError *error, const char *path) {
    if (error) tess_refusal_name_file(error->text, path);
}

const char *tess_load_status_id(TessLoadStatus status) {
    static const char *const ids[] = {"ok",          "load.argument", "load.file",        "load.memory", "load.system", "load.archive",
                                      "load.object", "load.machine",  "load.unsupported", "load.symbol", "load.range",  "load.large"};
    return status >= 0 && (size_t)status < sizeof ids / sizeof *ids ? ids[status] : "load.unknown";
}
