/** The members of a static library in the format of GNU's ar, read with suspicion. */
#ifndef TESSERA_LOAD_ARCHIVE_H
#define TESSERA_LOAD_ARCHIVE_H

#include "runtime/load/load.h"

/** An object of the library; its name is for messages. */
typedef struct TessLoadMember {
    const char *name;
    int name_bytes;
    const unsigned char *bytes;
    uint64_t size;
} TessLoadMember;

/** Where a walk through the members is. */
typedef struct TessLoadArchive {
    const unsigned char *bytes;
    uint64_t size, at;
    const char *long_names;
    uint64_t long_name_bytes;
} TessLoadArchive;

TessLoadStatus tess_load_archive_begin(TessLoadArchive *archive, const void *bytes, uint64_t size, TessLoadError *error);

/** The next object, or none: its `bytes` are null then. The index of symbols and the table of names are no objects. */
TessLoadStatus tess_load_archive_next(TessLoadArchive *archive, TessLoadMember *member, TessLoadError *error);

#endif
