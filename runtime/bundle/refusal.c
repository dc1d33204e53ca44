#include "runtime/bundle/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t tess_bundle_refuse(TessBundleError *error, int32_t status, const char *format, ...) {
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

void tess_bundle_blame_file(TessBundleError *error, const char *path) {
    char said[sizeof error->text];
    if (!error) return;
    memcpy(said, error->text, sizeof said);
    snprintf(error->text, sizeof error->text, "file '%.200s': %.800s", path, said);
}
