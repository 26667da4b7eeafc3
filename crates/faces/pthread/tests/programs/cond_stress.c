// Producers and consumers of a bounded queue, and a barrier by broadcast: counts must be exact.
#include "case.h"

enum { SLOTS = 4, PRODUCERS = 3, CONSUMERS = 3, ITEMS = 3000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty;
    long items[SLOTS];
    int head, used;
    bool is_closed;
    atomic_int wrong;
} queue;

static void wait_on(pthread_cond_t *condition, long nth) {
    int error;
    if (nth % 3 == 0) {
        struct timespec soon = from_now(CLOCK_REALTIME, nth % 2);
        error = pthread_cond_timedwait(condition, &queue.mutex, &soon);
    } else {
        error = pthread_cond_wait(condition, &queue.mutex);
    }
    if (error != 0 && error != ETIMEDOUT) {
        atomic_fetch_add(&queue.wrong, 1);
    }
}

static void *produce(void *argument) {
    long base = (long)(intptr_t)argument * ITEMS;
    for (long nth = 0; nth < ITEMS; ++nth) {
        NEED(pthread_mutex_lock(&queue.mutex));
        while (queue.used == SLOTS) {
            wait_on(&queue.not_full, nth);
        }
        queue.items[(queue.head + queue.used++) % SLOTS] = base + nth + 1;
        NEED(pthread_cond_signal(&queue.not_empty));
        NEED(pthread_mutex_unlock(&queue.mutex));
    }
    return NULL;
}

static void *consume(void *argument) {
    long *sum = argument;
    for (long nth = 0;; ++nth) {
        NEED(pthread_mutex_lock(&queue.mutex));
        while (queue.used == 0 && !queue.is_closed) {
            wait_on(&queue.not_empty, nth);
        }
        if (queue.used == 0) {
            NEED(pthread_mutex_unlock(&queue.mutex));
            return NULL;
        }
        *sum += queue.items[queue.head];
        queue.head = (queue.head + 1) % SLOTS;
        queue.used -= 1;
        NEED(pthread_mutex_unlock(&queue.mutex));
        NEED(pthread_cond_signal(&queue.not_full));
    }
}

static void bounded_queue(const char *name, int type, int protocol, int shared) {
    memset(&queue, 0, sizeof queue);
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    NEED(pthread_mutexattr_setpshared(&attributes, shared));
    NEED(pthread_mutex_init(&queue.mutex, &attributes));
    NEED(pthread_cond_init(&queue.not_full, NULL));
    NEED(pthread_cond_init(&queue.not_empty, NULL));
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    long sums[CONSUMERS] = {0}, sum = 0;
    for (int nth = 0; nth < CONSUMERS; ++nth) {
        consumers[nth] = start(consume, &sums[nth]);
    }
    for (int nth = 0; nth < PRODUCERS; ++nth) {
        producers[nth] = start(produce, (void *)(intptr_t)nth);
    }
    for (int nth = 0; nth < PRODUCERS; ++nth) {
        join(producers[nth]);
    }
    NEED(pthread_mutex_lock(&queue.mutex));
    queue.is_closed = true;
    NEED(pthread_cond_broadcast(&queue.not_empty));
    NEED(pthread_mutex_unlock(&queue.mutex));
    for (int nth = 0; nth < CONSUMERS; ++nth) {
        join(consumers[nth]);
        sum += sums[nth];
    }
    show_number(sum, "%s, sum of the items", name);
    show_number(atomic_load(&queue.wrong), "%s, results that cannot be", name);
    show(pthread_cond_destroy(&queue.not_full), "%s, destroy not_full", name);
    show(pthread_cond_destroy(&queue.not_empty), "%s, destroy not_empty", name);
    show(pthread_mutex_destroy(&queue.mutex), "%s, destroy the mutex", name);
}

enum { PARTIES = 6, PHASES = 500 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int arrived, phase, early;
} barrier = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};

static void *cross(void *unused) {
    for (int phase = 0; phase < PHASES; ++phase) {
        NEED(pthread_mutex_lock(&barrier.mutex));
        barrier.early += barrier.phase != phase;
        if (++barrier.arrived == PARTIES) {
            barrier.arrived = 0;
            barrier.phase += 1;
            NEED(pthread_cond_broadcast(&barrier.condition));
        }
        while (barrier.phase == phase) {
            NEED(pthread_cond_wait(&barrier.condition, &barrier.mutex));
        }
        NEED(pthread_mutex_unlock(&barrier.mutex));
    }
    return unused;
}

static void phases(void) {
    pthread_t threads[PARTIES];
    for (int nth = 0; nth < PARTIES; ++nth) {
        threads[nth] = start(cross, NULL);
    }
    for (int nth = 0; nth < PARTIES; ++nth) {
        join(threads[nth]);
    }
    show_number(barrier.phase, "phases of the barrier");
    show_number(barrier.early, "threads in the wrong phase");
    show(pthread_cond_destroy(&barrier.condition), "barrier, destroy");
}

int main(void) {
    bounded_queue("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0);
    bounded_queue("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 0);
    bounded_queue("inheriting", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0);
    bounded_queue("shared", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1);
    phases();
    return finish();
}
