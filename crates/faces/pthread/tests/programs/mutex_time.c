// Timed locks of a mutex: both clocks, deadlines in the past, and times that are no times.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct timespec TOO_LARGE = {1, 1000000000};
static const struct timespec TOO_SMALL = {1, -1};
static const struct timespec BEFORE_1970 = {-1, 0};
static const struct timespec EPOCH = {0, 0};

static const char *name_of(clockid_t clock) {
    return clock == CLOCK_REALTIME ? "realtime" : clock == CLOCK_MONOTONIC ? "monotonic" : "other clock";
}

struct attempt {
    clockid_t clock;
    const struct timespec *deadline;
};

static int attempt(void *argument) {
    struct attempt *attempt = argument;
    int error = attempt->clock < 0 ? pthread_mutex_timedlock(&mutex, attempt->deadline)
                                   : pthread_mutex_clocklock(&mutex, attempt->clock, attempt->deadline);
    if (error == 0) {
        NEED(pthread_mutex_unlock(&mutex));
    }
    return error;
}

// Tries each deadline on another thread, with the mutex free or locked.
static void deadlines(const char *state, bool is_free) {
    static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (size_t nth = 0; nth < 2; ++nth) {
        clockid_t clock = CLOCKS[nth];
        struct timespec past = from_now(clock, -100), soon = from_now(clock, 20), later = far(clock);
        struct {
            const char *name;
            const struct timespec *deadline;
        } all[] = {
            {"past", &past},           {"soon", &soon},           {"the epoch", &EPOCH},
            {"before 1970", &BEFORE_1970}, {"nanoseconds too large", &TOO_LARGE},
            {"nanoseconds too small", &TOO_SMALL}, {"far", &later},
        };
        for (size_t which = 0; which < sizeof all / sizeof *all - !is_free; ++which) {
            struct attempt with_clock = {clock, all[which].deadline};
            show(on_thread(attempt, &with_clock), "%s, clocklock %s, %s", state, name_of(clock), all[which].name);
            if (clock == CLOCK_REALTIME) {
                struct attempt timed = {-1, all[which].deadline};
                show(on_thread(attempt, &timed), "%s, timedlock, %s", state, all[which].name);
            }
        }
    }
    static const clockid_t WRONG[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME, 12345};
    for (size_t nth = 0; nth < sizeof WRONG / sizeof *WRONG; ++nth) {
        struct timespec past = from_now(CLOCK_MONOTONIC, -100);
        struct attempt wrong = {WRONG[nth], &past};
        show(on_thread(attempt, &wrong), "%s, clocklock with wrong clock %zu", state, nth);
    }
}

struct holder {
    pthread_barrier_t locked;
    atomic_int waiter;
};

static void *hold_until_waited_for(void *argument) {
    struct holder *holder = argument;
    NEED(pthread_mutex_lock(&mutex));
    pthread_barrier_wait(&holder->locked);
    until_waits(&holder->waiter);
    NEED(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void wait_for_holder(clockid_t clock) {
    struct holder holder = {.waiter = 0};
    NEED(pthread_barrier_init(&holder.locked, NULL, 2));
    pthread_t thread = start(hold_until_waited_for, &holder);
    pthread_barrier_wait(&holder.locked);
    struct timespec deadline = far(clock);
    atomic_store(&holder.waiter, thread_id());
    show(pthread_mutex_clocklock(&mutex, clock, &deadline), "freed in time, clocklock %s", name_of(clock));
    NEED(pthread_mutex_unlock(&mutex));
    join(thread);
}

int main(void) {
    deadlines("free", true);
    NEED(pthread_mutex_lock(&mutex));
    deadlines("locked", false);
    NEED(pthread_mutex_unlock(&mutex));
    deadlines("free again", true);
    wait_for_holder(CLOCK_REALTIME);
    wait_for_holder(CLOCK_MONOTONIC);
    return finish();
}
