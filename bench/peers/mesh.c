/* Times an all-reduce of two ranks: in threads of this process beside memcpy, or with MPI beside MPI_Allreduce. Minima of many runs, of
 * both in turn. Built twice; the program with MPI is started by mpirun. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/mesh/mesh.h"
#if defined(WITH_MPI)
#include <mpi.h>

#include "runtime/mesh/engine_mpi.h"
#endif

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static float *floats(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, bytes) != 0) exit(1);
    memset(memory, 0, bytes);
    return memory;
}

static TessCollective sum_of(size_t bytes, const float *in, float *out) {
    TessCollective c = tess_collective(TESS_ALL_REDUCE);
    c.dtype = TESS_F32;
    c.monoid = TESS_SUM;
    c.count = (int64_t)(bytes / 4);
    c.input = in;
    c.result = out;
    return c;
}

/* Microseconds of one call, of `calls` in a row. */
static double timed(TessMesh *mesh, const TessCollective *c, int calls) {
    const double begin = now_us();
    int i;
    for (i = 0; i < calls; ++i)
        if (tess_mesh_collective(mesh, c, NULL) != TESS_OK) exit(1);
    return (now_us() - begin) / calls;
}

static double least(double a, double b) { return a < b ? a : b; }

/* In one turn after the other, so that noise meets both. */
static int runs_of(size_t bytes) { return bytes <= 4096 ? 400 : bytes <= 1 << 20 ? 1000 : 300; }
static int calls_of(size_t bytes) { return bytes <= 4096 ? 200 : 1; }

#if defined(WITH_MPI)
static const size_t sizes[] = {8, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};

int main(void) {
    TessEngine engine;
    TessMesh *mesh = NULL;
    size_t s;
    if (tess_mpi_engine(&engine) != TESS_OK || tess_mesh_create(&engine, NULL, &mesh, NULL) != TESS_OK) return 1;
    for (s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
        const int calls = calls_of(sizes[s]);
        float *in = floats(sizes[s]), *out = floats(sizes[s]);
        const TessCollective c = sum_of(sizes[s], in, out);
        double ours = 1e30, theirs = 1e30;
        int run, i;
        for (run = 0; run < runs_of(sizes[s]); ++run) {
            double begin;
            ours = least(ours, timed(mesh, &c, calls));
            begin = now_us();
            for (i = 0; i < calls; ++i) MPI_Allreduce(in, out, (int)c.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            theirs = least(theirs, (now_us() - begin) / calls);
        }
        if (engine.rank == 0)
            printf("%9zu bytes  tree %9.2f us  MPI_Allreduce %9.2f us  ratio %.2f\n", sizes[s], ours, theirs, ours / theirs);
        free(in);
        free(out);
    }
    tess_mesh_destroy(mesh);
    return 0;
}
#else
static const size_t sizes[] = {8, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

typedef struct Rank {
    TessThreads *threads;
    int rank;
    double us[SIZES], copied[SIZES];
} Rank;

static void *run_rank(void *argument) {
    Rank *self = argument;
    TessEngine engine;
    TessMesh *mesh = NULL;
    size_t s;
    if (tess_threads_engine(self->threads, self->rank, &engine) != TESS_OK) exit(1);
    if (tess_mesh_create(&engine, NULL, &mesh, NULL) != TESS_OK) exit(1);
    for (s = 0; s < SIZES; ++s) {
        float *in = floats(sizes[s]), *out = floats(sizes[s]);
        const TessCollective c = sum_of(sizes[s], in, out), meet = sum_of(4, in, out);
        int run, i;
        self->us[s] = self->copied[s] = 1e30;
        for (run = 0; run < runs_of(sizes[s]); ++run) {
            const int calls = calls_of(sizes[s]);
            self->us[s] = least(self->us[s], timed(mesh, &c, calls));
            if (self->rank == 0) { /* the other one waits */
                const double begin = now_us();
                for (i = 0; i < calls; ++i) {
                    memcpy(out, in, sizes[s]);
                    __asm__ volatile("" : : "r"(out) : "memory");
                }
                self->copied[s] = least(self->copied[s], (now_us() - begin) / calls);
            }
            timed(mesh, &meet, 1);
        }
        free(in);
        free(out);
    }
    tess_mesh_destroy(mesh);
    return NULL;
}

int main(void) {
    Rank ranks[2];
    pthread_t thread;
    size_t s;
    TessThreads *threads = NULL;
    if (tess_threads_create(2, &threads) != TESS_OK) return 1;
    memset(ranks, 0, sizeof ranks);
    ranks[0].threads = ranks[1].threads = threads;
    ranks[1].rank = 1;
    if (pthread_create(&thread, NULL, run_rank, &ranks[1]) != 0) return 1;
    run_rank(&ranks[0]);
    pthread_join(thread, NULL);
    tess_threads_destroy(threads);
    for (s = 0; s < SIZES; ++s)
        printf("%9zu bytes  threads %9.2f us  memcpy %9.2f us  ratio %.2f\n", sizes[s], ranks[0].us[s], ranks[0].copied[s],
               ranks[0].us[s] / ranks[0].copied[s]);
    return 0;
}
#endif
