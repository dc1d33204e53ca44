/** How everything here says no. */
#ifndef TESSERA_BUNDLE_REFUSAL_H
#define TESSERA_BUNDLE_REFUSAL_H

#include "runtime/bundle/bundle.h"

/** Most characters of a name from a file that a message shows. */
#define TESS_BUNDLE_SHOWN_NAME 100

/** Writes the message, and gives the status. What is not printable becomes '?': names are a stranger's. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int32_t
tess_bundle_refuse(TessBundleError *error, int32_t status, const char *format, ...);

/** Puts the file's path in front of what was written. */
void tess_bundle_blame_file(TessBundleError *error, const char *path);

#endif
