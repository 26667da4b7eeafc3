/* No function is a cancellation point. A thread with a pending cancellation calls those that wait,
 * and those that ask the system for files or memory. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static int reached;

/* The thread's states of cancellation after the calls. It cannot print what is wrong: that is a
 * cancellation point. */
static int states[2];

static void of_a_region(ulocks_region_t *region) {
    ulocks_member_t *me;
    ulocks_robust_mutex_t *mutex;
    ulocks_robust_cond_t *changed;
    void *bytes;
    const struct timespec soon = after(5);
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_bytes(region, me, "bytes", 8, &bytes));
    RETURNS(0, ulocks_region_robust_mutex(region, me, "mutex", &mutex));
    RETURNS(0, ulocks_region_robust_cond(region, me, "changed", &changed));
    RETURNS(0, ulocks_robust_mutex_lock(mutex, me));
    RETURNS(ETIMEDOUT, ulocks_robust_mutex_cond_wait_until(changed, mutex, me, &soon));
    RETURNS(0, ulocks_robust_mutex_unlock(mutex, me));
    RETURNS(EBUSY, ulocks_region_close(region));
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
}

static void of_regions(void) {
    ulocks_region_t *region, *again;
    RETURNS(ENOENT, ulocks_region_open(path, &region));
    RETURNS(0, ulocks_region_create(path, 0600, &region));
    RETURNS(EEXIST, ulocks_region_create(path, 0600, &again));
    RETURNS(0, ulocks_region_from_fd(ulocks_region_fd(region), &again));
    RETURNS(0, ulocks_region_close(again));
    of_a_region(region);
    RETURNS(0, ulocks_region_open(path, &region));
    of_a_region(region);
    CHECK(unlink(path) == 0);
    RETURNS(0, ulocks_region_create_or_open(path, 0600, &region));
    of_a_region(region);
    CHECK(unlink(path) == 0);
    RETURNS(0, ulocks_region_anonymous(&region));
    of_a_region(region);
}

static ulocks_mutex_t mutex;
static ulocks_mutex_cond_t changed;
static ulocks_pi_mutex_t pi;
static ulocks_rwlock_t rwlock;
static ulocks_semaphore_t semaphore;

/* The main thread holds the locks. */
static void of_locks(void) {
    const struct timespec soon = after(5);
    ulocks_mutex_t mine = ULOCKS_MUTEX_INIT;
    ulocks_semarray_t *array;
    const ulocks_semop_t take = { .index = 0, .change = -1 };
    RETURNS(ETIMEDOUT, ulocks_mutex_lock_until(&mutex, &soon));
    RETURNS(0, ulocks_mutex_lock(&mine));
    RETURNS(ETIMEDOUT, ulocks_mutex_cond_wait_until(&changed, &mine, &soon));
    RETURNS(0, ulocks_mutex_unlock(&mine));
    RETURNS(ETIMEDOUT, ulocks_pi_mutex_lock_until(&pi, &soon));
    RETURNS(ETIMEDOUT, ulocks_rwlock_read_lock_until(&rwlock, &soon));
    RETURNS(ETIMEDOUT, ulocks_rwlock_write_lock_until(&rwlock, &soon));
    RETURNS(ETIMEDOUT, ulocks_semaphore_acquire_until(&semaphore, 1, &soon));
    RETURNS(0, ulocks_semarray_create(1, NULL, NULL, &array));
    RETURNS(ETIMEDOUT, ulocks_semarray_apply_until(array, &take, 1, &soon));
    RETURNS(0, ulocks_semarray_destroy(array));
}

static void *cancelled(void *unused) {
    (void)unused;
    CHECK(pthread_cancel(pthread_self()) == 0);
    of_locks();
    of_regions();
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &states[0]) == 0);
    of_regions();
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &states[1]) == 0);
    reached = 1;
    pthread_testcancel();
    reached = 2;
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    snprintf(path, sizeof path, "/tmp/ulocks-cancellation-%d", (int)getpid());
    RETURNS(0, ulocks_mutex_lock(&mutex));
    RETURNS(0, ulocks_pi_mutex_lock(&pi));
    RETURNS(0, ulocks_rwlock_write_lock(&rwlock));
    CHECK(pthread_create(&thread, NULL, cancelled, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && reached == 1);
    CHECK(states[0] == PTHREAD_CANCEL_ENABLE);
    CHECK(states[1] == PTHREAD_CANCEL_DISABLE);
    return 0;
}
