// How many waiters a signal and a broadcast wake, and how a condition variable is destroyed.
#include "case.h"

enum { WAITERS = 8 };

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int permits, waiting;
    bool is_open;
    atomic_int asleep[WAITERS];
    atomic_int passed;
};

static struct gate *new_gate(int shared, clockid_t clock) {
    struct gate *gate = calloc(1, sizeof *gate);
    pthread_condattr_t attributes;
    NEED(pthread_mutex_init(&gate->mutex, NULL));
    NEED(pthread_condattr_init(&attributes));
    NEED(pthread_condattr_setpshared(&attributes, shared));
    NEED(pthread_condattr_setclock(&attributes, clock));
    NEED(pthread_cond_init(&gate->condition, &attributes));
    NEED(pthread_condattr_destroy(&attributes));
    return gate;
}

struct waiter {
    struct gate *gate;
    int nth;
};

// Takes a permit, or passes the open gate. Some waiters have a deadline that never comes.
static void *pass(void *argument) {
    struct waiter *waiter = argument;
    struct gate *gate = waiter->gate;
    struct timespec never = far(CLOCK_MONOTONIC);
    int error = pthread_mutex_lock(&gate->mutex);
    gate->waiting += 1;
    atomic_store(&gate->asleep[waiter->nth], thread_id());
    while (error == 0 && gate->permits == 0 && !gate->is_open) {
        error = waiter->nth % 3 == 0
                    ? pthread_cond_clockwait(&gate->condition, &gate->mutex, CLOCK_MONOTONIC, &never)
                    : pthread_cond_wait(&gate->condition, &gate->mutex);
    }
    gate->permits -= !gate->is_open;
    gate->waiting -= 1;
    atomic_fetch_add(&gate->passed, 1);
    error += pthread_mutex_unlock(&gate->mutex);
    return (void *)(intptr_t)error;
}

static void start_waiters(struct gate *gate, struct waiter *waiters, pthread_t *threads) {
    for (int nth = 0; nth < WAITERS; ++nth) {
        waiters[nth] = (struct waiter){gate, nth};
        threads[nth] = start(pass, &waiters[nth]);
        until_waits(&gate->asleep[nth]);
    }
}

static int join_waiters(pthread_t *threads) {
    int errors = 0;
    for (int nth = 0; nth < WAITERS; ++nth) {
        errors += (int)(intptr_t)join(threads[nth]);
    }
    return errors;
}

static void until_passed(struct gate *gate, int number) {
    while (atomic_load(&gate->passed) < number) {
        sleep_ms(1);
    }
}

// Each signal comes with one permit, so exactly one waiter passes.
static void signals(struct gate *gate, bool holds_mutex, const char *name) {
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    start_waiters(gate, waiters, threads);
    for (int nth = 1; nth <= WAITERS; ++nth) {
        NEED(pthread_mutex_lock(&gate->mutex));
        gate->permits += 1;
        if (holds_mutex) {
            NEED(pthread_cond_signal(&gate->condition));
        }
        NEED(pthread_mutex_unlock(&gate->mutex));
        if (!holds_mutex) {
            NEED(pthread_cond_signal(&gate->condition));
        }
        until_passed(gate, nth);
        sleep_ms(1);
        show_number(atomic_load(&gate->passed), "%s, passed after signal %d", name, nth);
    }
    show_number(join_waiters(threads), "%s, errors of the waiters", name);
}

static void broadcasts(struct gate *gate, bool holds_mutex, const char *name) {
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    start_waiters(gate, waiters, threads);
    NEED(pthread_mutex_lock(&gate->mutex));
    gate->is_open = true;
    if (holds_mutex) {
        show(pthread_cond_broadcast(&gate->condition), "%s, broadcast", name);
        show_number(atomic_load(&gate->passed), "%s, passed while the mutex is held", name);
    }
    NEED(pthread_mutex_unlock(&gate->mutex));
    if (!holds_mutex) {
        show(pthread_cond_broadcast(&gate->condition), "%s, broadcast", name);
    }
    show_number(join_waiters(threads), "%s, errors of the waiters", name);
    show_number(atomic_load(&gate->passed), "%s, passed in all", name);
}

