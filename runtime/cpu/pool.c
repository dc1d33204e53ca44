#if defined(__linux__)
#define _GNU_SOURCE
#include <sched.h>
#else
#define _POSIX_C_SOURCE 200809L
#endif
#include <unistd.h>

#include "runtime/abi/kernel.h"
#include "runtime/cpu/relax.h"

int32_t tess_cpu_count(void) {
    long count;
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return (int32_t)CPU_COUNT(&allowed);
#endif
    count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

typedef int32_t (*Task)(void *closure, int32_t index, int32_t worker);

static int32_t run_alone(Task task, void *closure, int32_t count) {
    int32_t index;
    for (index = 0; index < count; ++index) {
        const int32_t status = task(closure, index, 0);
        if (status != 0) return status;
    }
    return 0;
}

#if defined(__wasi__)
/* A system without threads: a pool has its caller only. */
static int32_t parallel_for(void *state, Task task, void *closure, int32_t count, int32_t workers) {
    (void)state;
    (void)workers;
    return run_alone(task, closure, count);
}

TessPool *tess_pool_create(int32_t threads) {
    static TessPool caller = {sizeof(TessPool), 0, NULL, parallel_for};
    return threads == 1 ? &caller : NULL;
}

void tess_pool_destroy(TessPool *interface) { (void)interface; }
#else
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* One word, the gate, says whether there is work and who is at it, so that a thread joins with
 * one compare-and-swap and a caller that finished alone never waits for threads that are still
 * waking:
 *
 *     63 open | 62 the caller sleeps | 40-59 seats | 20-39 active | 0-19 entered
 *
 * The job's fields are written before the gate opens and read only by threads that entered;
 * whoever finds no index left closes the gate; the caller returns once it is closed and none is
 * active. */
#define GATE_OPEN (UINT64_C(1) << 63)
#define GATE_CALLER_SLEEPS (UINT64_C(1) << 62)
#define GATE_FIELD ((UINT64_C(1) << 20) - 1)
#define GATE_ONE_ENTERED UINT64_C(1)
#define GATE_ONE_ACTIVE (UINT64_C(1) << 20)

enum { MAX_THREADS = 4096, SPINS = 1000, CACHE_LINE = 64 };

typedef struct Pool {
    TessPool interface;
    pthread_t *threads;
    int32_t helpers; /* threads besides the caller */
    int spins;
    unsigned forks; /* value of `forks` where the threads live */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    int sleepers; /* written under the lock */
    int stop;     /* written under the lock */
    int busy;     /* 1 while a caller has the pool */

    Task task;
    void *closure;
    int64_t count;
    int32_t status;
    __attribute__((aligned(CACHE_LINE))) uint64_t gate;
    __attribute__((aligned(CACHE_LINE))) int64_t next;
} Pool;

static unsigned forks;
static pthread_once_t watch_forks_once = PTHREAD_ONCE_INIT;

static void count_fork(void) { __atomic_add_fetch(&forks, 1u, __ATOMIC_RELAXED); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

static int threads_are_here(const Pool *pool) { return pool->forks == __atomic_load_n(&forks, __ATOMIC_RELAXED); }

static uint64_t active(uint64_t gate) { return gate >> 20 & GATE_FIELD; }

static int has_seat(uint64_t gate) { return (gate & GATE_OPEN) != 0 && (gate & GATE_FIELD) < (gate >> 40 & GATE_FIELD); }

/* The worker index that the thread got, or 0 when there is no seat. */
static int32_t enter(Pool *pool) {
    uint64_t gate = __atomic_load_n(&pool->gate, __ATOMIC_RELAXED);
    while (has_seat(gate)) {
        if (__atomic_compare_exchange_n(&pool->gate, &gate, gate + GATE_ONE_ENTERED + GATE_ONE_ACTIVE, 1, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return (int32_t)(gate & GATE_FIELD) + 1;
        }
    }
    return 0;
}

static void take_indices(Pool *pool, int32_t worker) {
    for (;;) {
        const int64_t index = __atomic_fetch_add(&pool->next, 1, __ATOMIC_RELAXED);
        int32_t status, none = 0;
        if (index >= pool->count) break;
        status = pool->task(pool->closure, (int32_t)index, worker);
        if (status != 0) {
            __atomic_compare_exchange_n(&pool->status, &none, status, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            __atomic_store_n(&pool->next, pool->count, __ATOMIC_RELAXED);
        }
    }
    __atomic_fetch_and(&pool->gate, ~GATE_OPEN, __ATOMIC_RELAXED);
}

static void leave(Pool *pool) {
    const uint64_t before = __atomic_fetch_sub(&pool->gate, GATE_ONE_ACTIVE, __ATOMIC_ACQ_REL);
    if (active(before) == 1 && (before & GATE_CALLER_SLEEPS) != 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->idle);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* The worker index of a job entered, or 0 when the pool ends. */
static int32_t wait_for_job(Pool *pool) {
    for (;;) {
        int spin;
        for (spin = 0; spin <= pool->spins; ++spin) {
            const int32_t worker = enter(pool);
            if (worker != 0) return worker;
            if (__atomic_load_n(&pool->stop, __ATOMIC_RELAXED)) return 0;
            tess_relax();
        }
        pthread_mutex_lock(&pool->lock);
        __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
        while (!has_seat(__atomic_load_n(&pool->gate, __ATOMIC_SEQ_CST)) && !pool->stop) { pthread_cond_wait(&pool->wake, &pool->lock); }
        __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void *help(void *argument) {
    Pool *pool = argument;
    int32_t worker;
    while ((worker = wait_for_job(pool)) != 0) {
        take_indices(pool, worker);
        leave(pool);
    }
    return NULL;
}

static void wake_helpers(Pool *pool, int32_t wanted) {
    /* Ordered after the opening of the gate: either this sees the sleeper, or the sleeper sees
     * the gate. */
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool->lock);
    if (wanted == pool->helpers) {
        pthread_cond_broadcast(&pool->wake);
    } else {
        for (; wanted > 0; --wanted) pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void wait_for_helpers(Pool *pool) {
    int spin;
    for (spin = 0; spin <= pool->spins; ++spin) {
        if (active(__atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE)) == 0) return;
        tess_relax();
    }
    pthread_mutex_lock(&pool->lock);
    __atomic_fetch_or(&pool->gate, GATE_CALLER_SLEEPS, __ATOMIC_RELAXED);
    while (active(__atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE)) != 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static int32_t parallel_for(void *state, Task task, void *closure, int32_t count, int32_t workers) {
    Pool *pool = state;
    int32_t seats = pool->helpers;
    int32_t status;
    if (seats > workers - 1) seats = workers - 1;
    if (seats > count - 1) seats = count - 1;
    if (seats <= 0 || !threads_are_here(pool) || __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
        return run_alone(task, closure, count);
    }
    pool->task = task;
    pool->closure = closure;
    pool->count = count;
    pool->status = 0;
    __atomic_store_n(&pool->next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->gate, GATE_OPEN | (uint64_t)seats << 40, __ATOMIC_SEQ_CST);
    wake_helpers(pool, seats);
    take_indices(pool, 0);
    wait_for_helpers(pool);
    status = pool->status;
    __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
    return status;
}

TessPool *tess_pool_create(int32_t threads) {
    sigset_t all, before;
    void *memory = NULL;
    Pool *pool;
    int32_t i;
    if (threads < 1 || threads > MAX_THREADS) return NULL;
    if (pthread_once(&watch_forks_once, watch_forks) != 0) return NULL;
    if (posix_memalign(&memory, CACHE_LINE, sizeof(Pool)) != 0) return NULL;
    pool = memory;
    *pool = (Pool){0};
    pool->threads = malloc(sizeof(pthread_t) * (size_t)threads);
    if (pool->threads == NULL) {
        free(pool);
        return NULL;
    }
    pool->interface.size = sizeof(TessPool);
    pool->interface.flags = 0;
    pool->interface.state = pool;
    pool->interface.parallel_for = parallel_for;
    pool->forks = __atomic_load_n(&forks, __ATOMIC_RELAXED);
    /* With fewer processors than threads, whoever spins keeps the one waited for from running. */
    pool->spins = threads <= tess_cpu_count() ? SPINS : 0;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);

    /* The application's signal handlers belong on the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (i = 0; i < threads - 1; ++i) {
        if (pthread_create(&pool->threads[i], NULL, help, pool) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->helpers = i;
    if (i < threads - 1) {
        tess_pool_destroy(&pool->interface);
        return NULL;
    }
    return &pool->interface;
}

void tess_pool_destroy(TessPool *interface) {
    Pool *pool;
    int32_t i;
    if (interface == NULL) return;
    pool = interface->state;
    /* A forked child has neither the threads nor, perhaps, a free lock. */
    if (threads_are_here(pool)) {
        pthread_mutex_lock(&pool->lock);
        __atomic_store_n(&pool->stop, 1, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
        for (i = 0; i < pool->helpers; ++i) pthread_join(pool->threads[i], NULL);
        pthread_cond_destroy(&pool->idle);
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->lock);
    }
    free(pool->threads);
    free(pool);
}
#endif
