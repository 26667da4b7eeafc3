// Cancellation in waits: the handler holds the mutex, and no signal is lost to a cancelled waiter.
#include "case.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition;
static atomic_int waiter, cleaned, held_in_cleanup, permits, taken;
static int way;

static void clean_up(void *unused) {
    (void)unused;
    // Only the owner of this errorcheck mutex can unlock it.
    atomic_store(&held_in_cleanup, pthread_mutex_unlock(&mutex) == 0);
    atomic_fetch_add(&cleaned, 1);
}

static int wait_somehow(void) {
    struct timespec realtime = far(CLOCK_REALTIME), monotonic = far(CLOCK_MONOTONIC);
    switch (way) {
    case 0: return pthread_cond_wait(&condition, &mutex);
    case 1: return pthread_cond_timedwait(&condition, &mutex, &realtime);
    default: return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &monotonic);
    }
}

static void *wait_for_permit(void *result) {
    NEED(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, NULL);
    atomic_store(&waiter, thread_id());
    while (atomic_load(&permits) == 0) {
        NEED(wait_somehow());
    }
    atomic_fetch_sub(&permits, 1);
    atomic_fetch_add(&taken, 1);
    pthread_cleanup_pop(1);
    return result;
}

static const char *const WAYS[] = {"wait", "timedwait", "clockwait"};

static void reset(int type) {
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutex_init(&mutex, &attributes));
    NEED(pthread_mutexattr_destroy(&attributes));
    NEED(pthread_cond_init(&condition, NULL));
    atomic_store(&waiter, 0);
    atomic_store(&cleaned, 0);
    atomic_store(&permits, 0);
    atomic_store(&taken, 0);
    atomic_store(&held_in_cleanup, 0);
}

static void destroy(const char *name) {
    show(pthread_cond_destroy(&condition), "%s, destroy the condition", name);
    show(pthread_mutex_destroy(&mutex), "%s, destroy the mutex", name);
}

static void cancelled_asleep(int type, const char *type_name) {
    char name[64];
    snprintf(name, sizeof name, "%s with %s", WAYS[way], type_name);
    reset(type);
    pthread_t thread = start(wait_for_permit, NULL);
    until_waits(&waiter);
    NEED(pthread_cancel(thread));
    show_number(join(thread) == PTHREAD_CANCELED, "%s, cancelled", name);
    show_number(atomic_load(&held_in_cleanup), "%s, the handler held the mutex", name);
    show_number(atomic_load(&cleaned), "%s, handlers run", name);
    show(pthread_mutex_lock(&mutex), "%s, lock after it", name);
    show(pthread_mutex_unlock(&mutex), "%s, unlock after it", name);
    destroy(name);
}

static void *cancel_before_wait(void *unused) {
    NEED(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    until_set(&waiter); // By now the request is pending.
    NEED(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
    return wait_for_permit(unused);
}

static void cancelled_before(void) {
    reset(PTHREAD_MUTEX_ERRORCHECK);
    pthread_t thread = start(cancel_before_wait, NULL);
    NEED(pthread_cancel(thread));
    atomic_store(&waiter, 1);
    show_number(join(thread) == PTHREAD_CANCELED, "%s, cancelled before it", WAYS[way]);
    show_number(atomic_load(&held_in_cleanup), "%s, the handler held the mutex then", WAYS[way]);
    destroy("cancelled before");
}

static void *wait_uncancelled(void *unused) {
    NEED(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    return wait_for_permit(unused);
}

// A thread that disabled cancellation waits on, and takes the permit.
static void cancellation_disabled(void) {
    reset(PTHREAD_MUTEX_ERRORCHECK);
    pthread_t thread = start(wait_uncancelled, NULL);
    until_waits(&waiter);
    NEED(pthread_cancel(thread));
    sleep_ms(5);
    NEED(pthread_mutex_lock(&mutex));
    atomic_store(&permits, 1);
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    show_number(join(thread) == NULL, "%s, cancellation disabled", WAYS[way]);
    show_number(atomic_load(&taken), "%s, permits taken", WAYS[way]);
    destroy("cancellation disabled");
}

// One of two waiters is cancelled at the moment of a signal. The other must get the permit, unless
// the cancelled one took it first.
static void signal_is_not_eaten(void) {
    int lost = 0, dirty = 0;
    for (int round = 0; round < 200; ++round) {
        reset(PTHREAD_MUTEX_NORMAL);
        pthread_t first = start(wait_for_permit, NULL);
        until_set(&waiter);
        pthread_t second = start(wait_for_permit, NULL);
        if (round % 4 == 0) {
            sleep_ms(1);
        }
        NEED(pthread_mutex_lock(&mutex));
        atomic_store(&permits, 1);
        if (round % 2 == 0) {
            pthread_cancel(first);
            NEED(pthread_cond_signal(&condition));
        } else {
            NEED(pthread_cond_signal(&condition));
            pthread_cancel(first);
        }
        NEED(pthread_mutex_unlock(&mutex));
        if (join(first) == PTHREAD_CANCELED) {
            join(second); // A lost signal would hang here.
            lost += atomic_load(&taken) != 1;
        } else {
            pthread_cancel(second);
            join(second);
        }
        dirty += pthread_mutex_trylock(&mutex) != 0;
        pthread_mutex_unlock(&mutex);
        dirty += pthread_cond_destroy(&condition) != 0;
        dirty += pthread_mutex_destroy(&mutex) != 0;
    }
    show_number(lost, "permits lost to cancelled waiters");
    show_number(dirty, "mutexes left locked");
}

// Locks of a mutex are no cancellation points.
static void *lock_while_cancelled(void *argument) {
    atomic_store(&waiter, thread_id());
    int error = pthread_mutex_lock(argument);
    return (void *)(intptr_t)(error == 0 ? 42 + pthread_mutex_unlock(argument) : error);
}

static void lock_is_no_cancellation_point(void) {
    reset(PTHREAD_MUTEX_NORMAL);
    NEED(pthread_mutex_lock(&mutex));
    pthread_t thread = start(lock_while_cancelled, &mutex);
    until_waits(&waiter);
    NEED(pthread_cancel(thread));
    sleep_ms(5);
    NEED(pthread_mutex_unlock(&mutex));
    show_number((long)(intptr_t)join(thread), "lock by a thread with a pending cancellation");
}

int main(void) {
    for (way = 0; way < 3; ++way) {
        cancelled_asleep(PTHREAD_MUTEX_ERRORCHECK, "errorcheck");
        cancelled_asleep(PTHREAD_MUTEX_RECURSIVE, "recursive");
        cancelled_asleep(PTHREAD_MUTEX_NORMAL, "normal");
        cancelled_before();
        cancellation_disabled();
    }
    way = 0;
    signal_is_not_eaten();
    lock_is_no_cancellation_point();
    return finish();
}
