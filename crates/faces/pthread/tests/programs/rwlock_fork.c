// The child of a reader for which writers wait has the lock as the thread of its parent had it: it can
// release it, and then write. With glibc's own lock such a child hangs.
#include "case.h"

static atomic_int waiter;

static void *write_once(void *lock) {
    atomic_store(&waiter, thread_id());
    NEED(pthread_rwlock_wrlock(lock));
    return (void *)(intptr_t)pthread_rwlock_unlock(lock);
}

static int child_goes_on(void *lock) {
    alarm(20);
    int error = pthread_rwlock_unlock(lock);
    error += pthread_rwlock_wrlock(lock);
    error += pthread_rwlock_unlock(lock);
    error += pthread_rwlock_tryrdlock(lock);
    return error + pthread_rwlock_unlock(lock);
}

static void fork_by_a_reader(int kind) {
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t lock;
    NEED(pthread_rwlockattr_init(&attributes));
    NEED(pthread_rwlockattr_setkind_np(&attributes, kind));
    NEED(pthread_rwlock_init(&lock, &attributes));
    NEED(pthread_rwlock_rdlock(&lock));
    show_number(in_process(child_goes_on, &lock), "kind %d, the child of a reader", kind);
    pthread_t writer = start(write_once, &lock);
    until_waits(&waiter);
    show_number(in_process(child_goes_on, &lock), "kind %d, the same beside a writer that waits", kind);
    NEED(pthread_rwlock_unlock(&lock));
    show((int)(intptr_t)join(writer), "kind %d, the writer", kind);
    atomic_store(&waiter, 0);
}

static int child_releases_three(void *locks) {
    pthread_rwlock_t *twice = locks, *once = twice + 1;
    alarm(20);
    int error = pthread_rwlock_unlock(twice);
    error += pthread_rwlock_trywrlock(twice) != EBUSY;
    error += pthread_rwlock_trywrlock(once) != EBUSY;
    error += pthread_rwlock_unlock(once) + pthread_rwlock_trywrlock(once);
    error += pthread_rwlock_unlock(twice) + pthread_rwlock_trywrlock(twice);
    return error;
}

static int fork_by_a_reader_of_two(int first) {
    pthread_rwlock_t locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
    const int orders[3][3] = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}};
    for (int nth = 0; nth < 3; nth++)
        NEED(pthread_rwlock_rdlock(&locks[orders[first][nth]]));
    int wrong = in_process(child_releases_three, locks);
    show_number(wrong, "order %d, the child reads two", first);
    for (int nth = 0; nth < 3; nth++)
        NEED(pthread_rwlock_unlock(&locks[orders[first][nth]]));
    NEED(pthread_rwlock_trywrlock(&locks[0]));
    NEED(pthread_rwlock_trywrlock(&locks[1]));
    return wrong;
}

int main(void) {
    for (int order = 0; order < 3; order++)
        if (fork_by_a_reader_of_two(order))
            return finish();
    fork_by_a_reader(PTHREAD_RWLOCK_PREFER_READER_NP);
    fork_by_a_reader(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    return finish();
}
