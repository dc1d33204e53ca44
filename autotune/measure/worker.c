/* The program that measures one candidate, on whatever machine it runs: commands come in on stdin, a line each, some followed
 * by bytes; answers go out on stdout. It ends with its input. It has the runtime; where it finds the candidate, and the kernel that this
 * is compared with, says measured_kernels.h.
 *
 *   protocol <version>              first of all; answers "protocol <version>" with its own, and means nothing else by other versions
 *   limit <seconds>                 ends the program that long from now, unless the next command is done by then
 *   parameter <i> <bits>            the bits of a parameter, as an integer
 *   packing <i> <suffix>            the name of what packs argument i, behind a kernel's
 *   shape <i> <dtype> <written> <rank> <extent>…   of argument i
 *   tensor <i> <bytes>, then bytes  what argument i holds before a run
 *   random <i> <bytes> <kind> <seed>   the same, but made here (random_elements.h)
 *   blank <i> <bytes>               argument i holds nothing before a run: a pattern
 *   threads <n>                     that a kernel may use
 *   clock <0|1>                     1: time is what this thread had of its processor, so that other programs take nothing of it
 *   cold <0|1>                      1: each call that is timed finds nothing of its data in the caches
 *   callers <n>                     that are timed side by side, each with arguments and a workspace of its own
 *   run <which>                     once; answers "ran <status> <seconds> <workspace bytes>"; which is 0, the candidate, or 1, the other
 *   read <i> <first> <bytes>        what argument i holds from that byte on; answers "part <bytes>", then bytes
 *   packed <i> <first> <bytes>      the same of what the candidate takes packed in place of argument i, from behind its header on
 *   place                           what kernels read and write goes to other memory, with what it held before a run; answers "placed"
 *   time <calls> <calls>            seconds of so many calls of the candidate and of the other, by each caller: "took <seconds> <seconds>"
 *                                   (short ones twice, mirrored, after a call that does not count: whoever comes first after a
 *                                   pause finds cold caches)
 *
 * An operand that a kernel takes packed ahead of time is packed for it once, outside of what is timed; what it has instead of the
 * operand differs between the two kernels. Before a run every written argument gets what it holds then; around each lie bytes that no
 * kernel may touch: "ran -1000" says that one did. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autotune/measure/device_memory.h"
#include "autotune/measure/measured_kernels.h"
#include "bench/measure/evict.h"
#include "bench/measure/random_elements.h"

/* EVERYWHERE: the pages of so many bytes lie in all parts of any cache, wherever they come to lie. */
enum { PROTOCOL = 3, MOST = 64, ZONE = 4096, PATTERN = 0xa5, EVERYWHERE = 64 << 20 };

/* What an argument holds before a run. */
typedef enum Content { BLANK, GIVEN, RANDOM } Content;

typedef struct Held {
    TessTensor desc;
    int64_t shape[8], bytes;
    int written;
    Content content;
    RandomKind kind;
    uint64_t seed;
    unsigned char *block, *given; /* block: zone, data, zone */
    void *memory;                 /* the block, where kernels have it */
} Held;

static TessKernel kernels[2]; /* CANDIDATE, BASE */
static Held held[MOST];
static const TessTensor *tensors[2][MOST]; /* what each of the two kernels takes */
static TessKernel packings[2][MOST];       /* without a spec where it takes the argument as it is */
static TessTensor packed[2][MOST];
static uint64_t packed_bytes[2][MOST];
static int stale[2][MOST];       /* not packed since it was set */
static int64_t parameters[MOST]; /* the struct of them */
static TessContext context;
static unsigned char *scratch[2];
static void *workspace[2]; /* the scratch, where kernels have it */

static void fail(const char *why) {
    fprintf(stderr, "measuring: %s\n", why);
    exit(2);
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    if (!memory) fail("out of memory");
    return memory;
}

static clockid_t ticking = CLOCK_MONOTONIC;

