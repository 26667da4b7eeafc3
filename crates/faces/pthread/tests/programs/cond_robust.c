// Waits with a robust mutex whose last owner has died: the wait releases a mutex that nobody has
// said to be consistent, and so finds it lost.
#include "case.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int waiter;

static void *signal_when_it_waits(void *unused) {
    until_waits(&waiter);
    NEED(pthread_cond_signal(&condition));
    return unused;
}

static int wait_for_signal(void) {
    atomic_store(&waiter, 0);
    pthread_t thread = start(signal_when_it_waits, NULL);
    atomic_store(&waiter, thread_id());
    int error = pthread_cond_wait(&condition, &mutex);
    join(thread);
    return error;
}

static int time_out(void) {
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    return pthread_cond_timedwait(&condition, &mutex, &soon);
}

static int time_out_by_clock(void) {
    struct timespec soon = from_now(CLOCK_MONOTONIC, 20);
    return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &soon);
}

static int time_out_at_once(void) {
    struct timespec past = from_now(CLOCK_REALTIME, -20);
    return pthread_cond_timedwait(&condition, &mutex, &past);
}

static const struct {
    const char *name;
    int (*call)(void);
} WAYS[] = {
    {"wait", wait_for_signal},
    {"timedwait", time_out},
    {"clockwait", time_out_by_clock},
    {"timedwait for the past", time_out_at_once},
};

static int die_holding(void *unused) {
    (void)unused;
    return pthread_mutex_lock(&mutex);
}

static int wait_without_it(void *unused) {
    (void)unused;
    return time_out();
}

static void waits(const char *kind, int type, int shared, int protocol) {
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    NEED(pthread_mutexattr_setpshared(&attributes, shared));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    for (size_t nth = 0; nth < sizeof WAYS / sizeof *WAYS; ++nth) {
        const char *way = WAYS[nth].name;
        NEED(pthread_mutex_init(&mutex, &attributes));
        NEED(on_thread(die_holding, NULL));
        show(pthread_mutex_lock(&mutex), "%s, %s, lock", kind, way);
        show(pthread_mutex_consistent(&mutex), "%s, %s, consistent", kind, way);
        show(on_thread(wait_without_it, NULL), "%s, %s, a wait by another thread", kind, way);
        show(WAYS[nth].call(), "%s, %s, wait with a consistent mutex", kind, way);
        show(pthread_mutex_unlock(&mutex), "%s, %s, unlock", kind, way);

        NEED(on_thread(die_holding, NULL));
        show(pthread_mutex_lock(&mutex), "%s, %s, lock after another death", kind, way);
        show(on_thread(wait_without_it, NULL), "%s, %s, another thread's wait after it", kind, way);
        show(WAYS[nth].call(), "%s, %s, wait without consistent", kind, way);
        show(pthread_mutex_unlock(&mutex), "%s, %s, unlock after that", kind, way);
        show(pthread_mutex_lock(&mutex), "%s, %s, lock after that", kind, way);
        show(time_out(), "%s, %s, wait with a lost mutex", kind, way);
        show(pthread_mutex_destroy(&mutex), "%s, %s, destroy", kind, way);
    }
    NEED(pthread_mutexattr_destroy(&attributes));
}

int main(void) {
    waits("robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    waits("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    waits("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE);
    waits("shared", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    waits("inheriting", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_INHERIT);
    show(pthread_cond_destroy(&condition), "destroy the condition");
    return finish();
}
