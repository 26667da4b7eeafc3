// Condition variables between processes, and with signal handlers that interrupt waits.
#include "case.h"

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int turn, rounds;
};

static struct shared *new_shared(void) {
    struct shared *shared = shared_memory(sizeof *shared);
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_condition;
    NEED(pthread_mutexattr_init(&of_mutex));
    NEED(pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED));
    NEED(pthread_mutex_init(&shared->mutex, &of_mutex));
    NEED(pthread_condattr_init(&of_condition));
    NEED(pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED));
    NEED(pthread_cond_init(&shared->condition, &of_condition));
    return shared;
}

static void take_turns(struct shared *shared, int mine, int rounds, bool broadcast) {
    for (int round = 0; round < rounds; ++round) {
        NEED(pthread_mutex_lock(&shared->mutex));
        while (shared->turn != mine) {
            NEED(pthread_cond_wait(&shared->condition, &shared->mutex));
        }
        shared->turn = 1 - mine;
        shared->rounds += 1;
        NEED(broadcast ? pthread_cond_broadcast(&shared->condition) : pthread_cond_signal(&shared->condition));
        NEED(pthread_mutex_unlock(&shared->mutex));
    }
}

static int second_signals(void *shared) { take_turns(shared, 1, 1000, false); return 0; }
static int second_broadcasts(void *shared) { take_turns(shared, 1, 1000, true); return 0; }

static void ping_pong(void) {
    struct shared *shared = new_shared();
    pid_t child = start_process(second_signals, shared);
    take_turns(shared, 0, 1000, false);
    show(join_process(child), "turns of two processes by signal");
    show_number(shared->rounds, "turns taken");
    child = start_process(second_broadcasts, shared);
    take_turns(shared, 0, 1000, true);
    show(join_process(child), "turns of two processes by broadcast");
    show_number(shared->rounds, "turns taken in all");
    show(pthread_cond_destroy(&shared->condition), "destroy the condition");
    show(pthread_mutex_destroy(&shared->mutex), "destroy the mutex");
}

static int wait_with_deadline(void *argument) {
    struct shared *shared = argument;
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    NEED(pthread_mutex_lock(&shared->mutex));
    int error = pthread_cond_timedwait(&shared->condition, &shared->mutex, &soon);
    NEED(pthread_mutex_unlock(&shared->mutex));
    return error;
}

static void *signal_once(void *argument) {
    struct shared *shared = argument;
    sleep_ms(5);
    NEED(pthread_mutex_lock(&shared->mutex));
    shared->turn = 1;
    NEED(pthread_cond_signal(&shared->condition));
    NEED(pthread_mutex_unlock(&shared->mutex));
    return NULL;
}

// A forked child gets a copy of a private condition variable, and threads of its own use it.
static int use_private_copy(void *argument) {
    struct shared *private_one = argument;
    pthread_t thread = start(signal_once, private_one);
    NEED(pthread_mutex_lock(&private_one->mutex));
    while (private_one->turn == 0) {
        NEED(pthread_cond_wait(&private_one->condition, &private_one->mutex));
    }
    NEED(pthread_mutex_unlock(&private_one->mutex));
    join(thread);
    return pthread_cond_destroy(&private_one->condition);
}

static volatile sig_atomic_t handled;
static void handle(int signal) { handled += signal == SIGUSR1; }
static atomic_int waiter;

static void *wait_for_turn(void *argument) {
    struct shared *shared = argument;
    int error = 0;
    struct timespec never = far(CLOCK_MONOTONIC);
    NEED(pthread_mutex_lock(&shared->mutex));
    atomic_store(&waiter, thread_id());
    while (error == 0 && shared->turn == 0) {
        error = shared->rounds == 0 ? pthread_cond_wait(&shared->condition, &shared->mutex)
                                    : pthread_cond_clockwait(&shared->condition, &shared->mutex, CLOCK_MONOTONIC, &never);
    }
    NEED(pthread_mutex_unlock(&shared->mutex));
    return (void *)(intptr_t)error;
}

static void *lock_for_turn(void *argument) {
    struct shared *shared = argument;
    struct timespec never = far(CLOCK_REALTIME);
    atomic_store(&waiter, thread_id());
    int error = shared->rounds == 0 ? pthread_mutex_lock(&shared->mutex)
                                    : pthread_mutex_timedlock(&shared->mutex, &never);
    return (void *)(intptr_t)(error == 0 ? pthread_mutex_unlock(&shared->mutex) : error);
}

// Handlers run in the middle of waits and locks, which must go on as if nothing had happened.
static void interrupted(int flags, const char *name) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    NEED(sigaction(SIGUSR1, &action, NULL) != 0 ? errno : 0);
    for (int timed = 0; timed < 2; ++timed) {
        static struct shared shared;
        memset(&shared, 0, sizeof shared);
        NEED(pthread_mutex_init(&shared.mutex, NULL));
        NEED(pthread_cond_init(&shared.condition, NULL));
        shared.rounds = timed;
        handled = 0;
        atomic_store(&waiter, 0);
        pthread_t thread = start(wait_for_turn, &shared);
        until_waits(&waiter);
        for (int nth = 1; nth <= 5; ++nth) {
            NEED(pthread_kill(thread, SIGUSR1));
            while (handled < nth) {
                sleep_ms(1);
            }
            until_waits(&waiter);
        }
        NEED(pthread_mutex_lock(&shared.mutex));
        shared.turn = 1;
        NEED(pthread_cond_signal(&shared.condition));
        NEED(pthread_mutex_unlock(&shared.mutex));
        show((int)(intptr_t)join(thread), "%s, %s wait through 5 handlers", name, timed ? "timed" : "plain");

        NEED(pthread_mutex_lock(&shared.mutex));
        handled = 0;
        atomic_store(&waiter, 0);
        thread = start(lock_for_turn, &shared);
        until_waits(&waiter);
        for (int nth = 1; nth <= 5; ++nth) {
            NEED(pthread_kill(thread, SIGUSR1));
            while (handled < nth) {
                sleep_ms(1);
            }
        }
        NEED(pthread_mutex_unlock(&shared.mutex));
        show((int)(intptr_t)join(thread), "%s, %s lock through 5 handlers", name, timed ? "timed" : "plain");
        show(pthread_cond_destroy(&shared.condition), "%s, destroy", name);
    }
}

int main(void) {
    ping_pong();
    struct shared *shared = new_shared();
    show(in_process(wait_with_deadline, shared), "timedwait of a process");
    static struct shared private_one = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
    show(in_process(use_private_copy, &private_one), "private copies in a child");
    show(use_private_copy(&private_one), "the parent's own");
    interrupted(SA_RESTART, "with SA_RESTART");
    interrupted(0, "without SA_RESTART");
    return finish();
}
