/* ulocks_robust_semaphore_t. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 1000, MOST = 32767 };

static ulocks_region_t *region;
static ulocks_member_t *me;
static ulocks_robust_semaphore_t *semaphore;
static long *inside;

static void join(void) {
    ulocks_robust_semaphore_t *found;
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_robust_semaphore(region, me, "permits", &found));
    CHECK(found == semaphore);
}

static void ends(pid_t child, int by_signal) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(by_signal ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void two_processes_take_one_permit(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        RETURNS(EINVAL, ulocks_robust_semaphore_acquire(semaphore, me, 1)); /* its parent's member */
        join();
    }
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        RETURNS(0, round % 2 ? ulocks_robust_semaphore_acquire(semaphore, me, 1)
                             : ulocks_robust_semaphore_acquire_until(semaphore, me, 1, &until));
        CHECK(++*inside == 1);
        --*inside;
        RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 1));
    }
    if (child == 0)
        _exit(0);
    ends(child, 0);
    RETURNS(1, ulocks_robust_semaphore_available(semaphore));
}

static void the_permits_of_a_killed_process_come_back(void) {
    const struct timespec until = late();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        join();
        RETURNS(0, ulocks_robust_semaphore_add(semaphore, me, 2)); /* these stay */
        RETURNS(0, ulocks_robust_semaphore_tryacquire(semaphore, me, 1));
        RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, me, 2));
        RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 1));
        kill(getpid(), SIGKILL);
    }
    ends(child, 1);
    RETURNS(0, ulocks_robust_semaphore_acquire_until(semaphore, me, 3, &until));
    RETURNS(0, ulocks_robust_semaphore_available(semaphore));
    RETURNS(EBUSY, ulocks_robust_semaphore_tryacquire(semaphore, me, 1));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 2));
    RETURNS(EBUSY, ulocks_member_leave(me));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 1));
    RETURNS(3, ulocks_robust_semaphore_available(semaphore));
}

static void errors(void) {
    const struct timespec soon = after(3);
    RETURNS(EPERM, ulocks_robust_semaphore_release(semaphore, me, 1));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 0));
    RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, me, 0));
    RETURNS(EBUSY, ulocks_robust_semaphore_tryacquire(semaphore, me, 4));
    RETURNS(ETIMEDOUT, ulocks_robust_semaphore_acquire_until(semaphore, me, 4, &past));
    RETURNS(ETIMEDOUT, ulocks_robust_semaphore_acquire_until(semaphore, me, 4, &soon));
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire_until(semaphore, me, 1, NULL));
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire_until(semaphore, me, 1, &bad[0]));
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire_until(semaphore, me, 1, &bad[1]));
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire(semaphore, me, MOST + 1));
    RETURNS(EINVAL, ulocks_robust_semaphore_tryacquire(semaphore, me, UINT32_MAX));
    RETURNS(EOVERFLOW, ulocks_robust_semaphore_add(semaphore, me, MOST - 2));
    RETURNS(3, ulocks_robust_semaphore_available(semaphore));
    RETURNS(0, ulocks_robust_semaphore_add(semaphore, me, MOST - 3));
    RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, me, MOST));
    RETURNS(EPERM, ulocks_robust_semaphore_release(semaphore, me, UINT32_MAX));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, MOST));

    /* The limit is one of free permits. What finds no room when it comes back is lost. */
    RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, me, 1));
    RETURNS(0, ulocks_robust_semaphore_add(semaphore, me, 1));
    RETURNS(EOVERFLOW, ulocks_robust_semaphore_add(semaphore, me, 1));
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire(semaphore, me, MOST));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 1));
    RETURNS(MOST, ulocks_robust_semaphore_available(semaphore));

    ulocks_robust_semaphore_t elsewhere;
    memset(&elsewhere, 0, sizeof elsewhere);
    RETURNS(EINVAL, ulocks_robust_semaphore_acquire(&elsewhere, me, 0));
    RETURNS(EINVAL, ulocks_robust_semaphore_release(&elsewhere, me, 0));
    RETURNS(EINVAL, ulocks_robust_semaphore_add(&elsewhere, me, 0));
}

static void *takes_three(void *unused) {
    ulocks_member_t *other;
    (void)unused;
    RETURNS(0, ulocks_region_join(region, &other));
    RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, other, 3));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, other, 3));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void a_waiter_gets_what_is_added(void) {
    pthread_t thread;
    RETURNS(0, ulocks_robust_semaphore_acquire(semaphore, me, MOST));
    CHECK(pthread_create(&thread, NULL, takes_three, NULL) == 0);
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, 2));
    RETURNS(0, ulocks_robust_semaphore_release(semaphore, me, MOST - 2));
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(MOST, ulocks_robust_semaphore_available(semaphore));
}

int main(void) {
    CHECK(sizeof *semaphore == 2112);
    RETURNS(0, ulocks_region_anonymous(&region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_robust_semaphore(region, me, "permits", &semaphore));
    RETURNS(0, ulocks_region_bytes(region, me, "inside", sizeof *inside, (void **)&inside));
    RETURNS(EPROTO, ulocks_region_robust_semaphore(region, me, "inside", &semaphore));
    RETURNS(EINVAL, ulocks_region_robust_semaphore(region, me, "permits", NULL));
    RETURNS(0, ulocks_robust_semaphore_available(semaphore));
    RETURNS(0, ulocks_robust_semaphore_add(semaphore, me, 1));
    two_processes_take_one_permit();
    the_permits_of_a_killed_process_come_back();
    errors();
    a_waiter_gets_what_is_added();
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
    return 0;
}
