// Locks that have an owner are held over a fork: by the thread that forks, and by one that is not
// in the child. A new thread of the child, which has the memory of that one, owns none of them.
// With KEEPS, the thread that forks owns its own in the child: glibc's mutexes would refuse it.
#include "case.h"

struct locks {
    pthread_mutex_t recursive, checking;
    pthread_rwlock_t rwlock;
};

#define LOCKS                                                                                      \
    {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,              \
     PTHREAD_RWLOCK_INITIALIZER}

static struct locks of_forker = LOCKS, of_other = LOCKS;
static pthread_t other;
static atomic_int is_held, is_over;
static int failures;

static void hold(struct locks *locks) {
    NEED(pthread_mutex_lock(&locks->recursive));
    NEED(pthread_mutex_lock(&locks->recursive));
    NEED(pthread_mutex_lock(&locks->checking));
    NEED(pthread_rwlock_wrlock(&locks->rwlock));
}

static void release(struct locks *locks) {
    NEED(pthread_mutex_unlock(&locks->recursive));
    NEED(pthread_mutex_unlock(&locks->recursive));
    NEED(pthread_mutex_unlock(&locks->checking));
    NEED(pthread_rwlock_unlock(&locks->rwlock));
}

static void *hold_over_the_forks(void *unused) {
    hold(&of_other);
    atomic_store(&is_held, 1);
    until_set(&is_over);
    release(&of_other);
    return unused;
}

static void expect(int expected, int error, const char *what) {
    if (error != expected) {
        show(error, "%s", what);
        ++failures;
    }
}

static void try_locks(struct locks *locks) {
    struct timespec past = from_now(CLOCK_REALTIME, -1000);
    expect(ETIMEDOUT, pthread_mutex_timedlock(&locks->recursive, &past), "recursive, lock");
    expect(EBUSY, pthread_mutex_trylock(&locks->recursive), "recursive, try");
    expect(EPERM, pthread_mutex_unlock(&locks->recursive), "recursive, unlock");
    expect(ETIMEDOUT, pthread_mutex_timedlock(&locks->checking, &past), "checking, lock");
    expect(EPERM, pthread_mutex_unlock(&locks->checking), "checking, unlock");
    expect(ETIMEDOUT, pthread_rwlock_timedrdlock(&locks->rwlock, &past), "rwlock, read");
    expect(ETIMEDOUT, pthread_rwlock_timedwrlock(&locks->rwlock, &past), "rwlock, write");
}

static void *be_new(void *unused) {
    if (!pthread_equal(pthread_self(), other)) {
        fprintf(stderr, "the new thread has no memory of the other one\n");
    }
    try_locks(&of_other);
    try_locks(&of_forker);
    return unused;
}

static int has_owners(void *unused) {
    alarm(20);
    join(start(be_new, unused));
    expect(EPERM, pthread_mutex_unlock(&of_other.recursive), "the thread that forked, unlock");
    if (getenv("KEEPS") != NULL) {
        release(&of_forker);
        hold(&of_forker);
    }
    return failures;
}

static int in_a_child(void *unused) {
    int error = has_owners(unused);
    return error != 0 ? error : IN_PROCESS(has_owners, unused);
}

static void *fork_again(void *unused) {
    hold(&of_forker);
    show_number(IN_PROCESS(in_a_child, unused), "another thread forks, and its child");
    release(&of_forker);
    return unused;
}

int main(void) {
    other = start(hold_over_the_forks, NULL);
    until_set(&is_held);
    hold(&of_forker);
    show_number(IN_PROCESS(in_a_child, NULL), "the first thread forks, and its child");
    release(&of_forker);
    join(start(fork_again, NULL));
    atomic_store(&is_over, 1);
    join(other);
    return finish();
}
