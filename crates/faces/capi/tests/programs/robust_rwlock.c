/* ulocks_robust_rwlock_t. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

static ulocks_region_t *region;
static ulocks_member_t *me;
static ulocks_robust_rwlock_t *lock;
static long *data;

static void join(void) {
    ulocks_robust_rwlock_t *found;
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_robust_rwlock(region, me, "table", &found));
    CHECK(found == lock);
}

static void ends(pid_t child, int by_signal) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(by_signal ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void two_processes_read_and_write(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        RETURNS(EINVAL, ulocks_robust_rwlock_read_lock(lock, me)); /* its parent's member */
        join();
    }
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        RETURNS(0, round % 2 ? ulocks_robust_rwlock_write_lock(lock, me)
                             : ulocks_robust_rwlock_write_lock_until(lock, me, &until));
        data[0]++;
        data[1]++;
        if (round % 5 == 0) {
            RETURNS(0, ulocks_robust_rwlock_downgrade(lock, me));
            CHECK(data[0] == data[1]);
            RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
        } else {
            RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
        }
        RETURNS(0, round % 4 == 0   ? ulocks_robust_rwlock_read_lock(lock, me)
                   : round % 4 == 1 ? ulocks_robust_rwlock_urgent_lock(lock, me)
                   : round % 4 == 2 ? ulocks_robust_rwlock_read_lock_until(lock, me, &until)
                                    : ulocks_robust_rwlock_urgent_lock_until(lock, me, &until));
        CHECK(data[0] == data[1]);
        RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
    }
    if (child == 0)
        _exit(0);
    ends(child, 0);
    CHECK(data[0] == 2 * ROUNDS && data[1] == 2 * ROUNDS);
    RETURNS(0, ulocks_robust_rwlock_is_locked(lock));
}

/* Ends by SIGKILL with the lock, for reading or for writing. */
static void die_with_it(int (*acquire)(ulocks_robust_rwlock_t *, const ulocks_member_t *)) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        join();
        RETURNS(0, acquire(lock, me));
        kill(getpid(), SIGKILL);
    }
    ends(child, 1);
}

