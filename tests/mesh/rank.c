/* One rank in a process of its own, for processes.py: runs operations, and fails at one of them as it is told.
 *
 *     rank gloo|mpi <folder> <rank> <ranks> <operations> <culprit> <at> <way> <timeout in ms>
 *
 * It leaves a line in <folder>/out.<rank>: the kind of its last status, the operation, the rank at fault, the time of the last call in ms,
 * whether the mesh said after it that it is broken, and a hash of all results. With mpi, rank and ranks are MPI's. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/mesh/mesh.h"
#if defined(WITH_MPI)
#include "runtime/mesh/engine_mpi.h"
#endif
#if defined(WITH_GLOO)
#include "runtime/mesh/engine_gloo.h"
#endif

enum { COUNT = 6000, CHUNKS = 8 };

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void sleep_ms(long ms) {
    struct timespec time;
    time.tv_sec = ms / 1000;
    time.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&time, NULL);
}

/* Operation i: sums over chunks whose elements depend on the chunk's number alone, so that the results are those of any number of ranks. */
static int32_t operation(TessMesh *mesh, int i, float *in, float *out, TessFault *fault, unsigned long long *hash) {
    const int ranks = tess_mesh_ranks(mesh, 0), rank = tess_mesh_rank(mesh, 0), each = CHUNKS / ranks;
    const int count = i % 2 == 0 ? 3 : COUNT;
    TessCollective c = tess_collective(TESS_ALL_REDUCE);
    int32_t status;
    int chunk, e;
    for (chunk = 0; chunk < each; ++chunk)
        for (e = 0; e < count; ++e) in[chunk * count + e] = 1.0f / (float)(1 + (rank * each + chunk) * 7 + e % 101 + i);
    c.dtype = TESS_F32;
    c.monoid = TESS_SUM;
    c.chunks = CHUNKS;
    c.count = count;
    c.input = in;
    c.result = out;
    status = tess_mesh_collective(mesh, &c, fault);
    for (e = 0; e < count && status == TESS_OK; ++e) {
        unsigned bits;
        memcpy(&bits, &out[e], 4);
        *hash = (*hash ^ bits) * 1099511628211ull;
    }
    return status;
}

int main(int argc, char **argv) {
    static float in[COUNT * CHUNKS], out[COUNT];
    const char *engine_name = argc == 10 ? argv[1] : "", *folder = argc == 10 ? argv[2] : "", *way = argc == 10 ? argv[8] : "";
    const int operations = argc == 10 ? atoi(argv[5]) : 0, culprit = argc == 10 ? atoi(argv[6]) : 0, at = argc == 10 ? atoi(argv[7]) : 0;
    const long timeout = argc == 10 ? atol(argv[9]) : 0;
    TessMeshOptions options = tess_mesh_options();
    TessFault fault = tess_fault();
    TessEngine engine;
    TessMesh *mesh = NULL;
    int32_t status = TESS_MESH_ENGINE, again = 0;
    unsigned long long hash = 14695981039346656037ull;
    double took = 0;
    char path[4096];
    FILE *file;
    int i;
    if (argc != 10) return 2;
#if defined(WITH_GLOO)
    if (strcmp(engine_name, "gloo") == 0) status = tess_gloo_engine(folder, "localhost", atoi(argv[3]), atoi(argv[4]), 20000, &engine);
#endif
#if defined(WITH_MPI)
    if (strcmp(engine_name, "mpi") == 0) status = tess_mpi_engine(&engine);
#endif
    options.timeout_ns = (uint64_t)timeout * 1000000u;
    if (status == TESS_OK) status = tess_mesh_create(&engine, &options, &mesh, &fault);
    if (status != TESS_OK) {
        fprintf(stderr, "%s: %s\n", engine_name, tess_status_kind(status));
        return 3;
    }
    if (strcmp(way, "other") == 0 && engine.rank == culprit) {
        /* Another program: its first operation is none of the others'. */
        operation(mesh, 1, in, out, &fault, &hash);
    }
    for (i = 0; i < operations; ++i) {
        double begin;
        if (i == at && engine.rank == culprit) {
            /* Not before the others are connected to it. */
            if (at == 0 && (strcmp(way, "kill") == 0 || strcmp(way, "close") == 0)) sleep_ms(timeout / 2);
            if (strcmp(way, "kill") == 0) raise(SIGKILL);
            if (strcmp(way, "stop") == 0) raise(SIGSTOP);
            if (strcmp(way, "slow") == 0) sleep_ms(timeout / 3);
            if (strcmp(way, "close") == 0) _exit(0);
        }
        begin = now_ms();
        status = operation(mesh, i, in, out, &fault, &hash);
        took = now_ms() - begin;
        if (status == TESS_OK) continue;
        again = operation(mesh, i, in, out, NULL, &hash);
        break;
    }
    snprintf(path, sizeof path, "%s/out.%d.part", folder, (int)engine.rank);
    file = fopen(path, "w");
    if (file == NULL) return 4;
    fprintf(file, "%s %d %lld %.1f %s %llx\n", tess_status_kind(status), i, (long long)fault.got, took, tess_status_kind(again), hash);
    fclose(file);
    {
        char whole[4096];
        snprintf(whole, sizeof whole, "%s/out.%d", folder, (int)engine.rank);
        if (rename(path, whole) != 0) return 4;
    }
    tess_mesh_destroy(mesh);
    return 0;
}
