/* ulocks_shared_pi_mutex_t, and its condition variable, in one process and between two. */

#define MUTEX ulocks_shared_pi_mutex
#define NOTIFY(operation, cond, mutex) FN(_cond##operation)(cond, mutex)
#define RELOCK EDEADLK
#include "mutex.h"
#include "process.h"

static ulocks_shared_pi_mutex_t left = ULOCKS_MUTEX_INIT;

static void *is_no_owner(void *unused) {
    (void)unused;
    RETURNS(EPERM, ulocks_shared_pi_mutex_unlock(&global));
    RETURNS(EPERM, ulocks_shared_pi_mutex_cond_wait(&changed, &global));
    RETURNS(EPERM, ulocks_shared_pi_mutex_cond_wait_until(&changed, &global, &past));
    return NULL;
}

static void only_the_owner_unlocks(void) {
    pthread_t thread;
    RETURNS(EPERM, ulocks_shared_pi_mutex_unlock(&global));
    RETURNS(0, ulocks_shared_pi_mutex_lock(&global));
    RETURNS(EDEADLK, ulocks_shared_pi_mutex_lock(&global));
    CHECK(pthread_create(&thread, NULL, is_no_owner, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(1, ulocks_shared_pi_mutex_is_locked(&global));
    RETURNS(0, ulocks_shared_pi_mutex_unlock(&global));
}

static void *ends_as_the_owner(void *unused) {
    (void)unused;
    RETURNS(0, ulocks_shared_pi_mutex_lock(&left));
    return NULL;
}

static void an_owner_that_has_ended(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ends_as_the_owner, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(ENOTRECOVERABLE, ulocks_shared_pi_mutex_lock(&left));
    RETURNS(EBUSY, ulocks_shared_pi_mutex_trylock(&left));
}

int main(void) {
    all_cases();
    between_processes();
    only_the_owner_unlocks();
    an_owner_that_has_ended();
    return 0;
}
