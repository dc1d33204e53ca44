#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/measure/measured_kernels.h"
#include "runtime/load/load.h"

/* The last bytes of the program: the sizes of the libraries before them, the base's first, and words that say that they are there. */
typedef struct Tail {
    uint64_t base_bytes, candidate_bytes;
    char kernels[8];
} Tail;

static TessLoaded *libraries[2];
static TessLoadError error;

static int load(const unsigned char *bytes, uint64_t size, int which) {
    return tess_load_archive(bytes, size, &libraries[which], &error) == TESS_LOAD_OK;
}

const char *measured_open(void) {
    struct stat about;
    Tail tail;
    const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self < 0 || fstat(self, &about) != 0) return "the program cannot read itself (/proc/self/exe)";
    const uint64_t size = (uint64_t)about.st_size;
    const unsigned char *all = mmap(NULL, size, PROT_READ, MAP_PRIVATE, self, 0);
    close(self);
    if (all == MAP_FAILED) return "the program cannot map itself (/proc/self/exe)";
    const uint64_t before = size - sizeof tail;
    memcpy(&tail, all + before, sizeof tail);
    if (memcmp(tail.kernels, "kernels:", sizeof tail.kernels) != 0 || tail.base_bytes > before ||
        tail.candidate_bytes > before - tail.base_bytes)
        return "no kernels are behind the program";
    const unsigned char *candidate = all + before - tail.candidate_bytes, *base = candidate - tail.base_bytes;
    const int loads = load(base, tail.base_bytes, BASE) && (tail.candidate_bytes == 0 || load(candidate, tail.candidate_bytes, CANDIDATE));
    munmap((void *)all, size);
    return loads ? NULL : error.text;
}

int measured_kernel(int which, const char *suffix, TessKernel *kernel) {
    const int library = libraries[which] ? which : BASE;
    char name[1024];
    snprintf(name, sizeof name, "%s%s_describe", library == BASE ? BASE_NAME : CANDIDATE_NAME, suffix);
    int32_t (*const describe)(TessKernel *) = (int32_t(*)(TessKernel *))tess_loaded_symbol(libraries[library], name);
    *kernel = tess_kernel();
    return describe && describe(kernel) == TESS_OK;
}
