// A robust mutex whose owner dies: as a thread, as a process, and while a condition variable waits.
#include "case.h"

static void init(pthread_mutex_t *mutex, int type, int shared, int protocol) {
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    NEED(pthread_mutexattr_setpshared(&attributes, shared));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    NEED(pthread_mutex_init(mutex, &attributes));
    NEED(pthread_mutexattr_destroy(&attributes));
}

static int lock_it(pthread_mutex_t *mutex) { return pthread_mutex_lock(mutex); }
static int try_it(pthread_mutex_t *mutex) { return pthread_mutex_trylock(mutex); }

static int timed_lock(pthread_mutex_t *mutex) {
    struct timespec deadline = far(CLOCK_REALTIME);
    return pthread_mutex_timedlock(mutex, &deadline);
}

static int clock_lock(pthread_mutex_t *mutex) {
    struct timespec deadline = far(CLOCK_MONOTONIC);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &deadline);
}

static const struct {
    const char *name;
    int (*call)(pthread_mutex_t *);
} WAYS[] = {{"lock", lock_it}, {"trylock", try_it}, {"timedlock", timed_lock}, {"clocklock", clock_lock}};

static int die_holding(void *mutex) { return pthread_mutex_lock(mutex); }

static void recover(pthread_mutex_t *mutex, const char *kind) {
    for (size_t nth = 0; nth < 4; ++nth) {
        NEED(on_thread(die_holding, mutex));
        show(WAYS[nth].call(mutex), "%s, %s after the owner's death", kind, WAYS[nth].name);
        show(pthread_mutex_consistent(mutex), "%s, consistent", kind);
        show(pthread_mutex_consistent(mutex), "%s, consistent twice", kind);
        show(pthread_mutex_unlock(mutex), "%s, unlock", kind);
        show(WAYS[nth].call(mutex), "%s, %s after the recovery", kind, WAYS[nth].name);
        show(pthread_mutex_unlock(mutex), "%s, unlock after the recovery", kind);
    }
    NEED(on_thread(die_holding, mutex));
    show(pthread_mutex_lock(mutex), "%s, lock after the last death", kind);
    show(pthread_mutex_unlock(mutex), "%s, unlock without consistent", kind);
    // trylock comes last: in glibc it leaves a lost mutex locked, and the next lock would hang.
    show(pthread_mutex_lock(mutex), "%s, lock of a lost mutex", kind);
    show(timed_lock(mutex), "%s, timedlock of a lost mutex", kind);
    show(pthread_mutex_trylock(mutex), "%s, trylock of a lost mutex", kind);
    show(pthread_mutex_destroy(mutex), "%s, destroy a lost mutex", kind);
}

struct guarded {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    atomic_int waiter;
    int is_set;
};

static int die_by_kill(void *argument) {
    struct guarded *guarded = argument;
    NEED(pthread_mutex_lock(&guarded->mutex));
    kill(getpid(), SIGKILL);
    return 0;
}

static void death_of_process(void) {
    struct guarded *guarded = shared_memory(sizeof *guarded);
    init(&guarded->mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    show_number(in_process(die_by_kill, guarded), "a process that dies with the mutex");
    show(pthread_mutex_lock(&guarded->mutex), "lock after a process died");
    show(pthread_mutex_consistent(&guarded->mutex), "consistent after a process died");
    show(pthread_mutex_unlock(&guarded->mutex), "unlock after a process died");
    show(IN_PROCESS(pthread_mutex_trylock, &guarded->mutex), "try in a process, which ends with it");
    show(pthread_mutex_lock(&guarded->mutex), "lock after a process ended");
    NEED(pthread_mutex_consistent(&guarded->mutex));
    NEED(pthread_mutex_unlock(&guarded->mutex));
    show(pthread_mutex_destroy(&guarded->mutex), "destroy");
}

static void *wait_for_set(void *argument) {
    struct guarded *guarded = argument;
    int error = pthread_mutex_lock(&guarded->mutex);
    atomic_store(&guarded->waiter, thread_id());
    while (error == 0 && !guarded->is_set) {
        error = pthread_cond_wait(&guarded->condition, &guarded->mutex);
    }
    if (error == EOWNERDEAD) {
        NEED(pthread_mutex_consistent(&guarded->mutex));
    }
    NEED(pthread_mutex_unlock(&guarded->mutex));
    return (void *)(intptr_t)error;
}

static int set_and_die(void *argument) {
    struct guarded *guarded = argument;
    NEED(pthread_mutex_lock(&guarded->mutex));
    guarded->is_set = 1;
    return pthread_cond_signal(&guarded->condition);
}

// The signalling thread ends with the mutex, so the waiter gets it with the news of a death.
static void death_while_condition_waits(int protocol, const char *kind) {
    static struct guarded guarded;
    memset(&guarded, 0, sizeof guarded);
    init(&guarded.mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, protocol);
    NEED(pthread_cond_init(&guarded.condition, NULL));
    pthread_t waiter = start(wait_for_set, &guarded);
    until_waits(&guarded.waiter);
    NEED(on_thread(set_and_die, &guarded));
    show((int)(intptr_t)join(waiter), "%s, cond_wait after the signalling thread died", kind);
    show(pthread_cond_destroy(&guarded.condition), "%s, destroy the condition variable", kind);
    show(pthread_mutex_destroy(&guarded.mutex), "%s, destroy the mutex", kind);
}

static void wait_without_owning(void) {
    pthread_mutex_t mutex;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    init(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    show(pthread_cond_wait(&condition, &mutex), "cond_wait with a robust mutex that is free");
    show(pthread_mutex_unlock(&mutex), "unlock of a robust mutex that is free");
    show(pthread_mutex_destroy(&mutex), "destroy");
    show(pthread_cond_destroy(&condition), "destroy the condition variable");
}

int main(void) {
    pthread_mutex_t mutex;
    init(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    recover(&mutex, "robust");
    init(&mutex, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    recover(&mutex, "robust errorcheck");
    init(&mutex, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    recover(&mutex, "robust recursive shared");
    init(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_INHERIT);
    recover(&mutex, "robust inheriting");
    death_of_process();
    death_while_condition_waits(PTHREAD_PRIO_NONE, "robust");
    death_while_condition_waits(PTHREAD_PRIO_INHERIT, "robust inheriting");
    wait_without_owning();
    return finish();
}
