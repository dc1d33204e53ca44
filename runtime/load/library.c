#define _GNU_SOURCE
#include "runtime/load/load.h"

#include "runtime/load/refusal.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/load/link.h"

TessLoadStatus tess_load_archive(const void *bytes, uint64_t size, TessLoaded **loaded, TessLoadError *error) {
    if (!bytes || !loaded)
        return tess_load_refuse(error, TESS_LOAD_ARGUMENT,
                                "library: expected its bytes and a place for what is loaded, got a null pointer.");
    *loaded = NULL;
    return tess_load_link(bytes, size, loaded, error);
}

static TessLoadStatus refuse_file(TessLoadError *error, const char *why) {
    return tess_load_refuse(error, TESS_LOAD_FILE, "expected a library that can be read, got: %s. Name lib<name>.a as 'generate' wrote it.",
                            why);
}

/* Reads rather than maps it: another process may cut it off meanwhile. */
static TessLoadStatus load_open_file(int file, TessLoaded **loaded, TessLoadError *error) {
    struct stat what;
    unsigned char *bytes;
    uint64_t size, done = 0;
    TessLoadStatus status;
    if (fstat(file, &what) != 0) return refuse_file(error, strerror(errno));
    if (!S_ISREG(what.st_mode)) return refuse_file(error, "it is no regular file");
    if (what.st_size == 0) return refuse_file(error, "it is empty");
    size = (uint64_t)what.st_size;
    if (size > TESS_LOAD_MAX_BYTES) return tess_load_archive("", size, loaded, error);
    bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return tess_load_refuse(error, TESS_LOAD_MEMORY, "expected %llu bytes of memory, got none. Free some.", (unsigned long long)size);
    while (done < size) {
        const ssize_t n = read(file, bytes + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0) done += (uint64_t)n;
    }
    status = done == size ? tess_load_archive(bytes, size, loaded, error) : refuse_file(error, "it ends before its size");
    munmap(bytes, size);
    return status;
}

TessLoadStatus tess_load_file(const char *path, TessLoaded **loaded, TessLoadError *error) {
    TessLoadStatus status;
    int file;
    if (!path || !loaded)
        return tess_load_refuse(error, TESS_LOAD_ARGUMENT, "library: expected a path and a place for what is loaded, got a null pointer.");
    *loaded = NULL;
    file = open(path, O_RDONLY | O_CLOEXEC);
    status = file < 0 ? refuse_file(error, strerror(errno)) : load_open_file(file, loaded, error);
    if (file >= 0) close(file);
    if (status) tess_load_blame_file(error, path);
    return status;
}

void *tess_loaded_symbol(const TessLoaded *loaded, const char *name) {
    uint32_t hash;
    const TessLoadGlobal *global;
    if (!loaded || !name || !*name) return NULL;
    global = tess_load_find(&loaded->symbols, name, &hash);
    return global->name && global->exported ? (void *)(uintptr_t)global->address : NULL;
}

void tess_loaded_code(const TessLoaded *loaded, const void **begin, uint64_t *bytes) {
    *begin = loaded->code;
    *bytes = loaded->code_bytes;
}

void tess_loaded_close(TessLoaded *loaded) {
    if (loaded) munmap(loaded, loaded->bytes);
}

#else

static TessLoadStatus refuse_here(TessLoaded **loaded, TessLoadError *error) {
    if (loaded) *loaded = NULL;
    return tess_load_refuse(
        error, TESS_LOAD_SYSTEM,
        "library: expected Linux on x86-64 or 64-bit ARM, got another system. Link the library with this system's linker.");
}

TessLoadStatus tess_load_archive(const void *bytes, uint64_t size, TessLoaded **loaded, TessLoadError *error) {
    (void)bytes, (void)size;
    return refuse_here(loaded, error);
}

TessLoadStatus tess_load_file(const char *path, TessLoaded **loaded, TessLoadError *error) {
    (void)path;
    return refuse_here(loaded, error);
}

void *tess_loaded_symbol(const TessLoaded *loaded, const char *name) {
    (void)loaded, (void)name;
    return (void *)0;
}

void tess_loaded_code(const TessLoaded *loaded, const void **begin, uint64_t *bytes) {
    (void)loaded;
    *begin = (void *)0;
    *bytes = 0;
}

void tess_loaded_close(TessLoaded *loaded) { (void)loaded; }

#endif