static void deaths(void) {
    const struct timespec until = late();
    die_with_it(ulocks_robust_rwlock_read_lock);
    die_with_it(ulocks_robust_rwlock_urgent_lock);
    RETURNS(0, ulocks_robust_rwlock_write_lock_until(lock, me, &until));
    RETURNS(EINVAL, ulocks_robust_rwlock_consistent(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));

    die_with_it(ulocks_robust_rwlock_write_lock);
    RETURNS(EOWNERDEAD, ulocks_robust_rwlock_read_lock(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_consistent(lock, me));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
    RETURNS(EOWNERDEAD, ulocks_robust_rwlock_urgent_trylock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
    RETURNS(EOWNERDEAD, ulocks_robust_rwlock_write_lock_until(lock, me, &until));
    RETURNS(0, ulocks_robust_rwlock_consistent(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_read_trylock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));

    die_with_it(ulocks_robust_rwlock_write_lock);
    RETURNS(EOWNERDEAD, ulocks_robust_rwlock_write_lock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
    RETURNS(ENOTRECOVERABLE, ulocks_robust_rwlock_write_lock(lock, me));
    RETURNS(ENOTRECOVERABLE, ulocks_robust_rwlock_read_lock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_is_locked(lock));
    RETURNS(EOWNERDEAD, ulocks_robust_rwlock_reset(lock, me));
    RETURNS(0, ulocks_robust_rwlock_consistent(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_trylock(lock, me));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
}

static void *finds_it_read(void *unused) {
    ulocks_member_t *other;
    const struct timespec soon = after(3);
    (void)unused;
    RETURNS(0, ulocks_region_join(region, &other));
    RETURNS(EBUSY, ulocks_robust_rwlock_write_trylock(lock, other));
    RETURNS(ETIMEDOUT, ulocks_robust_rwlock_write_lock_until(lock, other, &past));
    RETURNS(ETIMEDOUT, ulocks_robust_rwlock_write_lock_until(lock, other, &soon));
    RETURNS(0, ulocks_robust_rwlock_read_trylock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_urgent_trylock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, other));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void *finds_it_written(void *unused) {
    ulocks_member_t *other;
    const struct timespec soon = after(3);
    (void)unused;
    RETURNS(0, ulocks_region_join(region, &other));
    RETURNS(EBUSY, ulocks_robust_rwlock_write_trylock(lock, other));
    RETURNS(EBUSY, ulocks_robust_rwlock_read_trylock(lock, other));
    RETURNS(EBUSY, ulocks_robust_rwlock_urgent_trylock(lock, other));
    RETURNS(ETIMEDOUT, ulocks_robust_rwlock_read_lock_until(lock, other, &soon));
    RETURNS(ETIMEDOUT, ulocks_robust_rwlock_urgent_lock_until(lock, other, &soon));
    RETURNS(EPERM, ulocks_robust_rwlock_write_unlock(lock, other));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void held_by_another(void) {
    pthread_t thread;
    RETURNS(0, ulocks_robust_rwlock_read_lock(lock, me));
    RETURNS(1, ulocks_robust_rwlock_is_locked(lock));
    RETURNS(EDEADLK, ulocks_robust_rwlock_write_lock(lock, me));
    RETURNS(EDEADLK, ulocks_robust_rwlock_urgent_lock(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_write_unlock(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_downgrade(lock, me));
    CHECK(pthread_create(&thread, NULL, finds_it_read, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(EBUSY, ulocks_member_leave(me));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_read_unlock(lock, me));

    RETURNS(0, ulocks_robust_rwlock_write_lock(lock, me));
    RETURNS(EDEADLK, ulocks_robust_rwlock_reset(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_read_unlock(lock, me));
    CHECK(pthread_create(&thread, NULL, finds_it_written, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, me));
    RETURNS(EPERM, ulocks_robust_rwlock_write_unlock(lock, me));
}

static void *writes(void *unused) {
    ulocks_member_t *other;
    (void)unused;
    RETURNS(0, ulocks_region_join(region, &other));
    RETURNS(0, ulocks_robust_rwlock_write_lock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_write_unlock(lock, other));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void *passes_the_writer_that_waits(void *unused) {
    const struct timespec pause = { 0, 1000000 }, until = late();
    ulocks_member_t *other;
    (void)unused;
    RETURNS(0, ulocks_region_join(region, &other));
    /* An ordinary reader stops for a writer that waits, so this ends when the writer waits. */
    while (ulocks_robust_rwlock_read_trylock(lock, other) == 0) {
        RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, other));
        nanosleep(&pause, NULL);
    }
    RETURNS(EBUSY, ulocks_robust_rwlock_read_trylock(lock, other));
    RETURNS(ETIMEDOUT, ulocks_robust_rwlock_read_lock_until(lock, other, &past));
    RETURNS(0, ulocks_robust_rwlock_urgent_trylock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, other));
    RETURNS(0, ulocks_robust_rwlock_urgent_lock_until(lock, other, &until));
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, other));
    RETURNS(0, ulocks_member_leave(other));
    return NULL;
}

static void urgent_readers_pass_a_writer(void) {
    pthread_t writer, reader;
    RETURNS(0, ulocks_robust_rwlock_read_lock(lock, me));
    CHECK(pthread_create(&writer, NULL, writes, NULL) == 0);
    CHECK(pthread_create(&reader, NULL, passes_the_writer_that_waits, NULL) == 0);
    CHECK(pthread_join(reader, NULL) == 0);
    RETURNS(0, ulocks_robust_rwlock_read_unlock(lock, me));
    CHECK(pthread_join(writer, NULL) == 0);
}

static void bad_calls(void) {
    ulocks_robust_rwlock_t elsewhere;
    memset(&elsewhere, 0, sizeof elsewhere);
    RETURNS(EINVAL, ulocks_robust_rwlock_read_lock_until(lock, me, NULL));
    RETURNS(EINVAL, ulocks_robust_rwlock_urgent_lock_until(lock, me, &bad[0]));
    RETURNS(EINVAL, ulocks_robust_rwlock_write_lock_until(lock, me, &bad[1]));
    RETURNS(EINVAL, ulocks_robust_rwlock_read_lock(&elsewhere, me));
    RETURNS(EINVAL, ulocks_robust_rwlock_write_lock(&elsewhere, me));
    RETURNS(EINVAL, ulocks_robust_rwlock_write_unlock(&elsewhere, me));
    RETURNS(EINVAL, ulocks_robust_rwlock_reset(&elsewhere, me));
    RETURNS(0, ulocks_robust_rwlock_is_locked(lock));
}

int main(void) {
    CHECK(sizeof *lock == 288);
    RETURNS(0, ulocks_region_anonymous(&region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_robust_rwlock(region, me, "table", &lock));
    RETURNS(0, ulocks_region_bytes(region, me, "data", 2 * sizeof *data, (void **)&data));
    RETURNS(EPROTO, ulocks_region_robust_rwlock(region, me, "data", &lock));
    RETURNS(EINVAL, ulocks_region_robust_rwlock(region, me, "table", NULL));
    two_processes_read_and_write();
    deaths();
    held_by_another();
    urgent_readers_pass_a_writer();
    bad_calls();
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
    return 0;
}
