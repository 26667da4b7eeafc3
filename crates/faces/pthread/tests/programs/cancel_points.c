// What is no cancellation point: a thread with a pending cancellation calls a function, which
// returns as ever, and the thread is cancelled afterwards.
#include "case.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition;
static pthread_rwlock_t rwlock;
static pthread_spinlock_t spin;
static atomic_int waiter, caller, returned;

struct call {
    const char *name;
    int (*call)(void);
};

// Stores what the call has returned, and one more: zero means that it has not.
static void *with_pending_cancellation(void *argument) {
    const struct call *call = argument;
    NEED(pthread_cancel(pthread_self()));
    atomic_store(&caller, thread_id());
    atomic_store(&returned, 1 + call->call());
    pthread_testcancel();
    return NULL;
}

static pthread_t begin(const struct call *call) {
    atomic_store(&caller, 0);
    atomic_store(&returned, 0);
    return start(with_pending_cancellation, (void *)(uintptr_t)call);
}

static void end(const struct call *call, pthread_t thread) {
    bool is_cancelled = join(thread) == PTHREAD_CANCELED;
    show(atomic_load(&returned) == 0 ? ECANCELED : atomic_load(&returned) - 1, "%s", call->name);
    show_number(is_cancelled, "%s, cancelled afterwards", call->name);
}

static int lock_mutex(void) {
    int error = pthread_mutex_lock(&mutex);
    return error == 0 ? pthread_mutex_unlock(&mutex) : error;
}

static int try_mutex(void) { return pthread_mutex_trylock(&mutex); }

static int time_out(void) {
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    return pthread_mutex_timedlock(&mutex, &soon);
}

// The mutex is held when the call begins, and until its thread sleeps or has ended; if the call
// times out, until it has ended.
static void of_a_held_mutex(const char *name, int type, int protocol, int robust) {
    const struct call calls[] = {{"lock", lock_mutex}, {"trylock", try_mutex}, {"timedlock", time_out}};
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    NEED(pthread_mutexattr_setrobust(&attributes, robust));
    NEED(pthread_mutex_init(&mutex, &attributes));
    printf("%s\n", name);
    for (size_t nth = 0; nth < sizeof calls / sizeof *calls; ++nth) {
        NEED(pthread_mutex_lock(&mutex));
        pthread_t thread = begin(&calls[nth]);
        if (calls[nth].call == time_out) {
            end(&calls[nth], thread);
            NEED(pthread_mutex_unlock(&mutex));
        } else {
            until_waits(&caller);
            NEED(pthread_mutex_unlock(&mutex));
            end(&calls[nth], thread);
        }
    }
    NEED(pthread_mutex_destroy(&mutex));
}

static int read_rwlock(void) {
    int error = pthread_rwlock_rdlock(&rwlock);
    return error == 0 ? pthread_rwlock_unlock(&rwlock) : error;
}

static int write_rwlock(void) {
    int error = pthread_rwlock_wrlock(&rwlock);
    return error == 0 ? pthread_rwlock_unlock(&rwlock) : error;
}

static void of_a_written_rwlock(void) {
    const struct call calls[] = {{"rdlock", read_rwlock}, {"wrlock", write_rwlock}};
    NEED(pthread_rwlock_init(&rwlock, NULL));
    for (size_t nth = 0; nth < 2; ++nth) {
        NEED(pthread_rwlock_wrlock(&rwlock));
        pthread_t thread = begin(&calls[nth]);
        until_waits(&caller);
        NEED(pthread_rwlock_unlock(&rwlock));
        end(&calls[nth], thread);
    }
    NEED(pthread_rwlock_destroy(&rwlock));
}

static int lock_spin(void) {
    int error = pthread_spin_lock(&spin);
    return error == 0 ? pthread_spin_unlock(&spin) : error;
}

// glibc's waiter never sleeps, so nothing says that it waits.
static void of_a_held_spinlock(void) {
    const struct call call = {"spin_lock", lock_spin};
    NEED(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    for (int round = 0; round < 3; ++round) {
        NEED(pthread_spin_lock(&spin));
        pthread_t thread = begin(&call);
        until_set(&caller);
        sleep_ms(20);
        NEED(pthread_spin_unlock(&spin));
        end(&call, thread);
    }
    NEED(pthread_spin_destroy(&spin));
}

static void *wait_once(void *unused) {
    NEED(pthread_mutex_lock(&mutex));
    atomic_store(&waiter, thread_id());
    NEED(pthread_cond_wait(&condition, &mutex));
    NEED(pthread_mutex_unlock(&mutex));
    return unused;
}

static int signal_it(void) { return pthread_cond_signal(&condition); }
static int broadcast_it(void) { return pthread_cond_broadcast(&condition); }

// The waiter cannot return before the mutex is released, and so it is still there when the call
// begins.
static int destroy_it(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_cond_broadcast(&condition));
    int error = pthread_cond_destroy(&condition);
    NEED(pthread_mutex_unlock(&mutex));
    return error;
}

static void of_a_condition_with_a_waiter(void) {
    const struct call calls[] = {{"signal", signal_it}, {"broadcast", broadcast_it}, {"destroy", destroy_it}};
    NEED(pthread_mutex_init(&mutex, NULL));
    for (size_t nth = 0; nth < 3; ++nth) {
        NEED(pthread_cond_init(&condition, NULL));
        atomic_store(&waiter, 0);
        pthread_t waits = start(wait_once, NULL);
        until_waits(&waiter);
        end(&calls[nth], begin(&calls[nth]));
        if (atomic_load(&returned) == 0) {
            _exit(4); // A thread that was cancelled inside of the call has the mutex.
        }
        join(waits);
    }
    NEED(pthread_mutex_destroy(&mutex));
}

int main(void) {
    of_a_held_mutex("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    of_a_held_mutex("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    of_a_held_mutex("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    of_a_held_mutex("inherits", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
    of_a_held_mutex("robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
    of_a_written_rwlock();
    of_a_held_spinlock();
    of_a_condition_with_a_waiter();
    return finish();
}