static double now(void) {
    struct timespec t;
    clock_gettime(ticking, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int arguments(void) { return (int)kernels[BASE].spec[TESS_SPEC_N_TENSORS]; }

static Held *argument(int i) {
    if (i < 0 || i >= arguments()) fail("no such argument");
    return &held[i];
}

static void set_parameter(long i, int64_t bits) {
    if (i < 0 || i >= kernels[BASE].spec[TESS_SPEC_N_PARAMETERS]) fail("no such parameter");
    const int64_t *record = tess_spec_parameter(kernels[BASE].spec, i);
    memcpy((char *)parameters + record[TESS_SPEC_PARAMETER_OFFSET], &bits, tess_dtype_size((int32_t)record[TESS_SPEC_PARAMETER_DTYPE]));
}

static int call_of(int which, const TessTensor *const *all, const TessContext *c) {
    const TessKernel *k = &kernels[which];
    return tess_abi2_call(k->spec, k->plan, k->body, all, parameters, c);
}

static int call(int which) { return call_of(which, tensors[which], &context); }

static int workspace_of(int which, uint64_t *bytes) { return tess_call_workspace(&kernels[which], tensors[which], &context, bytes); }

static void set_shape(char *rest) {
    int i, dtype, written, rank, used = 0;
    if (sscanf(rest, "%d %d %d %d%n", &i, &dtype, &written, &rank, &used) != 4 || rank < 0 || rank > 8) fail("shape");
    Held *h = argument(i);
    rest += used;
    for (int d = 0; d < rank; d++) h->shape[d] = strtoll(rest, &rest, 10);
    h->written = written;
    h->desc = tess_dense(h->memory, (TessDType)dtype, rank, h->shape);
    h->desc.byte_offset = ZONE;
    if (context.device.type != 0) h->desc.device = context.device;
}

static void fill(const Held *h) {
    unsigned char *data = h->block + ZONE;
    switch (h->content) {
    case BLANK: memset(data, PATTERN, (size_t)h->bytes); break;
    case GIVEN: memcpy(data, h->given, (size_t)h->bytes); break;
    case RANDOM: random_elements(h->kind, h->seed, 0, h->bytes / random_element_bytes(h->kind), data); break;
    }
    device_write(h->memory, h->block, (size_t)h->bytes + 2 * ZONE);
}

/* Memory of its own, which is not what it had; the kernels' packed operands are made anew. */
static void put(Held *h) {
    unsigned char *before = h->block;
    h->block = allocate((size_t)h->bytes + 2 * ZONE);
    memset(h->block, PATTERN, ZONE);
    memset(h->block + ZONE + h->bytes, PATTERN, ZONE);
    if (h->memory) device_release(h->memory);
    free(before);
    h->memory = device_memory(h->block, (size_t)h->bytes + 2 * ZONE);
    if (!h->memory) fail("out of the device's memory");
    h->desc.data = h->memory;
}

static void set_content(Content content, char *rest) {
    int i, kind = 0;
    int64_t bytes;
    uint64_t seed = 0;
    const int words = sscanf(rest, "%d %" SCNd64 " %d %" SCNu64, &i, &bytes, &kind, &seed);
    if (words != (content == RANDOM ? 4 : 2) || bytes < 0 || kind < 0 || kind >= RANDOM_KINDS) fail("what an argument holds");
    Held *h = argument(i);
    const int is_new = !h->block || h->bytes != bytes;
    h->bytes = bytes, h->content = content, h->kind = (RandomKind)kind, h->seed = seed;
    if (is_new) put(h);
    if (content == GIVEN) {
        free(h->given);
        h->given = allocate((size_t)bytes);
        if (fread(h->given, 1, (size_t)bytes, stdin) != (size_t)bytes) fail("input ended inside a tensor");
    }
    fill(h);
    for (int which = 0; which < 2; which++) {
        if (!packed[which][i].data) tensors[which][i] = &h->desc;
        stale[which][i] = 1;
    }
}

static void tell(const unsigned char *data, int64_t size, int64_t first, int64_t bytes) {
    if (first < 0 || bytes < 0 || first > size || bytes > size - first) fail("no such part");
    printf("part %" PRId64 "\n", bytes);
    fwrite(data + first, 1, (size_t)bytes, stdout);
}

static int intact(const Held *h) {
    for (int64_t i = 0; i < ZONE; i++)
        if (h->block[i] != PATTERN || h->block[ZONE + h->bytes + i] != PATTERN) return 0;
    return 1;
}

static int pack_all(int which) {
    for (int i = 0; i < arguments(); i++) {
        uint64_t bytes = 0;
        const TessTensor *operands[2] = {&held[i].desc, NULL};
        const TessKernel *packing = &packings[which][i];
        if (!packing->spec || !stale[which][i]) continue;
        int status = tess_abi2_packed_bytes(packing->spec, operands, &context, &bytes);
        if (status != TESS_OK) return status;
        stale[which][i] = 0;
        void *before = packed[which][i].data;
        packed_bytes[which][i] = bytes;
        packed[which][i] = tess_packed(memset(allocate(bytes), 0, bytes), &packed_bytes[which][i]);
        free(before);
        tensors[which][i] = operands[1] = &packed[which][i];
        status = tess_call(packing, operands, NULL, &context);
        if (status != TESS_OK) return status;
    }
    return TESS_OK;
}

static int prepare(int which) {
    uint64_t bytes = 0;
    int status = pack_all(which);
    if (status == TESS_OK) status = workspace_of(which, &bytes);
    if (status != TESS_OK) return status;
    unsigned char *before = scratch[which];
    scratch[which] = memset(allocate(bytes), PATTERN, bytes);
    if (workspace[which]) device_release(workspace[which]);
    free(before);
    workspace[which] = device_memory(scratch[which], bytes ? bytes : 1);
    if (!workspace[which]) fail("out of the device's memory");
    context.workspace = workspace[which], context.workspace_bytes = bytes;
    return TESS_OK;
}

static void run(int which) {
    for (int i = 0; i < arguments(); i++)
        if (held[i].written) fill(&held[i]);
    int status = prepare(which);
    const double start = now();
    if (status == TESS_OK) status = call(which);
    device_wait();
    const double took = now() - start;
    for (int i = 0; i < arguments(); i++) {
        if (held[i].written) device_read(held[i].memory, held[i].block, (size_t)held[i].bytes + 2 * ZONE);
        if (status == TESS_OK && !intact(&held[i])) status = -1000;
    }
    printf("ran %d %.9g %" PRIu64 "\n", status, took, context.workspace_bytes);
}

/* One of several that call at one time, beside the first, which has what the answers are read from. */
typedef struct Caller {
    pthread_t thread;
    int which;
    long calls;
    TessTensor descs[2][MOST];
    const TessTensor *tensors[2][MOST];
    unsigned char *scratch[2];
    uint64_t scratch_bytes;
} Caller;

static Caller *others;
static long callers = 1;
static pthread_barrier_t gate;

static void *copy_of(const void *data, size_t bytes) { return memcpy(allocate(bytes), data, bytes); }

/* Arguments of its own, with the values that the first one's have, and a workspace. */
static void equip(Caller *c, int which) {
    if (!c->scratch[which]) {
        for (int i = 0; i < arguments(); i++) {
            const int is_packed = tensors[which][i] == &packed[which][i];
            c->descs[which][i] = is_packed ? packed[which][i] : held[i].desc;
            c->descs[which][i].data = is_packed ? copy_of(packed[which][i].data, (size_t)packed_bytes[which][i])
                                                : copy_of(held[i].block + ZONE, (size_t)held[i].bytes);
            c->descs[which][i].byte_offset = 0;
            c->tensors[which][i] = &c->descs[which][i];
        }
        c->scratch[which] = copy_of(scratch[which], context.workspace_bytes);
    }
    c->which = which, c->scratch_bytes = context.workspace_bytes;
}

static void *call_beside(void *caller) {
    const Caller *c = caller;
    TessContext own = context;
    own.workspace = c->scratch[c->which], own.workspace_bytes = c->scratch_bytes;
    pthread_barrier_wait(&gate);
    for (long n = 0; n < c->calls; n++) call_of(c->which, c->tensors[c->which], &own);
    pthread_barrier_wait(&gate);
    return NULL;
}

/* From when all begin until the last one has ended. */
static double seconds_side_by_side(int which, long calls) {
    if (!others && !(others = calloc((size_t)callers - 1, sizeof *others))) fail("out of memory");
    if (pthread_barrier_init(&gate, NULL, (unsigned)callers) != 0) fail("no barrier");
    for (long c = 0; c < callers - 1; c++) {
        equip(&others[c], which);
        others[c].calls = calls;
        if (pthread_create(&others[c].thread, NULL, call_beside, &others[c]) != 0) fail("no thread");
    }
    pthread_barrier_wait(&gate);
    const double start = now();
    for (long c = 0; c < calls; c++) call(which);
    pthread_barrier_wait(&gate);
    const double took = now() - start;
    for (long c = 0; c < callers - 1; c++) pthread_join(others[c].thread, NULL);
    pthread_barrier_destroy(&gate);
    return took;
}

/* They get theirs anew when they next call. */
static void unequip(void) {
    for (long c = 0; others && c < callers - 1; c++)
        for (int which = 0; which < 2; which++) {
            if (!others[c].scratch[which]) continue;
            for (int i = 0; i < arguments(); i++) free(others[c].descs[which][i].data);
            free(others[c].scratch[which]);
            others[c].scratch[which] = NULL;
        }
}

static void place(void) {
    for (int i = 0; i < arguments(); i++) {
        if (!held[i].block || held[i].bytes > EVERYWHERE) continue;
        put(&held[i]);
        fill(&held[i]);
        stale[0][i] = stale[1][i] = 1;
    }
    for (int which = 0; which < 2; which++)
        if (scratch[which] && prepare(which) != TESS_OK) fail("a kernel that ran refuses its arguments");
    unequip();
}

static int cold;

/* Each call by itself, since the caches are warm after one. */
static double seconds_of_cold_calls(int which, long calls) {
    double took = 0;
    for (long c = 0; c < calls; c++) {
        if (evict_caches() != 0) fail("out of memory");
        const double start = now();
        call(which);
        device_wait();
        took += now() - start;
    }
    return took;
}

static double seconds_of(int which, long calls) {
    if (calls < 1) return 0;
    if (!scratch[which] && prepare(which) != TESS_OK) fail("a kernel that ran refuses its arguments");
    uint64_t bytes = 0;
    workspace_of(which, &bytes);
    context.workspace = workspace[which], context.workspace_bytes = bytes;
    if (callers > 1) return seconds_side_by_side(which, calls);
    if (cold) return seconds_of_cold_calls(which, calls);
    const double start = now();
    for (long c = 0; c < calls; c++) call(which);
    device_wait();
    return now() - start;
}

static void time_both(long calls, long other_calls) {
    const double brief = 10e-3;
    static double last = 0;
    double own, other;
    if (last < brief) {
        seconds_of(BASE, 1);
        own = seconds_of(CANDIDATE, calls);
        other = seconds_of(BASE, other_calls);
        other = (other + seconds_of(BASE, other_calls)) / 2;
        own = (own + seconds_of(CANDIDATE, calls)) / 2;
    } else {
        own = seconds_of(CANDIDATE, calls);
        other = seconds_of(BASE, other_calls);
    }
    last = own + other;
    printf("took %.9g %.9g\n", own, other);
}

/* Whether it was a command. */
static int obey(const char *command, char *rest) {
    char suffix[512];
    long a = 0, b = 0;
    int64_t first = 0, bytes = 0;
    if (strcmp(command, "protocol") == 0) {
        printf("protocol %d\n", PROTOCOL);
    } else if (strcmp(command, "shape") == 0) {
        set_shape(rest);
    } else if (strcmp(command, "tensor") == 0) {
        set_content(GIVEN, rest);
    } else if (strcmp(command, "random") == 0) {
        set_content(RANDOM, rest);
    } else if (strcmp(command, "blank") == 0) {
        set_content(BLANK, rest);
    } else if (strcmp(command, "parameter") == 0 && sscanf(rest, "%ld %" SCNd64, &a, &bytes) == 2) {
        set_parameter(a, bytes);
    } else if (strcmp(command, "packing") == 0 && sscanf(rest, "%ld %511s", &a, suffix) == 2) {
        argument((int)a);
        for (int which = 0; which < 2; which++) measured_kernel(which, suffix, &packings[which][a]);
    } else if (strcmp(command, "threads") == 0 && sscanf(rest, "%ld", &a) == 1) {
        context.threads = (int32_t)a;
        context.pool = a > 1 ? tess_pool_create((int32_t)a) : NULL;
    } else if (strcmp(command, "clock") == 0 && sscanf(rest, "%ld", &a) == 1) {
        struct timespec t;
        ticking = a == 1 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    } else if (strcmp(command, "cold") == 0 && sscanf(rest, "%ld", &a) == 1) {
        cold = a == 1;
    } else if (strcmp(command, "callers") == 0 && sscanf(rest, "%ld", &a) == 1 && a >= 1 && a <= 4096) {
        if (a > 1 && context.device.type != 0) fail("several callers of a device");
        callers = a;
    } else if (strcmp(command, "run") == 0 && sscanf(rest, "%ld", &a) == 1) {
        run(a != 0);
    } else if (strcmp(command, "read") == 0 && sscanf(rest, "%ld %" SCNd64 " %" SCNd64, &a, &first, &bytes) == 3) {
        const Held *h = argument((int)a);
        tell(h->block + ZONE, h->bytes, first, bytes);
    } else if (strcmp(command, "packed") == 0 && sscanf(rest, "%ld %" SCNd64 " %" SCNd64, &a, &first, &bytes) == 3) {
        argument((int)a);
        const TessTensor *p = &packed[0][a];
        if (!p->data) fail("an argument that is not packed");
        tell((unsigned char *)p->data + TESS_PACKED_HEADER_BYTES, (int64_t)packed_bytes[0][a] - TESS_PACKED_HEADER_BYTES, first, bytes);
    } else if (strcmp(command, "place") == 0) {
        place();
        printf("placed\n");
    } else if (strcmp(command, "time") == 0 && sscanf(rest, "%ld %ld", &a, &b) == 2) {
        time_both(a, b);
    } else {
        return 0;
    }
    return 1;
}

int main(void) {
    char line[1024];
    const char *wrong = measured_open();
    if (wrong) fail(wrong);
    for (int which = 0; which < 2; which++) {
        if (!measured_kernel(which, "", &kernels[which])) fail("there is no kernel");
        const int64_t *spec = kernels[which].spec;
        if (spec[TESS_SPEC_N_TENSORS] > MOST || spec[TESS_SPEC_PARAMETER_BYTES] > (int64_t)sizeof parameters) fail("too many arguments");
    }
    context = tess_context();
    if (device_open(&context) != 0) fail("there is no device");
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line + strcspn(line, " \n");
        if (*rest) *rest++ = 0;
        long seconds = 0;
        if (strcmp(line, "limit") == 0 && sscanf(rest, "%ld", &seconds) == 1) {
            alarm((unsigned)seconds);
            continue;
        }
        if (!obey(line, rest)) fail("an unknown command");
        alarm(0);
        fflush(stdout);
    }
    return 0;
}
