#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <time.h>

#include "runtime/cpu/relax.h"
#include "runtime/mesh/inside.h"

enum { YIELDS = 4000, LONGEST_NAP = 200000 /* ns */ };

int32_t tess_mesh_start_in(TessMesh *mesh, uint64_t program, const TessCollective *collective, int64_t *operation, TessFault *fault) {
    TessMeshOperation *made;
    TessTask task;
    TessMeshLane *lane;
    int32_t status, pair;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || collective == NULL || operation == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    *operation = -1;
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    status = tess_mesh_check(mesh, collective, &task, fault);
    if (status != TESS_OK) return status;
    pair = tess_mesh_is_pair(task.collective.kind);
    lane = tess_mesh_lane_of(mesh, task.collective.group, pair ? task.collective.peer : -1, task.collective.kind == TESS_RECEIVE);
    if (lane == NULL || !tess_mesh_grow_operations(mesh) || !tess_mesh_grow_queue(lane))
        return tess_mesh_say_broken(mesh, tess_mesh_fail(mesh, TESS_MESH_MEMORY, mesh->end, mesh->engine.rank), fault);
    made = tess_mesh_operation_of(mesh, mesh->end);
    made->task = task;
    made->hash = tess_mesh_hash_of(program, &task);
    made->lane = lane;
    made->done = 0;
    lane->queue[(lane->first + lane->count++) % lane->capacity] = mesh->end;
    *operation = mesh->end++;
    status = tess_mesh_progress_lane(mesh, lane);
    return status == TESS_OK ? TESS_OK : tess_mesh_say_broken(mesh, status, fault);
}

int32_t tess_mesh_start(TessMesh *mesh, const TessCollective *collective, int64_t *operation, TessFault *fault) {
    return tess_mesh_start_in(mesh, mesh != NULL ? mesh->program : 0, collective, operation, fault);
}

int32_t tess_mesh_test(TessMesh *mesh, int64_t operation, int32_t *done, TessFault *fault) {
    int32_t status;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL || done == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    *done = 0;
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    if (operation < 0 || operation >= mesh->end) return tess_mesh_refuse(fault, TESS_MESH_OPERATION, -1, mesh->end, operation);
    status = tess_mesh_progress(mesh);
    if (status != TESS_OK) return tess_mesh_say_broken(mesh, status, fault);
    *done = tess_mesh_is_done(mesh, operation);
    return TESS_OK;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Between the `round`-th look and the next one: spins, then lets others run, then sleeps, each time longer. */
static void back_off(const TessMesh *mesh, uint64_t round, uint64_t rest) {
    struct timespec nap = {0, 0};
    uint64_t length;
    if (round < (uint64_t)mesh->spins) {
        tess_relax();
        return;
    }
    round -= (uint64_t)mesh->spins;
    if (round < YIELDS) {
        sched_yield();
        return;
    }
    length = (round - YIELDS + 1) * 1000;
    if (length > LONGEST_NAP) length = LONGEST_NAP;
    if (length > rest) length = rest;
    nap.tv_nsec = (long)length;
    nanosleep(&nap, NULL);
}

int32_t tess_mesh_wait(TessMesh *mesh, int64_t operation, TessFault *fault) {
    uint64_t begin = 0, round, time = 0;
    int32_t status;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (mesh == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    if (operation < 0 || operation >= mesh->end) return tess_mesh_refuse(fault, TESS_MESH_OPERATION, -1, mesh->end, operation);
    for (round = 0; !tess_mesh_is_done(mesh, operation); ++round) {
        status = tess_mesh_progress(mesh);
        if (status != TESS_OK) return tess_mesh_say_broken(mesh, status, fault);
        if (tess_mesh_is_done(mesh, operation)) break;
        /* A look at the clock takes as long as a message between threads. */
        if (begin == 0) begin = time = now();
        else if (round % 32 == 0 || round >= (uint64_t)mesh->spins) time = now();
        if (time - begin >= mesh->timeout)
            return tess_mesh_say_broken(
                mesh,
                tess_mesh_fail(mesh, TESS_MESH_LATE, operation, tess_mesh_silent(mesh, tess_mesh_operation_of(mesh, operation)->lane)),
                fault);
        back_off(mesh, round, mesh->timeout - (time - begin));
    }
    if (begin != 0) mesh->statistics.wait_ns += now() - begin;
    return TESS_OK;
}

int32_t tess_mesh_collective(TessMesh *mesh, const TessCollective *collective, TessFault *fault) {
    int64_t operation = -1;
    const int32_t status = tess_mesh_start(mesh, collective, &operation, fault);
    return status == TESS_OK ? tess_mesh_wait(mesh, operation, fault) : status;
}
