#include "runtime/bundle/zip.h"

#include <string.h>

#include "runtime/bundle/refusal.h"

/* The parts of a zip: PKWARE's APPNOTE, 4.3. */
enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    EXTRA_HEAD_BYTES = 4,
    ALIGNMENT_EXTRA_BYTES = 6, /* at least, with its head */
    ZIP64_ID = 0x0001,
    ALIGNMENT_ID = 0xd935,
    VERSION = 10,
    VERSION_ZIP64 = 45,
    MADE_BY = 0x031e,
    DATE = 0x0021,
    COUNT_ELSEWHERE = 0xffff
};
#define ELSEWHERE UINT32_C(0xffffffff)
#define ATTRIBUTES UINT32_C(0x81a40000)

#define REMEDY "The file is damaged or no bundle; make or get it again."

static uint32_t u16(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t u32(const unsigned char *at) { return u16(at) | u16(at + 2) << 16; }
static uint64_t u64(const unsigned char *at) { return u32(at) | (uint64_t)u32(at + 4) << 32; }

static int32_t refuse(TessBundleError *error, uint64_t at, const char *expected) {
    return tess_bundle_refuse(error, TESS_BUNDLE_FORMAT, "bundle: expected %s at byte %llu, got something else. " REMEDY, expected,
                              (unsigned long long)at);
}

int tess_zip_is_path(const char *path, uint64_t bytes) {
    uint64_t i, part = 0; /* where the part of the path begins */
    if (bytes == 0 || bytes > TESS_ZIP_MAX_PATH) return 0;
    for (i = 0; i <= bytes; ++i) {
        const char c = i < bytes ? path[i] : '/';
        if (c == '/') {
            const uint64_t n = i - part;
            if (n == 0 || (n == 1 && path[part] == '.') || (n == 2 && path[part] == '.' && path[part + 1] == '.')) return 0;
            part = i + 1;
        } else if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '+' ||
                     c == ',' || c == '-')) {
            return 0;
        }
    }
    return 1;
}

uint32_t tess_zip_crc(const void *bytes, uint64_t size) {
    static const uint32_t of_half[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                         0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const unsigned char *byte = bytes;
    uint32_t crc = ELSEWHERE;
    for (; size > 0; --size) {
        crc ^= *byte++;
        crc = crc >> 4 ^ of_half[crc & 15];
        crc = crc >> 4 ^ of_half[crc & 15];
    }
    return ~crc;
}

/* The end of a file of ZIP64, in front of the plain one: members, bytes of the directory, where it begins. */
static int32_t read_end64(TessZip *zip, uint64_t plain_end, uint64_t ends[3], TessBundleError *error) {
    const unsigned char *locator, *end;
    uint64_t at;
    if (plain_end < LOCATOR_BYTES + END64_BYTES) return refuse(error, plain_end, "room for the end of a ZIP64");
    at = plain_end - LOCATOR_BYTES - END64_BYTES;
    end = zip->file + at;
    locator = end + END64_BYTES;
    if (u32(locator) != 0x07064b50 || u32(locator + 4) != 0 || u64(locator + 8) != at || u32(locator + 16) != 1)
        return refuse(error, at + END64_BYTES, "the locator of ZIP64's end, 76 bytes before the plain one");
    if (u32(end) != 0x06064b50 || u64(end + 4) != END64_BYTES - 12 || u16(end + 12) != MADE_BY || u16(end + 14) != VERSION_ZIP64 ||
        u32(end + 16) != 0 || u32(end + 20) != 0 || u64(end + 24) != u64(end + 32))
        return refuse(error, at, "the end of a ZIP64 of one disk");
    ends[0] = u64(end + 32);
    ends[1] = u64(end + 40);
    ends[2] = u64(end + 48);
    zip->directory_end = at;
    return TESS_OK;
}

int32_t tess_zip_begin(TessZip *zip, const void *file, uint64_t size, TessBundleError *error) {
    const unsigned char *end;
    uint64_t plain[3], wide[3], most_member = LOCAL_BYTES + CENTRAL_BYTES + 2;
    int i, is_wide;
    memset(zip, 0, sizeof *zip);
    zip->file = file;
    zip->size = size;
    if (size < END_BYTES || size > (uint64_t)1 << 62)
        return tess_bundle_refuse(error, TESS_BUNDLE_FORMAT, "bundle: expected a file of at least 22 bytes, got %llu. " REMEDY,
                                  (unsigned long long)size);
    zip->directory_end = size - END_BYTES;
    end = zip->file + zip->directory_end;
    plain[0] = u16(end + 10);
    plain[1] = u32(end + 12);
    plain[2] = u32(end + 16);
    if (u32(end) != 0x06054b50 || u32(end + 4) != 0 || u16(end + 8) != plain[0] || u16(end + 20) != 0)
        return refuse(error, zip->directory_end, "the end of a zip of one disk without a comment");
    is_wide = plain[0] == COUNT_ELSEWHERE || plain[1] == ELSEWHERE || plain[2] == ELSEWHERE;
    if (is_wide) {
        const int32_t status = read_end64(zip, zip->directory_end, wide, error);
        if (status) return status;
        for (i = 0; i < 3; ++i) {
            const uint64_t most = i == 0 ? COUNT_ELSEWHERE : ELSEWHERE;
            if (plain[i] == most ? wide[i] < most : wide[i] != plain[i])
                return refuse(error, size - END_BYTES, "numbers that are ZIP64's where they need it and nowhere else");
            plain[i] = wide[i];
        }
    }
    if (plain[2] > zip->directory_end || zip->directory_end - plain[2] != plain[1])
        return refuse(error, size - END_BYTES, "a directory that ends where the end begins");
    if (plain[0] > TESS_ZIP_MAX_MEMBERS || plain[0] > size / most_member)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_FORMAT, "bundle: expected at most %llu members in a file of %llu bytes, got %llu. " REMEDY,
            (unsigned long long)(size / most_member < TESS_ZIP_MAX_MEMBERS ? size / most_member : TESS_ZIP_MAX_MEMBERS),
            (unsigned long long)size, (unsigned long long)plain[0]);
    zip->members = plain[0];
    zip->directory = zip->at = plain[2];
    return TESS_OK;
}

