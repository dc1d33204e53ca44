#define _GNU_SOURCE
#include "runtime/bundle/map.h"

#include "runtime/bundle/refusal.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int32_t refuse_file(TessBundleError *error, const char *why) {
    return tess_bundle_refuse(error, TESS_BUNDLE_FILE, "expected a bundle that can be read, got: %s. Name one that 'bundle make' wrote.",
                              why);
}

int32_t tess_bundle_map(const char *path, const void **file, uint64_t *size, TessBundleError *error) {
    struct stat what;
    int32_t status = TESS_OK;
    const int open_file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait */
    void *mapped = MAP_FAILED;
    if (open_file < 0) return refuse_file(error, strerror(errno));
    if (fstat(open_file, &what) != 0) status = refuse_file(error, strerror(errno));
    else if (!S_ISREG(what.st_mode)) status = refuse_file(error, "it is no regular file");
    else if (what.st_size == 0) status = refuse_file(error, "it is empty");
    if (!status) {
        mapped = mmap(NULL, (size_t)what.st_size, PROT_READ, MAP_PRIVATE, open_file, 0);
        if (mapped == MAP_FAILED) status = refuse_file(error, strerror(errno));
    }
    close(open_file);
    if (status) return status;
    *file = mapped;
    *size = (uint64_t)what.st_size;
    return TESS_OK;
}

void tess_bundle_unmap(const void *file, uint64_t size) { munmap((void *)(uintptr_t)file, size); }

void *tess_bundle_take(uint64_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void tess_bundle_give(void *memory, uint64_t bytes) { munmap(memory, bytes); }

#else

int32_t tess_bundle_map(const char *path, const void **file, uint64_t *size, TessBundleError *error) {
    (void)path, (void)file, (void)size;
    return tess_bundle_refuse(error, TESS_BUNDLE_FILE,
                              "bundle: expected Linux, got another system. Read the file, and use tess_bundle_read.");
}

void tess_bundle_unmap(const void *file, uint64_t size) { (void)file, (void)size; }

void *tess_bundle_take(uint64_t bytes) {
    (void)bytes;
    return NULL;
}

void tess_bundle_give(void *memory, uint64_t bytes) { (void)memory, (void)bytes; }

#endif
