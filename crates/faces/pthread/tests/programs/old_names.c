// A program that was linked before glibc 2.34 may have a second name for a function: both are one lock.
#include "case.h"

// The version of the oldest symbols of this architecture.
#if defined(__x86_64__)
#define VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define VERSION "GLIBC_2.17"
#elif defined(__riscv)
#define VERSION "GLIBC_2.27"
#endif

#define OLD(name, lock)                                                                            \
    extern int old_##name(lock);                                                                   \
    __asm__(".symver old_" #name ", __pthread_" #name "@" VERSION)
OLD(mutex_lock, pthread_mutex_t *);
OLD(mutex_trylock, pthread_mutex_t *);
OLD(mutex_unlock, pthread_mutex_t *);
OLD(mutex_destroy, pthread_mutex_t *);
OLD(rwlock_rdlock, pthread_rwlock_t *);
OLD(rwlock_tryrdlock, pthread_rwlock_t *);
OLD(rwlock_wrlock, pthread_rwlock_t *);
OLD(rwlock_trywrlock, pthread_rwlock_t *);
OLD(rwlock_unlock, pthread_rwlock_t *);
OLD(rwlock_destroy, pthread_rwlock_t *);
extern int old_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
__asm__(".symver old_mutex_init, __pthread_mutex_init@" VERSION);
extern int old_rwlock_init(pthread_rwlock_t *, const pthread_rwlockattr_t *);
__asm__(".symver old_rwlock_init, __pthread_rwlock_init@" VERSION);

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static long counted[2];

// Each of two threads locks by one name and unlocks by the other, half of the time.
static void *count(void *old) {
    for (int round = 0; round < 20000; ++round) {
        NEED(old ? old_mutex_lock(&mutex) : pthread_mutex_lock(&mutex));
        ++counted[0];
        NEED(round % 2 ? old_mutex_unlock(&mutex) : pthread_mutex_unlock(&mutex));
        NEED(old ? old_rwlock_wrlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        ++counted[1];
        NEED(round % 2 ? old_rwlock_unlock(&rwlock) : pthread_rwlock_unlock(&rwlock));
        NEED(old ? old_rwlock_rdlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
        NEED(round % 2 ? old_rwlock_unlock(&rwlock) : pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int may_go;
static atomic_int waiter;

static void *wait_to_go(void *unused) {
    NEED(old_mutex_lock(&mutex));
    atomic_store(&waiter, thread_id());
    while (!may_go) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(old_mutex_unlock(&mutex));
    return unused;
}

int main(void) {
    show(old_mutex_init(&mutex, NULL), "mutex, init");
    show(old_rwlock_init(&rwlock, NULL), "rwlock, init");
    pthread_t threads[2] = {start(count, NULL), start(count, &mutex)};
    join(threads[0]);
    join(threads[1]);
    show_number(counted[0], "counted under the mutex");
    show_number(counted[1], "counted under the rwlock");
    NEED(pthread_mutex_lock(&mutex));
    show(old_mutex_trylock(&mutex), "mutex, trylock of a locked one");
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_rwlock_wrlock(&rwlock));
    show(ON_THREAD(old_rwlock_tryrdlock, &rwlock), "rwlock, tryrdlock of a written one");
    show(ON_THREAD(old_rwlock_trywrlock, &rwlock), "rwlock, trywrlock of a written one");
    NEED(pthread_rwlock_unlock(&rwlock));
    pthread_t thread = start(wait_to_go, NULL);
    until_waits(&waiter);
    NEED(pthread_mutex_lock(&mutex));
    may_go = 1;
    NEED(pthread_cond_signal(&condition));
    NEED(old_mutex_unlock(&mutex));
    join(thread);
    show(old_mutex_destroy(&mutex), "mutex, destroy");
    show(old_rwlock_destroy(&rwlock), "rwlock, destroy");
    return finish();
}
