/* The cases of a mutex and its condition variable. The program defines MUTEX, a name without `_t`,
 * NOTIFY(operation, cond, mutex), and RELOCK, what a second lock by the owner with a deadline
 * returns. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <string.h>

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FN(name) JOINED(MUTEX, name)

typedef JOINED(MUTEX, _t) mutex_t;
typedef JOINED(MUTEX, _cond_t) cond_t;

enum { THREADS = 4, ROUNDS = 20000, TURNS = 2000 };

static mutex_t global = ULOCKS_MUTEX_INIT;
static cond_t changed = ULOCKS_COND_INIT;
static cond_t zeroed;
static int counter;
static int turn;
static int waiting;

static void *count(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 0) {
            const struct timespec until = late();
            RETURNS(0, FN(_lock_until)(&global, &until));
        } else if (round % 3 == 1 || FN(_trylock)(&global) != 0) {
            RETURNS(0, FN(_lock)(&global));
        }
        counter++;
        RETURNS(0, FN(_unlock)(&global));
    }
    return NULL;
}

static void exclusion(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counter == THREADS * ROUNDS);
    RETURNS(0, FN(_is_locked)(&global));
}

static void *finds_it_held(void *unused) {
    (void)unused;
    const struct timespec soon = after(3);
    RETURNS(EBUSY, FN(_trylock)(&global));
    RETURNS(ETIMEDOUT, FN(_lock_until)(&global, &past));
    RETURNS(ETIMEDOUT, FN(_lock_until)(&global, &soon));
    RETURNS(1, FN(_is_locked)(&global));
    return NULL;
}

static void held_by_another(void) {
    pthread_t thread;
    RETURNS(0, FN(_lock)(&global));
    CHECK(pthread_create(&thread, NULL, finds_it_held, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(EBUSY, FN(_trylock)(&global));
    RETURNS(RELOCK, FN(_lock_until)(&global, &past));
    RETURNS(0, FN(_unlock)(&global));
}

static void bad_moments(void) {
    const struct timespec before_zero = { -7, 0 };
    RETURNS(EINVAL, FN(_lock_until)(&global, NULL));
    RETURNS(EINVAL, FN(_lock_until)(&global, &bad[0]));
    RETURNS(EINVAL, FN(_lock_until)(&global, &bad[1]));
    RETURNS(0, FN(_is_locked)(&global));
    /* A free mutex is locked whatever the moment. */
    RETURNS(0, FN(_lock_until)(&global, &before_zero));
    RETURNS(EINVAL, FN(_cond_wait_until)(&changed, &global, NULL));
    RETURNS(EINVAL, FN(_cond_wait_until)(&changed, &global, &bad[1]));
    RETURNS(1, FN(_is_locked)(&global));
    RETURNS(ETIMEDOUT, FN(_cond_wait_until)(&changed, &global, &before_zero));
    const struct timespec soon = after(3);
    RETURNS(ETIMEDOUT, FN(_cond_wait_until)(&changed, &global, &soon));
    RETURNS(1, FN(_is_locked)(&global));
    RETURNS(0, FN(_unlock)(&global));
}

static void *answer(void *unused) {
    (void)unused;
    RETURNS(0, FN(_lock)(&global));
    for (int i = 0; i < TURNS; i++) {
        while (turn % 2 == 0)
            RETURNS(0, FN(_cond_wait)(&changed, &global));
        turn++;
        RETURNS(0, NOTIFY(_signal, &changed, &global));
    }
    RETURNS(0, FN(_unlock)(&global));
    return NULL;
}

static void ping_pong(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
    RETURNS(0, FN(_lock)(&global));
    for (int i = 0; i < TURNS; i++) {
        const struct timespec until = late();
        turn++;
        RETURNS(0, NOTIFY(_signal, &changed, &global));
        while (turn % 2 == 1)
            RETURNS(0, FN(_cond_wait_until)(&changed, &global, &until));
    }
    RETURNS(0, FN(_unlock)(&global));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(turn == 2 * TURNS);
}

static void *wait_for_zero(void *unused) {
    (void)unused;
    RETURNS(0, FN(_lock)(&global));
    waiting++;
    while (turn != 0)
        RETURNS(0, FN(_cond_wait)(&zeroed, &global));
    RETURNS(0, FN(_unlock)(&global));
    return NULL;
}

static void broadcast(void) {
    pthread_t threads[THREADS];
    turn = 1;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_zero, NULL) == 0);
    for (int all = 0; !all;) {
        RETURNS(0, FN(_lock)(&global));
        all = waiting == THREADS;
        if (all)
            turn = 0;
        RETURNS(0, FN(_unlock)(&global));
    }
    RETURNS(0, NOTIFY(_broadcast, &zeroed, &global));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void on_the_heap(void) {
    mutex_t *mutex = malloc(sizeof *mutex);
    CHECK(mutex != NULL);
    memset(mutex, 0, sizeof *mutex);
    RETURNS(0, FN(_lock)(mutex));
    RETURNS(0, FN(_unlock)(mutex));
    free(mutex);
}

static void all_cases(void) {
    exclusion();
    held_by_another();
    bad_moments();
    ping_pong();
    broadcast();
    on_the_heap();
}