// POSIX: a condition variable may be destroyed at once after a broadcast that woke its waiters.
// They may still be on their way out of the wait. Then its memory is poisoned.
static void destroyed_after_broadcast(struct gate *gate, const char *name) {
    struct waiter waiters[WAITERS];
    pthread_t threads[WAITERS];
    start_waiters(gate, waiters, threads);
    NEED(pthread_mutex_lock(&gate->mutex));
    gate->is_open = true;
    NEED(pthread_cond_broadcast(&gate->condition));
    NEED(pthread_mutex_unlock(&gate->mutex));
    show(pthread_cond_destroy(&gate->condition), "%s, destroy after a broadcast", name);
    memset(&gate->condition, 0xee, sizeof gate->condition);
    show_number(join_waiters(threads), "%s, errors of the waiters", name);
    const unsigned char *bytes = (const unsigned char *)&gate->condition;
    int touched = 0;
    for (size_t nth = 0; nth < sizeof gate->condition; ++nth) {
        touched += bytes[nth] != 0xee;
    }
    show_number(touched, "%s, bytes touched after destroy", name);
    show(pthread_mutex_destroy(&gate->mutex), "%s, destroy the mutex", name);
}

// The same in many rounds without waiting for anybody to sleep.
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t *condition;
    int waiting;
    bool is_open;
} quick = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *pass_quickly(void *unused) {
    NEED(pthread_mutex_lock(&quick.mutex));
    quick.waiting += 1;
    while (!quick.is_open) {
        NEED(pthread_cond_wait(quick.condition, &quick.mutex));
    }
    NEED(pthread_mutex_unlock(&quick.mutex));
    return unused;
}

static void destroyed_in_many_rounds(void) {
    long touched = 0;
    for (int round = 0; round < 300; ++round) {
        pthread_t threads[3];
        quick.condition = malloc(sizeof *quick.condition);
        quick.is_open = false;
        quick.waiting = 0;
        NEED(pthread_cond_init(quick.condition, NULL));
        for (int nth = 0; nth < 3; ++nth) {
            threads[nth] = start(pass_quickly, NULL);
        }
        for (bool all = false; !all; sched_yield()) {
            NEED(pthread_mutex_lock(&quick.mutex));
            all = quick.waiting == 3;
            if (all) {
                quick.is_open = true;
                NEED(pthread_cond_broadcast(quick.condition));
            }
            NEED(pthread_mutex_unlock(&quick.mutex));
        }
        NEED(pthread_cond_destroy(quick.condition));
        memset(quick.condition, 0xee, sizeof *quick.condition);
        for (int nth = 0; nth < 3; ++nth) {
            join(threads[nth]);
        }
        for (size_t nth = 0; nth < sizeof *quick.condition; ++nth) {
            touched += ((unsigned char *)quick.condition)[nth] != 0xee;
        }
        free(quick.condition);
    }
    show_number(touched, "many rounds, bytes touched after destroy");
}

int main(void) {
    for (int shared = 0; shared < 2; ++shared) {
        for (int holds_mutex = 0; holds_mutex < 2; ++holds_mutex) {
            char name[64];
            snprintf(name, sizeof name, "%s, mutex %s", shared ? "shared" : "private", holds_mutex ? "held" : "free");
            signals(new_gate(shared, CLOCK_MONOTONIC), holds_mutex, name);
            broadcasts(new_gate(shared, CLOCK_REALTIME), holds_mutex, name);
        }
        destroyed_after_broadcast(new_gate(shared, CLOCK_REALTIME), shared ? "shared" : "private");
    }
    destroyed_in_many_rounds();
    return finish();
}
