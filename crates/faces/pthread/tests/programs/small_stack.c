// Threads with the smallest stack, of which they use 2,000 bytes themselves, wait for a mutex, a rwlock
// and a condition variable.
#include "case.h"
#include <alloca.h>
#include <limits.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int waiter;
static bool is_set;

static void lock(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
}

static void read_(void) {
    NEED(pthread_rwlock_rdlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
}

static void write_(void) {
    NEED(pthread_rwlock_wrlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
}

static void wait_(void) {
    NEED(pthread_mutex_lock(&mutex));
    while (!is_set) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(pthread_mutex_unlock(&mutex));
}

static void (*const BODIES[])(void) = {wait_, lock, lock, read_, write_};

static void *on_the_rest_of_the_stack(void *nth) {
    volatile char *own = alloca(2000);
    own[0] = 1;
    atomic_store(&waiter, thread_id());
    BODIES[(intptr_t)nth]();
    return NULL;
}

static int wait_all(void *unused) {
    enum { THREADS = sizeof BODIES / sizeof *BODIES };
    (void)unused;
    pthread_t threads[THREADS];
    pthread_attr_t small;
    alarm(60);
    NEED(pthread_attr_init(&small));
    NEED(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN));
    NEED(pthread_rwlock_wrlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        atomic_store(&waiter, 0);
        NEED(pthread_create(&threads[nth], &small, on_the_rest_of_the_stack, (void *)(intptr_t)nth));
        until_waits(&waiter);
        if (nth == 0) {
            NEED(pthread_mutex_lock(&mutex));
        }
    }
    is_set = true;
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_rwlock_unlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    return 0;
}

int main(void) {
    show(IN_PROCESS(wait_all, NULL), "threads with the smallest stack");
    return finish();
}