/* Sizes and place in the extra field of a member's entry, where they do not fit; in the order that ZIP64 has them. */
static int read_wide(const unsigned char *extra, uint32_t extra_bytes, uint64_t *const sizes[2], uint64_t *header) {
    uint64_t *const fields[] = {sizes[0], sizes[1], header};
    uint32_t i, at = EXTRA_HEAD_BYTES, wanted = 0;
    for (i = 0; i < 3; ++i) wanted += *fields[i] == ELSEWHERE ? 8 : 0;
    if (wanted == 0) return extra_bytes == 0;
    if (extra_bytes != EXTRA_HEAD_BYTES + wanted || u16(extra) != ZIP64_ID || u16(extra + 2) != wanted) return 0;
    for (i = 0; i < 3; ++i) {
        if (*fields[i] != ELSEWHERE) continue;
        *fields[i] = u64(extra + at);
        if (*fields[i] < ELSEWHERE) return 0;
        at += 8;
    }
    return 1;
}

/* The extra fields of a local header: ZIP64's with both sizes where they need it, then what aligns the data. */
static int is_local_extra(const unsigned char *extra, uint32_t extra_bytes, uint64_t begins, uint64_t bytes) {
    uint32_t i, at = 0, padding;
    if (bytes >= ELSEWHERE) {
        at = EXTRA_HEAD_BYTES + 16;
        if (extra_bytes < at || u16(extra) != ZIP64_ID || u16(extra + 2) != 16 || u64(extra + 4) != bytes || u64(extra + 12) != bytes)
            return 0;
    }
    padding = extra_bytes - at;
    if (padding < ALIGNMENT_EXTRA_BYTES || padding >= ALIGNMENT_EXTRA_BYTES + TESS_ZIP_ALIGNMENT ||
        (begins + extra_bytes) % TESS_ZIP_ALIGNMENT != 0)
        return 0;
    extra += at;
    if (u16(extra) != ALIGNMENT_ID || u16(extra + 2) != padding - EXTRA_HEAD_BYTES || u16(extra + 4) != TESS_ZIP_ALIGNMENT) return 0;
    for (i = ALIGNMENT_EXTRA_BYTES; i < padding; ++i)
        if (extra[i] != 0) return 0;
    return 1;
}

