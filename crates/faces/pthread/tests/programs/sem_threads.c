// Semaphores between threads and processes: posts by signal handlers, EINTR, cancellation, counts.
#include "case.h"

static sem_t semaphore;
static atomic_int waiter;
static volatile sig_atomic_t handled;

static void handle(int signal) { handled += signal == SIGUSR1; }

static void post_in_handler(int signal) {
    handled += signal == SIGUSR1;
    sem_post(&semaphore);
}

static void *wait_once(void *unused) {
    (void)unused;
    atomic_store(&waiter, thread_id());
    return (void *)(intptr_t)by_errno(sem_wait(&semaphore));
}

static void *timedwait_once(void *unused) {
    (void)unused;
    struct timespec never = far(CLOCK_REALTIME);
    atomic_store(&waiter, thread_id());
    return (void *)(intptr_t)by_errno(sem_timedwait(&semaphore, &never));
}

static void interrupted(void (*handler)(int), int flags, const char *name) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    NEED(sigaction(SIGUSR1, &action, NULL) != 0 ? errno : 0);
    // Whether a timed wait is restarted is up to the kernel, so it comes without SA_RESTART only.
    for (int timed = 0; timed < (flags == 0 ? 2 : 1); ++timed) {
        NEED(by_errno(sem_init(&semaphore, 0, 0)));
        handled = 0;
        atomic_store(&waiter, 0);
        pthread_t thread = start(timed ? timedwait_once : wait_once, NULL);
        until_waits(&waiter);
        NEED(pthread_kill(thread, SIGUSR1));
        while (handled == 0) {
            sleep_ms(1);
        }
        // Only a wait that was restarted needs this permit.
        if (handler == handle && (flags & SA_RESTART) != 0) {
            until_waits(&waiter);
            NEED(by_errno(sem_post(&semaphore)));
        }
        show((int)(intptr_t)join(thread), "%s, %s", name, timed ? "timedwait" : "wait");
        show(by_errno(sem_destroy(&semaphore)), "%s, destroy", name);
    }
}

static void cancelled(void) {
    for (int timed = 0; timed < 2; ++timed) {
        NEED(by_errno(sem_init(&semaphore, 0, 0)));
        atomic_store(&waiter, 0);
        pthread_t thread = start(timed ? timedwait_once : wait_once, NULL);
        until_waits(&waiter);
        NEED(pthread_cancel(thread));
        show_number(join(thread) == PTHREAD_CANCELED, "%s cancelled", timed ? "timedwait" : "wait");
        show(by_errno(sem_post(&semaphore)), "post after it");
        int value = -1;
        NEED(by_errno(sem_getvalue(&semaphore, &value)));
        show_number(value, "value after it");
        show(by_errno(sem_trywait(&semaphore)), "trywait after it");
        show(by_errno(sem_destroy(&semaphore)), "destroy after it");
    }
}

