// What attributes of a mutex say, and what a mutex remembers of them.
#include "case.h"

static void attributes_alone(void) {
    pthread_mutexattr_t attributes;
    int value;
    NEED(pthread_mutexattr_init(&attributes));
    show(pthread_mutexattr_settype(&attributes, 99), "type 99");
    show(pthread_mutexattr_setrobust(&attributes, 99), "robustness 99");
    show(pthread_mutexattr_setpshared(&attributes, 99), "sharing 99");
    show(pthread_mutexattr_setprotocol(&attributes, 99), "protocol 99");
    show(pthread_mutexattr_setprioceiling(&attributes, 12345), "ceiling 12345");
    NEED(pthread_mutexattr_gettype(&attributes, &value));
    show_number(value == PTHREAD_MUTEX_DEFAULT, "the default type");
    NEED(pthread_mutexattr_getpshared(&attributes, &value));
    show_number(value == PTHREAD_PROCESS_PRIVATE, "private by default");
    NEED(pthread_mutexattr_destroy(&attributes));
}

struct made {
    const char *name;
    int type, robust, shared, protocol;
};

static const struct made MADE[] = {
    {"plain", PTHREAD_MUTEX_NORMAL, 0, 0, 0},
    {"robust", PTHREAD_MUTEX_NORMAL, 1, 0, 0},
    {"robust recursive", PTHREAD_MUTEX_RECURSIVE, 1, 0, 0},
    {"robust errorcheck", PTHREAD_MUTEX_ERRORCHECK, 1, 0, 0},
    {"shared", PTHREAD_MUTEX_NORMAL, 0, 1, 0},
    {"shared recursive", PTHREAD_MUTEX_RECURSIVE, 0, 1, 0},
    {"shared errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 1, 0},
    {"shared robust", PTHREAD_MUTEX_NORMAL, 1, 1, 0},
    {"inheriting", PTHREAD_MUTEX_NORMAL, 0, 0, PTHREAD_PRIO_INHERIT},
    {"inheriting recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, PTHREAD_PRIO_INHERIT},
    {"inheriting errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_INHERIT},
    {"inheriting robust", PTHREAD_MUTEX_NORMAL, 1, 0, PTHREAD_PRIO_INHERIT},
    {"inheriting shared robust recursive", PTHREAD_MUTEX_RECURSIVE, 1, 1, PTHREAD_PRIO_INHERIT},
    {"with a ceiling", PTHREAD_MUTEX_NORMAL, 0, 0, PTHREAD_PRIO_PROTECT},
    {"with a ceiling, recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, PTHREAD_PRIO_PROTECT},
    {"with a ceiling, errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_PROTECT},
    {"with a ceiling, robust", PTHREAD_MUTEX_NORMAL, 1, 0, PTHREAD_PRIO_PROTECT},
};

static void ceiling_of(pthread_mutex_t *mutex, const char *name) {
    int ceiling = -1, old = -1;
    if (show(pthread_mutex_getprioceiling(mutex, &ceiling), "%s, read the ceiling", name) == 0) {
        show_number(ceiling, "%s, ceiling", name);
    }
    // A thread without rights may not rise to the ceiling. That result is the same in both runs.
    if (show(pthread_mutex_setprioceiling(mutex, 3, &old), "%s, set the ceiling", name) == 0) {
        show_number(old, "%s, ceiling before", name);
        NEED(pthread_mutex_getprioceiling(mutex, &ceiling));
        show_number(ceiling, "%s, ceiling after", name);
    }
}

static void life_of(const struct made *made) {
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, made->type));
    NEED(pthread_mutexattr_setrobust(&attributes, made->robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED));
    NEED(pthread_mutexattr_setpshared(&attributes,
                                      made->shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    NEED(pthread_mutexattr_setprotocol(&attributes, made->protocol));
    if (made->protocol == PTHREAD_PRIO_PROTECT) {
        NEED(pthread_mutexattr_setprioceiling(&attributes, 2));
    }
    pthread_mutex_t mutex;
    int inited = show(pthread_mutex_init(&mutex, &attributes), "%s, init", made->name);
    NEED(pthread_mutexattr_destroy(&attributes));
    if (inited != 0) {
        return;
    }
    struct timespec past = from_now(CLOCK_REALTIME, -100), past_monotonic = from_now(CLOCK_MONOTONIC, -100);
    bool locked = show(pthread_mutex_lock(&mutex), "%s, lock", made->name) == 0;
    if (locked) {
        show(ON_THREAD(pthread_mutex_trylock, &mutex), "%s, try by another thread", made->name);
        // Only these types say what a second lock by the owner does.
        if (made->type != PTHREAD_MUTEX_NORMAL) {
            int again = show(pthread_mutex_lock(&mutex), "%s, lock again", made->name);
            int tried = show(pthread_mutex_trylock(&mutex), "%s, try again", made->name);
            int timed = show(pthread_mutex_timedlock(&mutex, &past), "%s, timed again", made->name);
            int by_clock =
                show(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past_monotonic), "%s, by clock again", made->name);
            for (int depth = (again == 0) + (tried == 0) + (timed == 0) + (by_clock == 0); depth > 0; --depth) {
                show(pthread_mutex_unlock(&mutex), "%s, unlock at depth %d", made->name, depth);
            }
        }
        show(pthread_mutex_destroy(&mutex), "%s, destroy while locked", made->name);
        show(pthread_mutex_unlock(&mutex), "%s, unlock", made->name);
    }
    if (show(pthread_mutex_trylock(&mutex), "%s, try", made->name) == 0) {
        show(pthread_mutex_unlock(&mutex), "%s, unlock after a try", made->name);
    }
    if (show(pthread_mutex_timedlock(&mutex, &past), "%s, timed while free", made->name) == 0) {
        show(pthread_mutex_unlock(&mutex), "%s, unlock after a timed lock", made->name);
    }
    // glibc never returns from setting the ceiling of a robust mutex that has none.
    if (made->protocol == PTHREAD_PRIO_PROTECT || !made->robust) {
        ceiling_of(&mutex, made->name);
    }
    if (made->robust == 0) {
        show(pthread_mutex_consistent(&mutex), "%s, consistent without robustness", made->name);
    } else {
        show(pthread_mutex_consistent(&mutex), "%s, consistent without a death", made->name);
    }
    show(pthread_mutex_destroy(&mutex), "%s, destroy", made->name);
}

int main(void) {
    attributes_alone();
    for (size_t nth = 0; nth < sizeof MADE / sizeof *MADE; ++nth) {
        life_of(&MADE[nth]);
    }
    return finish();
}
