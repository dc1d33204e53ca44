#include "runtime/bundle/refusal.h"

#include "runtime/load/refusal.h"

int32_t tess_bundle_refuse(TessBundleError *error, int32_t status, const char *format, ...) {
    va_list arguments;
    if (!error) return status;
    error->status = status;
    va_start(arguments, format);
    tess_refusal_write(error->text, format, arguments);
    va_end(arguments);
    return status;
}

void tess_bundle_blame_file(TessBundleError *error, const char *path) {
    if (error) tess_refusal_name_file(error->text, path);
}
