// What the functions of condition variables return: attributes, clocks, deadlines, kinds of mutexes.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *name_of(clockid_t clock) { return clock == CLOCK_REALTIME ? "realtime" : "monotonic"; }

static void no_waiters(void) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    show(pthread_cond_signal(&condition), "signal without a waiter");
    show(pthread_cond_broadcast(&condition), "broadcast without a waiter");
    show(pthread_cond_destroy(&condition), "destroy");
    memset(&condition, 0xa5, sizeof condition);
    show(pthread_cond_init(&condition, NULL), "init in the same memory");
    show(pthread_cond_signal(&condition), "signal after init");
    show(pthread_cond_destroy(&condition), "destroy after init");
}

static void attributes_alone(void) {
    pthread_condattr_t attributes;
    clockid_t clock = 99;
    int shared = 99;
    NEED(pthread_condattr_init(&attributes));
    show(pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID), "clock of CPU time");
    show(pthread_condattr_setclock(&attributes, 12345), "clock 12345");
    show(pthread_condattr_setpshared(&attributes, 99), "sharing 99");
    NEED(pthread_condattr_getclock(&attributes, &clock));
    show(clock, "the default clock");
    NEED(pthread_condattr_getpshared(&attributes, &shared));
    show_number(shared == PTHREAD_PROCESS_PRIVATE, "private by default");
    NEED(pthread_condattr_destroy(&attributes));
}

static int holds(pthread_mutex_t *held) {
    int error = ON_THREAD(pthread_mutex_trylock, held);
    return error == EBUSY;
}

// Nobody signals, so each wait ends by its deadline, and the mutex is held again then.
static void deadlines(pthread_cond_t *condition, clockid_t own, const char *name) {
    struct timespec past = from_now(own, -100), soon = from_now(own, 20);
    static const struct timespec TOO_LARGE = {1, 1000000000}, TOO_SMALL = {1, -1}, BEFORE_1970 = {-1, 0}, EPOCH = {0, 0};
    const struct {
        const char *name;
        const struct timespec *deadline;
    } all[] = {{"past", &past}, {"soon", &soon}, {"the epoch", &EPOCH}, {"before 1970", &BEFORE_1970},
               {"nanoseconds too large", &TOO_LARGE}, {"nanoseconds too small", &TOO_SMALL}};
    NEED(pthread_mutex_lock(&mutex));
    for (size_t nth = 0; nth < sizeof all / sizeof *all; ++nth) {
        show(pthread_cond_timedwait(condition, &mutex, all[nth].deadline), "%s, timedwait, %s", name, all[nth].name);
        show_number(holds(&mutex), "%s, mutex held after it", name);
    }
    static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (size_t which = 0; which < 2; ++which) {
        past = from_now(CLOCKS[which], -100);
        soon = from_now(CLOCKS[which], 20);
        for (size_t nth = 0; nth < sizeof all / sizeof *all; ++nth) {
            show(pthread_cond_clockwait(condition, &mutex, CLOCKS[which], all[nth].deadline), "%s, clockwait %s, %s",
                 name, name_of(CLOCKS[which]), all[nth].name);
            show_number(holds(&mutex), "%s, mutex held after it", name);
        }
    }
    past = from_now(CLOCK_REALTIME, -100);
    show(pthread_cond_clockwait(condition, &mutex, CLOCK_PROCESS_CPUTIME_ID, &past), "%s, clock of CPU time", name);
    show(pthread_cond_clockwait(condition, &mutex, 12345, &past), "%s, clock 12345", name);
    show(pthread_cond_clockwait(condition, &mutex, CLOCK_REALTIME, &TOO_LARGE), "%s, a time that is none", name);
    show_number(holds(&mutex), "%s, mutex held at the end", name);
    errno = 77;
    soon = from_now(own, 5);
    show(pthread_cond_timedwait(condition, &mutex, &soon), "%s, timedwait with an errno before", name);
    show_number(errno, "%s, errno after a timeout", name);
    NEED(pthread_mutex_unlock(&mutex));
}

static void clocks(void) {
    static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (size_t nth = 0; nth < 2; ++nth) {
        for (int shared = 0; shared < 2; ++shared) {
            pthread_condattr_t attributes;
            pthread_cond_t condition;
            NEED(pthread_condattr_init(&attributes));
            NEED(pthread_condattr_setclock(&attributes, CLOCKS[nth]));
            NEED(pthread_condattr_setpshared(&attributes, shared));
            NEED(pthread_cond_init(&condition, &attributes));
            NEED(pthread_condattr_destroy(&attributes));
            char name[64];
            snprintf(name, sizeof name, "%s%s", shared ? "shared " : "", name_of(CLOCKS[nth]));
            deadlines(&condition, CLOCKS[nth], name);
            show(pthread_cond_destroy(&condition), "%s, destroy", name);
        }
    }
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    deadlines(&condition, CLOCK_REALTIME, "by initialiser");
    show(pthread_cond_destroy(&condition), "by initialiser, destroy");
}

struct waited {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    atomic_int waiter;
    int is_set, depth;
};