static void *wait_with_pending_request(void *unused) {
    NEED(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    until_set(&waiter);
    NEED(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
    sem_wait(&semaphore);
    return unused;
}

// sem_wait is a cancellation point also when it need not wait, and takes no permit then.
static void cancelled_before(void) {
    NEED(by_errno(sem_init(&semaphore, 0, 1)));
    atomic_store(&waiter, 0);
    pthread_t thread = start(wait_with_pending_request, NULL);
    NEED(pthread_cancel(thread));
    atomic_store(&waiter, 1);
    show_number(join(thread) == PTHREAD_CANCELED, "wait with a permit, cancelled before it");
    int value = -1;
    NEED(by_errno(sem_getvalue(&semaphore, &value)));
    show_number(value, "permits left");
}

// Permits are neither lost nor made when a waiter is cancelled at the moment of a post. The wake-up
// may be lost with it, in glibc too, so each round has a second post.
static void cancelled_in_a_race(void) {
    long wrong = 0;
    for (int round = 0; round < 200; ++round) {
        NEED(by_errno(sem_init(&semaphore, 0, 0)));
        atomic_store(&waiter, 0);
        pthread_t first = start(wait_once, NULL);
        until_set(&waiter);
        pthread_t second = start(wait_once, NULL);
        if (round % 4 == 0) {
            sleep_ms(1);
        }
        if (round % 2 == 0) {
            pthread_cancel(first);
            NEED(by_errno(sem_post(&semaphore)));
        } else {
            NEED(by_errno(sem_post(&semaphore)));
            pthread_cancel(first);
        }
        bool was_cancelled = join(first) == PTHREAD_CANCELED;
        NEED(by_errno(sem_post(&semaphore)));
        wrong += join(second) != NULL;
        int value = -1;
        NEED(by_errno(sem_getvalue(&semaphore, &value)));
        wrong += value != was_cancelled;
        NEED(by_errno(sem_destroy(&semaphore)));
    }
    show_number(wrong, "races of a post and a cancellation that went wrong");
}

struct pool {
    sem_t permits, lock;
    long count;
    atomic_int inside, most, wrong;
};

static void *use_pool(void *argument) {
    struct pool *pool = argument;
    for (int round = 0; round < 1500; ++round) {
        struct timespec soon = from_now(CLOCK_REALTIME, 1);
        int error = round % 5 == 0   ? by_errno(sem_trywait(&pool->permits))
                    : round % 5 == 1 ? by_errno(sem_timedwait(&pool->permits, &soon))
                                     : by_errno(sem_wait(&pool->permits));
        if (error != 0) {
            bool may_fail = round % 5 == 0 ? error == EAGAIN : round % 5 == 1 && error == ETIMEDOUT;
            atomic_fetch_add(&pool->wrong, !may_fail);
            NEED(by_errno(sem_wait(&pool->permits)));
        }
        int inside = atomic_fetch_add(&pool->inside, 1) + 1;
        atomic_fetch_add(&pool->most, inside > 3);
        NEED(by_errno(sem_wait(&pool->lock)));
        pool->count += 1;
        NEED(by_errno(sem_post(&pool->lock)));
        atomic_fetch_sub(&pool->inside, 1);
        NEED(by_errno(sem_post(&pool->permits)));
    }
    return NULL;
}

static int use_pool_in_process(void *argument) {
    use_pool(argument);
    return 0;
}

static void pool_of_permits(int shared) {
    struct pool *pool = shared_memory(sizeof *pool);
    const char *name = shared ? "shared pool" : "private pool";
    NEED(by_errno(sem_init(&pool->permits, shared, 3)));
    NEED(by_errno(sem_init(&pool->lock, shared, 1)));
    pthread_t threads[6];
    pid_t children[2];
    for (int nth = 0; shared && nth < 2; ++nth) {
        children[nth] = start_process(use_pool_in_process, pool);
    }
    for (int nth = 0; nth < 6; ++nth) {
        threads[nth] = start(use_pool, pool);
    }
    for (int nth = 0; nth < 6; ++nth) {
        join(threads[nth]);
    }
    for (int nth = 0; shared && nth < 2; ++nth) {
        show(join_process(children[nth]), "%s, process %d", name, nth);
    }
    show_number(pool->count, "%s, uses", name);
    show_number(atomic_load(&pool->most), "%s, times with too many inside", name);
    show_number(atomic_load(&pool->wrong), "%s, results that cannot be", name);
    int value = -1;
    NEED(by_errno(sem_getvalue(&pool->permits, &value)));
    show_number(value, "%s, permits at the end", name);
    show(by_errno(sem_destroy(&pool->permits)), "%s, destroy", name);
}

// A semaphore on the stack says that a thread is ready; then its memory is used for something else.
static void *say_ready(void *argument) {
    NEED(by_errno(sem_post(argument)));
    return NULL;
}

static void on_the_stack(void) {
    long touched = 0;
    for (int round = 0; round < 500; ++round) {
        sem_t ready;
        NEED(by_errno(sem_init(&ready, 0, 0)));
        pthread_t thread = start(say_ready, &ready);
        NEED(by_errno(sem_wait(&ready)));
        NEED(by_errno(sem_destroy(&ready)));
        memset(&ready, 0xee, sizeof ready);
        join(thread);
        for (size_t nth = 0; nth < sizeof ready; ++nth) {
            touched += ((unsigned char *)&ready)[nth] != 0xee;
        }
    }
    show_number(touched, "bytes touched after destroy");
}

int main(void) {
    interrupted(handle, 0, "handler without SA_RESTART");
    interrupted(handle, SA_RESTART, "handler with SA_RESTART");
    interrupted(post_in_handler, SA_RESTART, "post in a handler");
    cancelled();
    cancelled_before();
    cancelled_in_a_race();
    pool_of_permits(0);
    pool_of_permits(1);
    on_the_stack();
    return finish();
}
