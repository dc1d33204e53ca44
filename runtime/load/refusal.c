#include "runtime/load/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

TessLoadStatus tess_load_refuse(TessLoadError *error, TessLoadStatus status, const char *format, ...) {
    va_list arguments;
    char *c;
    if (!error) return status;
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    for (c = error->text; *c; ++c)
        if (*c < ' ' || *c > '~') *c = '?';
    return status;
}

void tess_load_blame_file(TessLoadError *error, const char *path) {
    char said[sizeof error->text];
    if (!error) return;
    memcpy(said, error->text, sizeof said);
    snprintf(error->text, sizeof error->text, "file '%.200s': %.800s", path, said);
}

const char *tess_load_status_id(TessLoadStatus status) {
    static const char *const ids[] = {"ok",          "load.argument", "load.file",        "load.memory", "load.system", "load.archive",
                                      "load.object", "load.machine",  "load.unsupported", "load.symbol", "load.range",  "load.large"};
    return status >= 0 && (size_t)status < sizeof ids / sizeof *ids ? ids[status] : "load.unknown";
}
