// A rwlock that is made where the thread read another one, which it never released. In the child of
// a fork by that thread the lock is free, whether the thread made it before the fork or after.
#include "case.h"

static pthread_rwlock_t lock;

static int write_and_read(void) {
    alarm(20);
    int error = pthread_rwlock_trywrlock(&lock);
    if (error != 0) {
        return error;
    }
    NEED(pthread_rwlock_unlock(&lock));
    NEED(pthread_rwlock_rdlock(&lock));
    NEED(pthread_rwlock_unlock(&lock));
    return pthread_rwlock_trywrlock(&lock);
}

static int uses_it(void *unused) {
    (void)unused;
    return write_and_read();
}

static int makes_it(void *unused) {
    (void)unused;
    NEED(pthread_rwlock_init(&lock, NULL));
    return write_and_read();
}

static int makes_it_of_bytes(void *unused) {
    (void)unused;
    NEED(pthread_rwlock_destroy(&lock));
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    return write_and_read();
}

// Leaves a lock that is read twice, and never released.
static void leave_it_read(void) {
    NEED(pthread_rwlock_init(&lock, NULL));
    NEED(pthread_rwlock_rdlock(&lock));
    NEED(pthread_rwlock_rdlock(&lock));
}

int main(void) {
    leave_it_read();
    show(IN_PROCESS(makes_it, NULL), "made in the child");
    show(IN_PROCESS(makes_it_of_bytes, NULL), "destroyed and made in the child");
    NEED(pthread_rwlock_init(&lock, NULL));
    show(IN_PROCESS(uses_it, NULL), "made before the fork");
    leave_it_read();
    NEED(pthread_rwlock_destroy(&lock));
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    show(IN_PROCESS(uses_it, NULL), "destroyed and made before the fork");
    return finish();
}
