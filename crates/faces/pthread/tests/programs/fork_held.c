// A mutex that is held over a fork, and that threads of the parent wait for. The first call in the
// child waits on a condition variable with it, or is another thread's.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_cond_t shared;
static atomic_int waiter;
static bool is_set;

static void *lock_once(void *unused) {
    atomic_store(&waiter, thread_id());
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
    return unused;
}

// The mutex is held without waiters: it can be released, and is free then.
static void release(void) {
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_mutex_trylock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_mutex_destroy(&mutex));
}

static int times_out(void *condition) {
    alarm(20);
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    int error = pthread_cond_timedwait(condition, &mutex, &soon);
    release();
    return error;
}

static int times_out_at_once(void *condition) {
    alarm(20);
    struct timespec never = {-1, 0};
    int error = pthread_cond_clockwait(condition, &mutex, CLOCK_MONOTONIC, &never);
    release();
    return error;
}

static void *set_and_signal(void *condition) {
    NEED(pthread_mutex_lock(&mutex));
    is_set = true;
    NEED(pthread_cond_signal(condition));
    NEED(pthread_mutex_unlock(&mutex));
    return NULL;
}

static int is_notified(void *condition) {
    alarm(20);
    int error = 0;
    pthread_t thread = start(set_and_signal, condition);
    while (error == 0 && !is_set) {
        error = pthread_cond_wait(condition, &mutex);
    }
    join(thread);
    release();
    return error;
}

static int try(void *unused) {
    (void)unused;
    return pthread_mutex_trylock(&mutex);
}

static int another_thread_tries(void *unused) {
    alarm(20);
    int error = on_thread(try, unused);
    release();
    return error;
}

// After a child that hung or aborted the others would, too.
static void show_child(int (*call)(void *), void *argument, const char *kind, const char *name) {
    int code = in_process(call, argument);
    show(code, "%s, %s", kind, name);
    if (code >= 1000) {
        _exit(4);
    }
}

int main(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    pthread_condattr_t attributes;
    NEED(pthread_condattr_init(&attributes));
    NEED(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    NEED(pthread_cond_init(&shared, &attributes));
    NEED(pthread_mutex_lock(&mutex));
    for (int nth = 0; nth < THREADS; ++nth) {
        atomic_store(&waiter, 0);
        threads[nth] = start(lock_once, NULL);
        until_waits(&waiter);
    }
    pthread_cond_t *const conditions[] = {&condition, &shared};
    for (int nth = 0; nth < 2; ++nth) {
        const char *kind = nth == 0 ? "private" : "shared";
        show_child(times_out, conditions[nth], kind, "the child waits");
        show_child(times_out_at_once, conditions[nth], kind, "the child waits for the past");
        show_child(is_notified, conditions[nth], kind, "the child is notified");
    }
    show_child(another_thread_tries, NULL, "none", "another thread tries first");
    NEED(pthread_mutex_unlock(&mutex));
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    return finish();
}
