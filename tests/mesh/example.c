/* Four ranks, threads of this process, add up what each has. */
#include <pthread.h>
#include <stdio.h>

#include "runtime/mesh/mesh.h"

enum { RANKS = 4, CHUNKS = 8, COUNT = 3 };

typedef struct Rank {
    TessThreads *threads;
    int rank;
} Rank;

static int say(int32_t status, const TessFault *fault) {
    char words[200];
    tess_status_message(status, fault, NULL, words, sizeof words);
    fprintf(stderr, "%s\n", words);
    return 1;
}

static void *run_rank(void *argument) {
    const Rank *self = argument;
    float mine[CHUNKS / RANKS][COUNT], sum[COUNT];
    TessEngine engine;
    TessMesh *mesh = NULL;
    TessMeshOptions options = tess_mesh_options();
    TessCollective all_reduce = tess_collective(TESS_ALL_REDUCE);
    TessFault fault = tess_fault();
    int32_t status = tess_threads_engine(self->threads, self->rank, &engine);
    int c, i;
    options.timeout_ns = 5000000000u; /* a rank that is silent for 5 s ends the mesh */
    if (status == TESS_OK) status = tess_mesh_create(&engine, &options, &mesh, &fault);
    if (status != TESS_OK) {
        say(status, &fault);
        return NULL;
    }

    /* Chunk number c of all is made of c alone, whoever has it: so the sum has the same bits for 1, 2, 4 and 8 ranks. */
    for (c = 0; c < CHUNKS / RANKS; ++c)
        for (i = 0; i < COUNT; ++i) mine[c][i] = 0.1f * (float)(self->rank * (CHUNKS / RANKS) + c) + (float)i;
    all_reduce.dtype = TESS_F32;
    all_reduce.monoid = TESS_SUM;
    all_reduce.chunks = CHUNKS;
    all_reduce.count = COUNT;
    all_reduce.input = mine;
    all_reduce.result = sum;
    status = tess_mesh_collective(mesh, &all_reduce, &fault);
    if (status != TESS_OK) say(status, &fault);
    else if (self->rank == 0) printf("%g %g %g\n", sum[0], sum[1], sum[2]);
    tess_mesh_destroy(mesh);
    return NULL;
}

int main(void) {
    TessThreads *threads = NULL;
    Rank rank[RANKS];
    pthread_t thread[RANKS];
    const int32_t status = tess_threads_create(RANKS, &threads);
    int r;
    if (status != TESS_OK) return say(status, NULL);
    for (r = 0; r < RANKS; ++r) {
        rank[r].threads = threads;
        rank[r].rank = r;
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r]) != 0) return 1;
    }
    for (r = 0; r < RANKS; ++r) pthread_join(thread[r], NULL);
    tess_threads_destroy(threads);
    return 0;
}
