// Each type of mutex, by static initialiser and by attribute: what its owner and other threads get.
#include "case.h"

struct kind {
    const char *name;
    int type;
    pthread_mutex_t initialiser;
};

static const struct kind KINDS[] = {
    {"normal", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_INITIALIZER},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP},
};

static int try_and_unlock(void *argument) {
    pthread_mutex_t *mutex = argument;
    int error = pthread_mutex_trylock(mutex);
    if (error == 0) {
        error = pthread_mutex_unlock(mutex);
    }
    return error;
}

static int lock_and_unlock(void *argument) {
    pthread_mutex_t *mutex = argument;
    int error = pthread_mutex_lock(mutex);
    return error == 0 ? pthread_mutex_unlock(mutex) : error;
}

static void owner_and_others(pthread_mutex_t *mutex, const struct kind *kind, const char *made) {
    const char *name = kind->name;
    bool checks_owner = kind->type == PTHREAD_MUTEX_RECURSIVE || kind->type == PTHREAD_MUTEX_ERRORCHECK;
    struct timespec past = from_now(CLOCK_REALTIME, -1000);
    struct timespec soon = from_now(CLOCK_REALTIME, 10);

    show(on_thread(lock_and_unlock, mutex), "%s %s, lock and unlock", name, made);
    show(on_thread(try_and_unlock, mutex), "%s %s, try and unlock", name, made);
    if (checks_owner) {
        show(pthread_mutex_unlock(mutex), "%s %s, unlock of a free mutex", name, made);
    }

    show(pthread_mutex_lock(mutex), "%s %s, lock", name, made);
    show(on_thread(try_and_unlock, mutex), "%s %s, try by another thread", name, made);
    show(pthread_mutex_destroy(mutex), "%s %s, destroy while locked", name, made);
    show(ON_THREAD(pthread_mutex_destroy, mutex), "%s %s, destroy by another thread", name, made);
    if (checks_owner) {
        show(ON_THREAD(pthread_mutex_unlock, mutex), "%s %s, unlock by another thread", name, made);
        show(pthread_mutex_lock(mutex), "%s %s, lock again", name, made);
    }
    int tried = show(pthread_mutex_trylock(mutex), "%s %s, try again", name, made);
    int timed = show(pthread_mutex_timedlock(mutex, &past), "%s %s, timed in the past", name, made);
    int later = show(pthread_mutex_timedlock(mutex, &soon), "%s %s, timed and soon", name, made);

    if (kind->type == PTHREAD_MUTEX_RECURSIVE) {
        show_number((tried == 0) + (timed == 0) + (later == 0), "%s %s, depth added", name, made);
        for (int depth = 4; depth > 0; --depth) {
            show(pthread_mutex_unlock(mutex), "%s %s, unlock at depth %d", name, made, depth);
            show(on_thread(try_and_unlock, mutex), "%s %s, try then by another", name, made);
        }
    }
    show(pthread_mutex_unlock(mutex), "%s %s, last unlock", name, made);
    show(on_thread(try_and_unlock, mutex), "%s %s, try after the last unlock", name, made);
    if (checks_owner) {
        show(pthread_mutex_unlock(mutex), "%s %s, one unlock too many", name, made);
    }
    show(pthread_mutex_destroy(mutex), "%s %s, destroy", name, made);
    NEED(pthread_mutex_init(mutex, NULL));
    show(on_thread(lock_and_unlock, mutex), "%s %s, init in the same memory", name, made);
    NEED(pthread_mutex_destroy(mutex));
}

static void deep_recursion(void) {
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    int errors = 0;
    for (int depth = 0; depth < 100000; ++depth) {
        errors += pthread_mutex_lock(&mutex) != 0;
    }
    show_number(errors, "recursive, errors of 100000 locks");
    for (int depth = 1; depth < 100000; ++depth) {
        errors += pthread_mutex_unlock(&mutex) != 0;
    }
    show_number(errors, "recursive, errors of 99999 unlocks");
    show(on_thread(try_and_unlock, &mutex), "recursive, try at depth 1");
    show(pthread_mutex_unlock(&mutex), "recursive, last of 100000 unlocks");
    show(on_thread(try_and_unlock, &mutex), "recursive, try at depth 0");
}

static void errno_is_left_alone(void) {
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct timespec soon = from_now(CLOCK_REALTIME, 5);
    errno = 77;
    NEED(pthread_mutex_lock(&mutex));
    int again = pthread_mutex_lock(&mutex);
    int tried = pthread_mutex_trylock(&mutex);
    int timed = pthread_mutex_timedlock(&mutex, &soon);
    NEED(pthread_mutex_unlock(&mutex));
    int free_one = pthread_mutex_unlock(&mutex);
    NEED(pthread_mutex_destroy(&mutex));
    show_number(errno, "errno after errors of an errorcheck mutex");
    show(again, "errorcheck, lock again");
    show(tried, "errorcheck, try again");
    show(timed, "errorcheck, timed again");
    show(free_one, "errorcheck, unlock of a free mutex");
    errno = 78;
    pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
    NEED(pthread_mutex_lock(&normal));
    soon = from_now(CLOCK_REALTIME, 5);
    timed = pthread_mutex_timedlock(&normal, &soon);
    show_number(errno, "errno after a timeout");
    show(timed, "normal, timed while locked by itself");
    NEED(pthread_mutex_unlock(&normal));
}

int main(void) {
    for (size_t nth = 0; nth < sizeof KINDS / sizeof *KINDS; ++nth) {
        const struct kind *kind = &KINDS[nth];
        pthread_mutex_t mutex = kind->initialiser;
        owner_and_others(&mutex, kind, "by initialiser");

        pthread_mutexattr_t attributes;
        NEED(pthread_mutexattr_init(&attributes));
        NEED(pthread_mutexattr_settype(&attributes, kind->type));
        memset(&mutex, 0xa5, sizeof mutex);
        show(pthread_mutex_init(&mutex, &attributes), "%s, init", kind->name);
        NEED(pthread_mutexattr_destroy(&attributes));
        owner_and_others(&mutex, kind, "by attribute");
    }
    pthread_mutex_t mutex;
    memset(&mutex, 0x5a, sizeof mutex);
    show(pthread_mutex_init(&mutex, NULL), "init without attributes");
    owner_and_others(&mutex, &KINDS[0], "by default");
    deep_recursion();
    errno_is_left_alone();
    return finish();
}
