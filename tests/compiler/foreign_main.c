/* Runs kernels of another processor under an emulator: reads calls from standard input, writes results to standard output.
 * Every tensor and the workspace lie flush against a page that nobody may touch, as in harness.cpp, or, where there are no such
 * pages, against one that nobody has written when the kernel is done. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef __wasi__
#include <sys/mman.h>
#endif

#include "runtime/abi/tessera.h"
#include "tests/compiler/foreign_call.h"

typedef struct Entry {
    int (*call)(const TessTensor *const *, const int64_t *, const TessContext *);
    int (*size)(const TessTensor *const *, const int64_t *, const TessContext *, uint64_t *);
} Entry;
extern const Entry entries[];

enum { MOST_TENSORS = 32, MOST_PARAMETERS = 16, CANARY = 0xc3 };

typedef struct Fenced {
    unsigned char *base, *data;
    size_t bytes, inner, page;
} Fenced;

static void transfer(int out, void *data, size_t n) {
    char *at = data;
    while (n) {
        const ssize_t moved = out ? write(1, at, n) : read(0, at, n);
        if (moved <= 0) exit(out || at != data ? 3 : 0);
        at += moved;
        n -= (size_t)moved;
    }
}

#ifdef __wasi__
enum { OPEN_PAGES = 1 };

static size_t page_bytes(void) { return 4096; }

static unsigned char *map(const Fenced *f) { return aligned_alloc(f->page, f->inner + 2 * f->page); }

static void release(const Fenced *f) { free(f->base); }
#else
enum { OPEN_PAGES = 0 };

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static unsigned char *map(const Fenced *f) {
    unsigned char *base = mmap(NULL, f->inner + 2 * f->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    mprotect(base, f->page, PROT_NONE);
    mprotect(base + f->page + f->inner, f->page, PROT_NONE);
    return base;
}

static void release(const Fenced *f) { munmap(f->base, f->inner + 2 * f->page); }
#endif

/* The memory that may be looked at. */
static unsigned char *first(const Fenced *f) { return f->base + (OPEN_PAGES ? 0 : f->page); }
static unsigned char *last(const Fenced *f) { return f->base + f->page + f->inner + (OPEN_PAGES ? f->page : 0); }

static Fenced fence(size_t bytes, size_t gap, int at_end) {
    Fenced f;
    f.page = page_bytes();
    f.bytes = bytes;
    f.inner = (bytes + gap + f.page) / f.page * f.page;
    f.base = map(&f);
    if (f.base == NULL) exit(4);
    memset(first(&f), CANARY, (size_t)(last(&f) - first(&f)));
    f.data = f.base + f.page + (at_end ? f.inner - bytes - gap : gap);
    return f;
}

/* Whether the bytes around the data are as they were. */
static int intact(const Fenced *f) {
    const unsigned char *at = first(f), *end = last(f);
    for (; at < end; ++at)
        if ((at < f->data || at >= f->data + f->bytes) && *at != CANARY) return 0;
    return 1;
}

static int run(const ForeignCall *call, const TessTensor *const *tensors, const int64_t *parameters, int *clean) {
    TessContext context = tess_context();
    TessPool *pool = call->threads > 1 ? tess_pool_create(call->threads) : NULL;
    uint64_t bytes = 0;
    int status;
    context.threads = call->threads;
    context.pool = pool;
    status = entries[call->kernel].size(tensors, parameters, &context, &bytes);
    if (status == TESS_OK) {
        const Fenced workspace = fence(bytes, 0, 1);
        context.workspace = bytes ? workspace.data : NULL;
        context.workspace_bytes = bytes;
        status = entries[call->kernel].call(tensors, parameters, &context);
        *clean = intact(&workspace);
        release(&workspace);
    }
    tess_pool_destroy(pool);
    return status;
}

int main(void) {
    for (;;) {
        ForeignCall call;
        ForeignReply reply = {0, -1};
        TessTensor tensors[MOST_TENSORS];
        const TessTensor *pointers[MOST_TENSORS];
        Fenced memory[MOST_TENSORS];
        ForeignTensor shapes[MOST_TENSORS];
        int64_t parameters[MOST_PARAMETERS];
        int i, clean = 1;
        transfer(0, &call, sizeof call);
        if (call.tensors > MOST_TENSORS || call.parameters > MOST_PARAMETERS) return 2;
        transfer(0, parameters, (size_t)call.parameters * sizeof *parameters);
        for (i = 0; i < call.tensors; ++i) {
            ForeignTensor *t = &shapes[i];
            transfer(0, t, sizeof *t);
            memory[i] = fence(t->bytes, t->gap, call.at_end);
            transfer(0, memory[i].data, t->bytes);
            tensors[i] = tess_dense(memory[i].data, (TessDType)t->dtype, t->rank, t->extents);
            if (t->strided) tensors[i].strides = t->strides;
            tensors[i].byte_offset = t->byte_offset;
            pointers[i] = &tensors[i];
        }
        reply.status = run(&call, pointers, parameters, &clean);
        if (!clean) reply.damaged = call.tensors;
        for (i = 0; i < call.tensors; ++i)
            if (!intact(&memory[i])) reply.damaged = i;
        transfer(1, &reply, sizeof reply);
        for (i = 0; i < call.tensors; ++i) {
            transfer(1, memory[i].data, memory[i].bytes);
            release(&memory[i]);
        }
    }
}
