/** The zip that a bundle is (docs/bundle.md, "The file"), read with suspicion and without memory: members are stored, follow each other
 *  without gaps, and stand in the directory in the same order. So no two can share a byte, and none is hidden. */
#ifndef TESSERA_BUNDLE_ZIP_H
#define TESSERA_BUNDLE_ZIP_H

#include "runtime/bundle/bundle.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_ZIP_ALIGNMENT = 64, TESS_ZIP_MAX_PATH = 255, TESS_ZIP_MAX_MEMBERS = 100000 };

/** Where a walk through the members is. */
typedef struct TessZip {
    const unsigned char *file;
    uint64_t size;
    uint64_t at, directory, directory_end; /**< in the directory; where it begins and ends */
    uint64_t next, members;                /**< where the next local header must begin; members that are left */
} TessZip;

typedef struct TessZipMember {
    const char *path; /**< of path_bytes characters; null: none */
    uint32_t path_bytes, crc;
    uint64_t header, offset, bytes; /**< where the local header begins; where the data are */
} TessZipMember;

/** Reads the end of the file, and is before the first member. */
int32_t tess_zip_begin(TessZip *zip, const void *file, uint64_t size, TessBundleError *error);

/** The next member, or none: its path is null then, and the whole file was seen. */
int32_t tess_zip_next(TessZip *zip, TessZipMember *member, TessBundleError *error);

/** Whether a path is one that a bundle may have. */
int tess_zip_is_path(const char *path, uint64_t bytes);

/** The CRC-32 of a zip. */
uint32_t tess_zip_crc(const void *bytes, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
