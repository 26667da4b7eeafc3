// What the functions of a readers-writer lock return, for its holders and for other threads.
#include "case.h"

static const struct timespec TOO_LARGE = {1, 1000000000}, TOO_SMALL = {1, -1}, BEFORE_1970 = {-1, 0}, EPOCH = {0, 0};

static int try_read(void *argument) {
    int error = pthread_rwlock_tryrdlock(argument);
    return error == 0 ? pthread_rwlock_unlock(argument) : error;
}

static int try_write(void *argument) {
    int error = pthread_rwlock_trywrlock(argument);
    return error == 0 ? pthread_rwlock_unlock(argument) : error;
}

static void tries(pthread_rwlock_t *lock, const char *state) {
    show(on_thread(try_read, lock), "%s, try to read", state);
    show(on_thread(try_write, lock), "%s, try to write", state);
}

struct attempt {
    pthread_rwlock_t *lock;
    clockid_t clock;
    const struct timespec *deadline;
    bool writes;
};

static int attempt(void *argument) {
    struct attempt *it = argument;
    int error;
    if (it->clock < 0) {
        error = it->writes ? pthread_rwlock_timedwrlock(it->lock, it->deadline)
                           : pthread_rwlock_timedrdlock(it->lock, it->deadline);
    } else {
        error = it->writes ? pthread_rwlock_clockwrlock(it->lock, it->clock, it->deadline)
                           : pthread_rwlock_clockrdlock(it->lock, it->clock, it->deadline);
    }
    return error == 0 ? pthread_rwlock_unlock(it->lock) : error;
}

static void deadlines(pthread_rwlock_t *lock, const char *state) {
    static const clockid_t CLOCKS[] = {-1, CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, 12345};
    static const char *const NAMES[] = {"timed", "realtime", "monotonic", "CPU time", "clock 12345"};
    for (size_t which = 0; which < 5; ++which) {
        clockid_t clock = CLOCKS[which] == CLOCK_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec past = from_now(clock, -100), soon = from_now(clock, 10);
        const struct {
            const char *name;
            const struct timespec *deadline;
        } all[] = {{"past", &past}, {"soon", &soon}, {"the epoch", &EPOCH}, {"before 1970", &BEFORE_1970},
                   {"nanoseconds too large", &TOO_LARGE}, {"nanoseconds too small", &TOO_SMALL}};
        for (size_t nth = 0; nth < (which < 3 ? 6 : 1); ++nth) {
            for (int writes = 0; writes < 2; ++writes) {
                struct attempt it = {lock, CLOCKS[which], all[nth].deadline, writes};
                show(on_thread(attempt, &it), "%s, %s %s, %s", state, NAMES[which], writes ? "write" : "read",
                     all[nth].name);
            }
        }
    }
}

static void states(pthread_rwlock_t *lock, const char *made) {
    char state[96];
    snprintf(state, sizeof state, "%s, free", made);
    tries(lock, state);
    deadlines(lock, state);

    snprintf(state, sizeof state, "%s, read", made);
    show(pthread_rwlock_rdlock(lock), "%s: lock", state);
    tries(lock, state);
    deadlines(lock, state);
    show(pthread_rwlock_rdlock(lock), "%s: read again", state);
    show(pthread_rwlock_tryrdlock(lock), "%s: try to read again", state);
    show(pthread_rwlock_trywrlock(lock), "%s: try to write by a reader", state);
    for (int depth = 3; depth > 0; --depth) {
        show(pthread_rwlock_unlock(lock), "%s: unlock at depth %d", state, depth);
        tries(lock, state);
    }

    snprintf(state, sizeof state, "%s, written", made);
    show(pthread_rwlock_wrlock(lock), "%s: lock", state);
    tries(lock, state);
    deadlines(lock, state);
    struct timespec soon = from_now(CLOCK_REALTIME, 10);
    show(pthread_rwlock_wrlock(lock), "%s: write again", state);
    show(pthread_rwlock_rdlock(lock), "%s: read by the writer", state);
    show(pthread_rwlock_trywrlock(lock), "%s: try to write again", state);
    show(pthread_rwlock_tryrdlock(lock), "%s: try to read by the writer", state);
    show(pthread_rwlock_timedwrlock(lock, &soon), "%s: timed write by the writer", state);
    show(pthread_rwlock_timedrdlock(lock, &soon), "%s: timed read by the writer", state);
    show(pthread_rwlock_timedwrlock(lock, &TOO_LARGE), "%s: write again with a wrong time", state);
    errno = 77;
    show(pthread_rwlock_trywrlock(lock), "%s: try with an errno before", state);
    show_number(errno, "%s: errno after it", state);
    show(pthread_rwlock_unlock(lock), "%s: unlock", state);

    show(pthread_rwlock_trywrlock(lock), "%s: try to write a free lock", made);
    show(pthread_rwlock_unlock(lock), "%s: unlock after the try", made);
    soon = from_now(CLOCK_REALTIME, 10);
    show(pthread_rwlock_timedrdlock(lock, &soon), "%s: timed read of a free lock", made);
    show(pthread_rwlock_unlock(lock), "%s: unlock after the timed read", made);
    show(pthread_rwlock_destroy(lock), "%s: destroy", made);
    memset(lock, 0xa5, sizeof *lock);
    show(pthread_rwlock_init(lock, NULL), "%s: init in the same memory", made);
    tries(lock, made);
    show(pthread_rwlock_destroy(lock), "%s: destroy again", made);
}

static void by_attributes(void) {
    static const int KINDS[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                                PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    pthread_rwlockattr_t attributes;
    NEED(pthread_rwlockattr_init(&attributes));
    show(pthread_rwlockattr_setkind_np(&attributes, 99), "kind 99");
    show(pthread_rwlockattr_setpshared(&attributes, 99), "sharing 99");
    for (int kind = 0; kind < 3; ++kind) {
        for (int shared = 0; shared < 2; ++shared) {
            char made[64];
            snprintf(made, sizeof made, "kind %d%s", kind, shared ? " shared" : "");
            NEED(pthread_rwlockattr_setkind_np(&attributes, KINDS[kind]));
            NEED(pthread_rwlockattr_setpshared(&attributes, shared));
            pthread_rwlock_t lock;
            memset(&lock, 0x5a, sizeof lock);
            show(pthread_rwlock_init(&lock, &attributes), "%s: init", made);
            states(&lock, made);
        }
    }
    NEED(pthread_rwlockattr_destroy(&attributes));
}

int main(void) {
    pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
    states(&plain, "by initialiser");
    pthread_rwlock_t prefers_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    states(&prefers_writers, "writer initialiser");
    by_attributes();
    return finish();
}
