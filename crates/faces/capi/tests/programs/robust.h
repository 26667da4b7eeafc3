/* The cases of a robust mutex and its condition variable. A program defines MUTEX. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FN(operation) JOIN(MUTEX, operation)
#define FIND JOIN(ulocks_region_, SHORT)
typedef JOIN(MUTEX, _t) mutex_t;

enum { ROUNDS = 2000 };

static ulocks_region_t *region;
static ulocks_member_t *me;
static mutex_t *mutex;
static ulocks_robust_cond_t *changed;
static long *data;

/* A child joins by itself, and finds what its parent has found. */
static void join(void) {
    RETURNS(0, ulocks_region_join(region, &me));
    mutex_t *found;
    RETURNS(0, FIND(region, me, "mutex", &found));
    CHECK(found == mutex);
}

static void ends(pid_t child, int by_signal) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(by_signal ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void two_processes_count(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        join();
    for (int round = 0; round < ROUNDS; round++) {
        RETURNS(0, FN(_lock)(mutex, me));
        data[0]++;
        RETURNS(0, FN(_unlock)(mutex, me));
    }
    if (child == 0)
        _exit(0);
    ends(child, 0);
    CHECK(data[0] == 2 * ROUNDS);
}

/* Ends by SIGKILL with the mutex locked. */
static void die_with_it(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        join();
        RETURNS(0, FN(_lock)(mutex, me));
        kill(getpid(), SIGKILL);
    }
    ends(child, 1);
}

static void a_death_is_told_and_repaired(void) {
    die_with_it();
    RETURNS(EOWNERDEAD, FN(_lock)(mutex, me));
    RETURNS(EDEADLK, FN(_lock)(mutex, me));
    RETURNS(0, FN(_consistent)(mutex, me));
    RETURNS(EINVAL, FN(_consistent)(mutex, me));
    RETURNS(0, FN(_unlock)(mutex, me));
    RETURNS(EPERM, FN(_unlock)(mutex, me));
    RETURNS(EPERM, FN(_consistent)(mutex, me));

    die_with_it();
    const struct timespec until = late();
    RETURNS(EOWNERDEAD, FN(_lock_until)(mutex, me, &until));
    RETURNS(0, FN(_unlock)(mutex, me));
    RETURNS(ENOTRECOVERABLE, FN(_trylock)(mutex, me));
    RETURNS(EOWNERDEAD, FN(_reset)(mutex, me));
    RETURNS(0, FN(_consistent)(mutex, me));
    RETURNS(0, FN(_unlock)(mutex, me));
    RETURNS(0, FN(_trylock)(mutex, me));
    RETURNS(0, FN(_unlock)(mutex, me));
}

static void *finds_it_held(void *unused) {
    (void)unused;
    ulocks_member_t *other;
    RETURNS(0, ulocks_region_join(region, &other));
    RETURNS(EBUSY, FN(_trylock)(mutex, other));
    RETURNS(ETIMEDOUT, FN(_lock_until)(mutex, other, &past));
    RETURNS(EINVAL, FN(_lock_until)(mutex, other, &bad[0]));
    RETURNS(EINVAL, FN(_lock_until)(mutex, other, &bad[1]));
    RETURNS(EINVAL, FN(_lock_until)(mutex, other, NULL));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void a_held_mutex_is_refused(void) {
    pthread_t thread;
    RETURNS(0, FN(_lock)(mutex, me));
    CHECK(pthread_create(&thread, NULL, finds_it_held, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(EBUSY, ulocks_member_leave(me));
    CHECK(strlen(ulocks_region_error()) > 0);
    RETURNS(0, FN(_unlock)(mutex, me));
}

/* Two processes take turns by the condition variable. */
static void take_turns(int mine) {
    RETURNS(0, FN(_lock)(mutex, me));
    for (int i = 0; i < 200; i++) {
        const struct timespec until = late();
        while (data[1] % 2 != mine)
            RETURNS(0, i % 2 ? FN(_cond_wait)(changed, mutex, me)
                             : FN(_cond_wait_until)(changed, mutex, me, &until));
        data[1]++;
        RETURNS(0, i % 2 ? ulocks_robust_cond_signal(changed, me)
                         : ulocks_robust_cond_broadcast(changed, me));
    }
    RETURNS(0, FN(_unlock)(mutex, me));
}

static void two_processes_take_turns(void) {
    RETURNS(EPERM, FN(_cond_wait)(changed, mutex, me));
    RETURNS(0, FN(_lock)(mutex, me));
    RETURNS(ETIMEDOUT, FN(_cond_wait_until)(changed, mutex, me, &past));
    RETURNS(EINVAL, FN(_cond_wait_until)(changed, mutex, me, &bad[0]));
    ulocks_robust_cond_t elsewhere;
    memset(&elsewhere, 0, sizeof elsewhere);
    RETURNS(EINVAL, FN(_cond_wait)(&elsewhere, mutex, me));
    RETURNS(0, FN(_unlock)(mutex, me)); /* it was not unlocked */
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        RETURNS(EINVAL, FN(_lock)(mutex, me)); /* its parent's member */
        RETURNS(EINVAL, ulocks_robust_cond_signal(changed, me));
        CHECK(strstr(ulocks_region_error(), "join in the child"));
        join();
    }
    take_turns(child == 0);
    if (child == 0)
        _exit(0);
    ends(child, 0);
    CHECK(data[1] == 400);
}

static void all_cases(void) {
    RETURNS(0, ulocks_region_anonymous(&region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, FIND(region, me, "mutex", &mutex));
    RETURNS(0, ulocks_region_robust_cond(region, me, "changed", &changed));
    RETURNS(0, ulocks_region_bytes(region, me, "data", 2 * sizeof *data, (void **)&data));
    RETURNS(EPROTO, FIND(region, me, "changed", &mutex));
    RETURNS(EINVAL, FIND(region, me, "", &mutex));
    RETURNS(EINVAL, FIND(region, me, NULL, &mutex));
    RETURNS(EINVAL, FIND(region, me, "mutex", NULL));
    two_processes_count();
    a_death_is_told_and_repaired();
    a_held_mutex_is_refused();
    two_processes_take_turns();
    mutex_t elsewhere;
    memset(&elsewhere, 0, sizeof elsewhere);
    RETURNS(EINVAL, FN(_lock)(&elsewhere, me));
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
}
