// A child of a fork forks again, while another of its threads begins a lock anew. The mark of that
// thread, which stays behind, is written here.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static int use_mutex(void *unused) {
    (void)unused;
    alarm(5);
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_mutex_lock(&mutex));
    return pthread_mutex_trylock(&mutex) == EBUSY ? 0 : 1;
}

static int use_rwlock(void *unused) {
    (void)unused;
    alarm(5);
    NEED(pthread_rwlock_unlock(&rwlock));
    NEED(pthread_rwlock_wrlock(&rwlock));
    return pthread_rwlock_tryrdlock(&rwlock) == EBUSY ? 0 : 1;
}

int main(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_rwlock_rdlock(&rwlock));
    // The forks that they have lived through, and the mark. glibc counts users there, or has
    // nothing.
    ((uint32_t *)&mutex)[3] = UINT32_MAX;
    ((uint32_t *)&rwlock)[4] = UINT32_MAX;
    show(in_process(use_mutex, NULL), "the child uses the mutex");
    show(in_process(use_rwlock, NULL), "the child uses the rwlock");
    return finish();
}