static void *wait_until_set(void *argument) {
    struct waited *waited = argument;
    int error = 0;
    for (int depth = 0; depth < waited->depth; ++depth) {
        NEED(pthread_mutex_lock(&waited->mutex));
    }
    atomic_store(&waited->waiter, thread_id());
    while (error == 0 && !waited->is_set) {
        error = pthread_cond_wait(&waited->condition, &waited->mutex);
    }
    for (int depth = 0; depth < waited->depth; ++depth) {
        NEED(pthread_mutex_unlock(&waited->mutex));
    }
    return (void *)(intptr_t)error;
}

// Waits with a mutex of each kind; the condition variable must free and take each.
static void kinds_of_mutexes(void) {
    const struct {
        const char *name;
        int type, robust, shared, protocol;
    } all[] = {
        {"normal", PTHREAD_MUTEX_NORMAL, 0, 0, 0},
        {"recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0},
        {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0},
        {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0},
        {"shared", PTHREAD_MUTEX_NORMAL, 0, 1, 0},
        {"robust", PTHREAD_MUTEX_NORMAL, 1, 0, 0},
        {"robust shared recursive", PTHREAD_MUTEX_RECURSIVE, 1, 1, 0},
        {"inheriting", PTHREAD_MUTEX_NORMAL, 0, 0, PTHREAD_PRIO_INHERIT},
        {"inheriting errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_INHERIT},
    };
    for (size_t nth = 0; nth < sizeof all / sizeof *all * 2; ++nth) {
        static struct waited waited;
        memset(&waited, 0, sizeof waited);
        size_t kind = nth / 2;
        bool shared_condition = nth % 2 == 1;
        char name[96];
        snprintf(name, sizeof name, "%s mutex, %s condition", all[kind].name, shared_condition ? "shared" : "private");
        pthread_mutexattr_t of_mutex;
        NEED(pthread_mutexattr_init(&of_mutex));
        NEED(pthread_mutexattr_settype(&of_mutex, all[kind].type));
        NEED(pthread_mutexattr_setrobust(&of_mutex, all[kind].robust));
        NEED(pthread_mutexattr_setpshared(&of_mutex, all[kind].shared));
        NEED(pthread_mutexattr_setprotocol(&of_mutex, all[kind].protocol));
        NEED(pthread_mutex_init(&waited.mutex, &of_mutex));
        NEED(pthread_mutexattr_destroy(&of_mutex));
        pthread_condattr_t of_condition;
        NEED(pthread_condattr_init(&of_condition));
        NEED(pthread_condattr_setpshared(&of_condition, shared_condition));
        NEED(pthread_cond_init(&waited.condition, &of_condition));
        NEED(pthread_condattr_destroy(&of_condition));

        waited.depth = 1;
        struct timespec soon = from_now(CLOCK_REALTIME, 5);
        NEED(pthread_mutex_lock(&waited.mutex));
        show(pthread_cond_timedwait(&waited.condition, &waited.mutex, &soon), "%s, timedwait", name);
        show_number(holds(&waited.mutex), "%s, held after it", name);
        NEED(pthread_mutex_unlock(&waited.mutex));
        pthread_t waiter = start(wait_until_set, &waited);
        until_waits(&waited.waiter);
        show(pthread_mutex_lock(&waited.mutex), "%s, lock while a thread waits", name);
        waited.is_set = 1;
        show(pthread_cond_signal(&waited.condition), "%s, signal", name);
        // The waiter cannot return while this thread holds the mutex, so it will take it again.
        // glibc destroys a robust mutex in any state.
        if (!all[kind].robust) {
            show(pthread_mutex_destroy(&waited.mutex), "%s, destroy a mutex that is held", name);
        }
        show(pthread_mutex_unlock(&waited.mutex), "%s, unlock", name);
        show((int)(intptr_t)join(waiter), "%s, the wait", name);
        show(pthread_cond_destroy(&waited.condition), "%s, destroy the condition", name);
        show(pthread_mutex_destroy(&waited.mutex), "%s, destroy the mutex", name);
    }
}

// glibc counts the threads that wait with a mutex as its users, so it cannot be destroyed.
static void destroy_under_a_waiter(void) {
    static struct waited waited = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER, .depth = 1};
    pthread_t waiter = start(wait_until_set, &waited);
    until_waits(&waited.waiter);
    show(pthread_mutex_destroy(&waited.mutex), "destroy a free mutex that a waiter will take");
    NEED(pthread_mutex_lock(&waited.mutex));
    waited.is_set = 1;
    NEED(pthread_cond_signal(&waited.condition));
    NEED(pthread_mutex_unlock(&waited.mutex));
    show((int)(intptr_t)join(waiter), "the wait");
    show(pthread_mutex_destroy(&waited.mutex), "destroy it after the wait");
}

static void mutexes_that_are_not_held(void) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    struct timespec past = from_now(CLOCK_REALTIME, -100);
    show(pthread_cond_wait(&condition, &errorcheck), "wait with a free errorcheck mutex");
    show(pthread_cond_timedwait(&condition, &errorcheck, &past), "timedwait with a free errorcheck mutex");
    show(pthread_cond_wait(&condition, &recursive), "wait with a free recursive mutex");
    show(pthread_cond_signal(&condition), "signal after the failed waits");
    show(pthread_cond_destroy(&condition), "destroy after the failed waits");
}

int main(void) {
    no_waiters();
    attributes_alone();
    clocks();
    kinds_of_mutexes();
    destroy_under_a_waiter();
    mutexes_that_are_not_held();
    return finish();
}