static int32_t read_local(TessZip *zip, TessZipMember *member, uint32_t size_word, TessBundleError *error) {
    const uint64_t left = zip->directory - member->header;
    const unsigned char *local = zip->file + member->header;
    uint32_t extra_bytes;
    if (left < LOCAL_BYTES || u32(local) != 0x04034b50) return refuse(error, member->header, "the local header of a member");
    extra_bytes = u16(local + 28);
    if (u16(local + 4) != (size_word == ELSEWHERE ? VERSION_ZIP64 : VERSION) || u16(local + 6) != 0 || u16(local + 8) != 0 ||
        u16(local + 10) != 0 || u16(local + 12) != DATE || u32(local + 14) != member->crc || u32(local + 18) != size_word ||
        u32(local + 22) != size_word || u16(local + 26) != member->path_bytes)
        return refuse(error, member->header, "a local header that says what the directory says");
    if (left - LOCAL_BYTES < member->path_bytes + extra_bytes || memcmp(local + LOCAL_BYTES, member->path, member->path_bytes) != 0)
        return refuse(error, member->header, "the path that the directory has");
    member->offset = member->header + LOCAL_BYTES + member->path_bytes;
    if (!is_local_extra(local + LOCAL_BYTES + member->path_bytes, extra_bytes, member->offset, member->bytes))
        return refuse(error, member->offset, "the extra field that aligns data to 64 bytes");
    member->offset += extra_bytes;
    if (member->bytes > zip->directory - member->offset) return refuse(error, member->offset, "data that end before the directory");
    zip->next = member->offset + member->bytes;
    return TESS_OK;
}

int32_t tess_zip_next(TessZip *zip, TessZipMember *member, TessBundleError *error) {
    const unsigned char *entry = zip->file + zip->at;
    const uint64_t left = zip->directory_end - zip->at;
    uint64_t sizes[2];
    uint64_t *const both[2] = {&sizes[0], &sizes[1]};
    uint32_t extra_bytes, size_word, version;
    memset(member, 0, sizeof *member);
    if (zip->members == 0) {
        if (left != 0) return refuse(error, zip->at, "the end of the directory after its last member");
        return zip->next == zip->directory ? TESS_OK : refuse(error, zip->next, "the directory where the last data end");
    }
    zip->members--;
    if (left < CENTRAL_BYTES || u32(entry) != 0x02014b50) return refuse(error, zip->at, "a member's entry in the directory");
    version = u16(entry + 6);
    if (u16(entry + 4) != MADE_BY || u16(entry + 8) != 0 || u16(entry + 10) != 0 || u16(entry + 12) != 0 || u16(entry + 14) != DATE ||
        u16(entry + 32) != 0 || u16(entry + 34) != 0 || u16(entry + 36) != 0 || u32(entry + 38) != ATTRIBUTES)
        return refuse(error, zip->at, "an entry of a stored file, without flags, times, comment and further disks");
    member->crc = u32(entry + 16);
    size_word = u32(entry + 24);
    sizes[0] = size_word;
    sizes[1] = u32(entry + 20);
    member->path_bytes = u16(entry + 28);
    extra_bytes = u16(entry + 30);
    member->header = u32(entry + 42);
    if (left - CENTRAL_BYTES < member->path_bytes + extra_bytes) return refuse(error, zip->at, "an entry that ends in the directory");
    member->path = (const char *)entry + CENTRAL_BYTES;
    if (!tess_zip_is_path(member->path, member->path_bytes)) return refuse(error, zip->at + CENTRAL_BYTES, "a path that bundles may have");
    if (!read_wide(entry + CENTRAL_BYTES + member->path_bytes, extra_bytes, both, &member->header) ||
        version != (extra_bytes ? VERSION_ZIP64 : VERSION))
        return refuse(error, zip->at, "ZIP64's numbers where they are needed and nowhere else");
    if (sizes[0] != sizes[1]) return refuse(error, zip->at, "one size of a stored file");
    member->bytes = sizes[0];
    if (member->header != zip->next || member->header > zip->directory)
        return refuse(error, zip->at, "a local header that begins where the data before it end");
    zip->at += CENTRAL_BYTES + member->path_bytes + extra_bytes;
    return read_local(zip, member, size_word, error);
}
