// Many threads count under one mutex, with each way to lock it. The counts must be exact.
#include "case.h"

enum { THREADS = 8, ROUNDS = 2000 };

struct counters {
    pthread_mutex_t mutex;
    long exact;
    atomic_long locked;
    atomic_int inside, overlaps, wrong_results;
    int depth;
};

static bool lock_somehow(struct counters *counters, unsigned way) {
    struct timespec deadline;
    int error;
    switch (way % 8) {
    case 0: error = pthread_mutex_trylock(&counters->mutex); break;
    case 1:
        deadline = from_now(CLOCK_REALTIME, way % 3);
        error = pthread_mutex_timedlock(&counters->mutex, &deadline);
        break;
    case 2:
        deadline = from_now(CLOCK_MONOTONIC, way % 2);
        error = pthread_mutex_clocklock(&counters->mutex, CLOCK_MONOTONIC, &deadline);
        break;
    default: error = pthread_mutex_lock(&counters->mutex);
    }
    bool may_fail = way % 8 <= 2 && (error == EBUSY || error == ETIMEDOUT);
    if (error != 0 && !may_fail) {
        atomic_fetch_add(&counters->wrong_results, 1);
    }
    return error == 0;
}

static void *count(void *argument) {
    struct counters *counters = argument;
    unsigned way = (unsigned)thread_id() * 2654435761u;
    for (int round = 0; round < ROUNDS; ++round) {
        way = way * 1103515245u + 12345u;
        if (!lock_somehow(counters, way >> 16)) {
            continue;
        }
        atomic_fetch_add(&counters->locked, 1);
        for (int depth = 1; depth < counters->depth; ++depth) {
            NEED(pthread_mutex_lock(&counters->mutex));
        }
        if (atomic_fetch_add(&counters->inside, 1) != 0) {
            atomic_fetch_add(&counters->overlaps, 1);
        }
        counters->exact += 1;
        atomic_fetch_sub(&counters->inside, 1);
        for (int depth = 0; depth < counters->depth; ++depth) {
            NEED(pthread_mutex_unlock(&counters->mutex));
        }
    }
    return NULL;
}

static void stress(const char *name, int type, int protocol, int robust, int depth) {
    static struct counters counters;
    memset(&counters, 0, sizeof counters);
    counters.depth = depth;
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    NEED(pthread_mutexattr_setrobust(&attributes, robust));
    NEED(pthread_mutex_init(&counters.mutex, &attributes));
    NEED(pthread_mutexattr_destroy(&attributes));
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; ++nth) {
        threads[nth] = start(count, &counters);
    }
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    show_number(atomic_load(&counters.locked) - counters.exact, "%s, lost increments", name);
    show_number(atomic_load(&counters.overlaps), "%s, two owners at once", name);
    show_number(atomic_load(&counters.wrong_results), "%s, results that cannot be", name);
    show_number(counters.exact >= THREADS * ROUNDS / 2, "%s, at least half of the locks succeed", name);
    show(pthread_mutex_destroy(&counters.mutex), "%s, destroy", name);
}

int main(void) {
    stress("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 1);
    stress("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 3);
    stress("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 1);
    stress("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 1);
    stress("inheriting", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 1);
    stress("robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, 1);
    return finish();
}
