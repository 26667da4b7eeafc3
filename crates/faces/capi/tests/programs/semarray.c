/* ulocks_semarray_t. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 3000 };

static ulocks_semarray_t *array;
static int inside;

static void value_is(uint32_t index, uint32_t expected) {
    uint32_t value = UINT32_MAX;
    RETURNS(0, ulocks_semarray_value(array, index, &value));
    CHECK(value == expected);
}

/* Sleeps until so many sets wait at semaphore 0. */
static void wait_for_waiters(uint32_t for_increase, uint32_t for_zero) {
    const struct timespec pause = { 0, 1000000 };
    for (;;) {
        uint32_t increase, zero;
        RETURNS(0, ulocks_semarray_waiters(array, 0, &increase, &zero));
        if (increase == for_increase && zero == for_zero)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Semaphore 0 is a lock by `wait for zero, add one`. */
static void *count(void *unused) {
    const ulocks_semop_t lock[] = { { 0, 0, 0 }, { 0, 1, 0 } };
    const ulocks_semop_t unlock[] = { { 0, -1, ULOCKS_SEMOP_NOWAIT } };
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        if (round % 3 == 0)
            RETURNS(0, ulocks_semarray_apply_until(array, lock, 2, &until));
        else if (round % 3 == 1 || ulocks_semarray_tryapply(array, lock, 2) != 0)
            RETURNS(0, ulocks_semarray_apply(array, lock, 2));
        CHECK(++inside == 1);
        inside--;
        if (round % 2 == 0)
            RETURNS(0, ulocks_semarray_apply(array, unlock, 1));
        else
            RETURNS(0, ulocks_semarray_give_back(array, lock, 2));
    }
    return NULL;
}

static void sets_exclude(const ulocks_semarray_options_t *options) {
    pthread_t threads[THREADS];
    RETURNS(0, ulocks_semarray_create(1, NULL, options, &array));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    value_is(0, 0);
    RETURNS(0, ulocks_semarray_destroy(array));
}

static void a_set_is_all_or_nothing(void) {
    const uint32_t values[] = { 1, 0, 7 };
    uint32_t found[3];
    RETURNS(0, ulocks_semarray_create(3, values, NULL, &array));
    RETURNS(3, ulocks_semarray_count(array));

    const ulocks_semop_t both[] = { { 0, -1, 0 }, { 1, -1, 0 } };
    const struct timespec soon = after(3);
    RETURNS(EBUSY, ulocks_semarray_tryapply(array, both, 2));
    RETURNS(ETIMEDOUT, ulocks_semarray_apply_until(array, both, 2, &past));
    RETURNS(ETIMEDOUT, ulocks_semarray_apply_until(array, both, 2, &soon));
    RETURNS(ETIMEDOUT, ulocks_semarray_apply_interruptible(array, both, 2, &past));
    const ulocks_semop_t no_wait[] = { { 0, -1, 0 }, { 1, -1, ULOCKS_SEMOP_NOWAIT } };
    RETURNS(EBUSY, ulocks_semarray_apply(array, no_wait, 2));
    RETURNS(0, ulocks_semarray_values(array, 3, found));
    CHECK(memcmp(found, values, sizeof values) == 0);

    RETURNS(0, ulocks_semarray_set(array, 1, 2));
    RETURNS(0, ulocks_semarray_apply(array, both, 2));
    value_is(0, 0);
    value_is(1, 1);
    RETURNS(0, ulocks_semarray_give_back(array, both, 2));
    value_is(0, 1);
    value_is(1, 2);
    RETURNS(0, ulocks_semarray_set_all(array, 3, values));
    RETURNS(0, ulocks_semarray_values(array, 3, found));
    CHECK(memcmp(found, values, sizeof values) == 0);

    /* More than eight operations: each sees what the earlier ones did. */
    ulocks_semop_t many[12];
    for (int i = 0; i < 12; i++)
        many[i] = (ulocks_semop_t){ 1, i < 6 ? 2 : -2, 0 };
    RETURNS(0, ulocks_semarray_apply_interruptible(array, many, 12, NULL));
    value_is(1, 0);
    RETURNS(0, ulocks_semarray_destroy(array));
}

static void errors(void) {
    const ulocks_semop_t far[] = { { 2, 1, 0 } }, over[] = { { 0, 5, 0 }, { 1, 6, 0 } };
    const ulocks_semop_t least[] = { { 0, INT32_MIN, 0 } }, flagged[] = { { 0, 1, 2 } };
    const ulocks_semop_t one[] = { { 0, 1, 0 } };
    const ulocks_semop_t three[] = { { 0, 1, 0 }, { 0, 1, 0 }, { 0, 1, 0 } };
    const uint32_t values[] = { 5, 6, 7 };
    ulocks_semarray_options_t options = { 5, 2, ULOCKS_SEMARRAY_STRICT, 0, 1000000 };
    uint32_t value, found[3];

    CHECK(sizeof(ulocks_semop_t) == 12 && sizeof options == 24);
    RETURNS(EINVAL, ulocks_semarray_create(2, NULL, NULL, NULL));
    RETURNS(EINVAL, ulocks_semarray_create(ULOCKS_SEMARRAY_MOST + 1u, NULL, NULL, &array));
    RETURNS(ERANGE, ulocks_semarray_create(2, values, &options, &array));
    options.fairness = 2;
    RETURNS(EINVAL, ulocks_semarray_create(2, NULL, &options, &array));
    options.fairness = ULOCKS_SEMARRAY_BARGING;
    options.reserved = 1;
    RETURNS(EINVAL, ulocks_semarray_create(2, NULL, &options, &array));
    options.reserved = 0;
    options.limit = 134217728;
    RETURNS(EINVAL, ulocks_semarray_create(2, NULL, &options, &array));
    options.limit = 5;
    RETURNS(0, ulocks_semarray_create(2, NULL, &options, &array));

    RETURNS(EFBIG, ulocks_semarray_apply(array, far, 1));
    RETURNS(ERANGE, ulocks_semarray_apply(array, over, 2));
    RETURNS(ERANGE, ulocks_semarray_tryapply(array, least, 1));
    RETURNS(EINVAL, ulocks_semarray_apply(array, flagged, 1));
    RETURNS(EINVAL, ulocks_semarray_give_back(array, flagged, 1));
    RETURNS(E2BIG, ulocks_semarray_apply(array, three, 3));
    RETURNS(E2BIG, ulocks_semarray_tryapply(array, three, SIZE_MAX));
    RETURNS(EINVAL, ulocks_semarray_apply(array, NULL, 1));
    RETURNS(0, ulocks_semarray_apply(array, NULL, 0));
    RETURNS(EINVAL, ulocks_semarray_apply_until(array, one, 1, NULL));
    RETURNS(EINVAL, ulocks_semarray_apply_until(array, one, 1, &bad[0]));
    RETURNS(EINVAL, ulocks_semarray_apply_interruptible(array, one, 1, &bad[1]));
    value_is(0, 0);

    RETURNS(EFBIG, ulocks_semarray_value(array, 2, &value));
    RETURNS(EINVAL, ulocks_semarray_value(array, 0, NULL));
    RETURNS(EINVAL, ulocks_semarray_values(array, 3, found));
    RETURNS(EINVAL, ulocks_semarray_values(array, 2, NULL));
    RETURNS(EFBIG, ulocks_semarray_set(array, 2, 0));
    RETURNS(ERANGE, ulocks_semarray_set(array, 0, 6));
    RETURNS(ERANGE, ulocks_semarray_set_all(array, 2, values));
    RETURNS(EINVAL, ulocks_semarray_set_all(array, 3, values));
    RETURNS(EINVAL, ulocks_semarray_set_all(array, SIZE_MAX, values));
    RETURNS(EINVAL, ulocks_semarray_set_all(array, 2, NULL));
    RETURNS(EFBIG, ulocks_semarray_waiters(array, 2, &value, found));
    RETURNS(EINVAL, ulocks_semarray_waiters(array, 0, &value, NULL));
    RETURNS(0, ulocks_semarray_destroy(array));
    RETURNS(0, ulocks_semarray_destroy(NULL));
}

static const ulocks_semop_t take[] = { { 0, -1, 0 } }, zero[] = { { 0, 0, 0 } };

static void *is_interrupted(void *unused) {
    const struct timespec until = late();
    (void)unused;
    RETURNS(EINTR, ulocks_semarray_apply_interruptible(array, take, 1, &until));
    return NULL;
}

static void *waits_for_zero(void *unused) {
    (void)unused;
    RETURNS(0, ulocks_semarray_apply(array, zero, 1));
    return NULL;
}

static void *sees_it_closed(void *unused) {
    (void)unused;
    RETURNS(EIDRM, ulocks_semarray_apply(array, take, 1));
    return NULL;
}

static void handler(int unused) {
    (void)unused;
}

static void waits_end(void) {
    struct sigaction action;
    pthread_t thread;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    RETURNS(0, ulocks_semarray_create(1, NULL, NULL, &array));
    RETURNS(0, ulocks_semarray_is_closed(array));

    CHECK(pthread_create(&thread, NULL, is_interrupted, NULL) == 0);
    wait_for_waiters(1, 0);
    for (int waits = 1; waits;) {
        uint32_t increase, none;
        const struct timespec pause = { 0, 1000000 };
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
        nanosleep(&pause, NULL);
        RETURNS(0, ulocks_semarray_waiters(array, 0, &increase, &none));
        waits = increase != 0;
    }
    CHECK(pthread_join(thread, NULL) == 0);

    RETURNS(0, ulocks_semarray_set(array, 0, 1));
    CHECK(pthread_create(&thread, NULL, waits_for_zero, NULL) == 0);
    wait_for_waiters(0, 1);
    RETURNS(0, ulocks_semarray_apply(array, take, 1));
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(pthread_create(&thread, NULL, sees_it_closed, NULL) == 0);
    wait_for_waiters(1, 0);
    RETURNS(0, ulocks_semarray_close(array));
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(1, ulocks_semarray_is_closed(array));
    RETURNS(EIDRM, ulocks_semarray_set(array, 0, 1));
    RETURNS(EIDRM, ulocks_semarray_tryapply(array, zero, 1));
    RETURNS(0, ulocks_semarray_destroy(array));
}

int main(void) {
    const ulocks_semarray_options_t strict = { 0, 0, ULOCKS_SEMARRAY_STRICT, 0, 100000 };
    sets_exclude(NULL);
    sets_exclude(&strict);
    a_set_is_all_or_nothing();
    errors();
    waits_end();
    return 0;
}
