/** How everything here says no. */
#ifndef TESSERA_LOAD_REFUSAL_H
#define TESSERA_LOAD_REFUSAL_H

#include <stdarg.h>

#include "runtime/load/load.h"

/** Most characters of a name from a file that a message shows. */
#define TESS_LOAD_SHOWN_NAME 100

/** Bytes of the text of an error, here and of bundles. */
enum { TESS_REFUSAL_BYTES = sizeof(((TessLoadError *)0)->text) };

/** Writes a message. What is not printable becomes '?': names are a stranger's. */
void tess_refusal_write(char text[TESS_REFUSAL_BYTES], const char *format, va_list arguments);

/** Puts a file's path in front of what was written. */
void tess_refusal_name_file(char text[TESS_REFUSAL_BYTES], const char *path);

/** Writes the message, and gives the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
TessLoadStatus
tess_load_refuse(TessLoadError *error, TessLoadStatus status, const char *format, ...);

/** Puts the file's path in front of what was written. */
void tess_load_blame_file(TessLoadError *error, const char *path);

#endif
