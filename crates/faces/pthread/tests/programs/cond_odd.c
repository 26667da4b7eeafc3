// Waits that programs should not make and that glibc bears: with a recursive mutex that stays held, with
// a mutex that is not held, and with a mutex that its last user frees.
#include "case.h"

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int is_set;

static void *set_and_signal(void *broadcast) {
    sleep_ms(30);
    atomic_store(&is_set, 1);
    NEED(broadcast ? pthread_cond_broadcast(&condition) : pthread_cond_signal(&condition));
    return NULL;
}

static void recursive_that_stays_held(bool broadcast, bool timed) {
    const struct timespec deadline = far(CLOCK_REALTIME);
    NEED(pthread_mutex_lock(&recursive));
    NEED(pthread_mutex_lock(&recursive));
    atomic_store(&is_set, 0);
    pthread_t thread = start(set_and_signal, broadcast ? &condition : NULL);
    int error = 0;
    while (!atomic_load(&is_set) && error == 0) {
        error = timed ? pthread_cond_timedwait(&condition, &recursive, &deadline)
                      : pthread_cond_wait(&condition, &recursive);
    }
    show(error, "a recursive mutex locked twice, broadcast %d, timed %d", broadcast, timed);
    show(pthread_mutex_unlock(&recursive), "first unlock");
    show(pthread_mutex_unlock(&recursive), "second unlock");
    show(pthread_mutex_unlock(&recursive), "third unlock");
    join(thread);
}

static void not_held(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread = start(set_and_signal, NULL);
    const char *choice = getenv("ULOCKS_MUTEX");
    int error = pthread_cond_wait(&condition, &mutex);
    // A PiMutex is unlocked by its owner only, and its documentation says so.
    bool is_told = error == EPERM && choice != NULL && strcmp(choice, "pi") == 0;
    show(is_told ? 0 : error, "a normal mutex that is not held");
    show(is_told ? 0 : pthread_mutex_unlock(&mutex), "unlock");
    show(pthread_mutex_trylock(&mutex), "it is free");
    join(thread);
}

static void not_held_but_checked(void) {
    pthread_condattr_t attributes;
    pthread_cond_t shared;
    pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    const struct timespec deadline = from_now(CLOCK_REALTIME, 50);
    NEED(pthread_condattr_init(&attributes));
    NEED(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    NEED(pthread_cond_init(&shared, &attributes));
    show(pthread_cond_timedwait(&shared, &checking, &deadline), "a shared condition, a checking mutex not held");
    show(pthread_mutex_unlock(&checking), "unlock it");
    show(pthread_cond_timedwait(&shared, &recursive, &deadline), "the same with a recursive mutex");
    show(pthread_mutex_unlock(&recursive), "unlock it");
}

struct place {
    pthread_mutex_t mutex;
    int is_set;
};
enum { ROUNDS = 3000 };
static struct place *_Atomic the_place;
static pthread_barrier_t both;

// POSIX lets a waiter free its mutex once no other thread uses that, though the condition is still being destroyed.
static void *wait_and_unmap(void *unused) {
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_barrier_wait(&both);
        struct place *place = the_place;
        NEED(pthread_mutex_lock(&place->mutex));
        while (!place->is_set) {
            NEED(pthread_cond_wait(&condition, &place->mutex));
        }
        NEED(pthread_mutex_unlock(&place->mutex));
        NEED(pthread_mutex_destroy(&place->mutex));
        munmap(place, sizeof *place);
        pthread_barrier_wait(&both);
    }
    return unused;
}

static void destroy_beside_a_mutex_that_goes(void) {
    NEED(pthread_barrier_init(&both, NULL, 2));
    pthread_t thread = start(wait_and_unmap, NULL);
    for (int round = 0; round < ROUNDS; ++round) {
        struct place *place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEED(pthread_mutex_init(&place->mutex, NULL));
        NEED(pthread_cond_init(&condition, NULL));
        the_place = place;
        pthread_barrier_wait(&both);
        for (volatile int spin = 0; spin < round % 7 * 400; ++spin) {
        }
        NEED(pthread_mutex_lock(&place->mutex));
        place->is_set = 1;
        NEED(pthread_mutex_unlock(&place->mutex));
        NEED(pthread_cond_broadcast(&condition));
        NEED(pthread_cond_destroy(&condition));
        pthread_barrier_wait(&both);
    }
    join(thread);
    show_number(ROUNDS, "conditions destroyed while a waiter frees its mutex");
}

// A mutex with which a thread waits is in use, although it is free: also one that the condition variable
// does not know the lock of.
static atomic_int waiter, may_go;

static void *wait_to_go(void *mutex) {
    NEED(pthread_mutex_lock(mutex));
    atomic_store(&waiter, thread_id());
    while (!atomic_load(&may_go)) {
        NEED(pthread_cond_wait(&condition, mutex));
    }
    return (void *)(intptr_t)pthread_mutex_unlock(mutex);
}

static void destroy_what_a_waiter_needs(const char *name, int protocol, int shared) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_setprotocol(&attributes, protocol));
    NEED(pthread_mutexattr_setpshared(&attributes, shared));
    NEED(pthread_mutex_init(&mutex, &attributes));
    atomic_store(&waiter, 0);
    atomic_store(&may_go, 0);
    pthread_t thread = start(wait_to_go, &mutex);
    until_waits(&waiter);
    show(pthread_mutex_destroy(&mutex), "%s, destroy while a thread waits", name);
    NEED(pthread_mutex_lock(&mutex));
    atomic_store(&may_go, 1);
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    show((int)(intptr_t)join(thread), "%s, the waiter", name);
    show(pthread_mutex_destroy(&mutex), "%s, destroy afterwards", name);
}

int main(void) {
    for (int broadcast = 0; broadcast < 2; ++broadcast) {
        recursive_that_stays_held(broadcast, false);
        recursive_that_stays_held(broadcast, true);
    }
    not_held();
    not_held_but_checked();
    destroy_beside_a_mutex_that_goes();
    destroy_what_a_waiter_needs("plain", PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    destroy_what_a_waiter_needs("inherits", PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE);
    destroy_what_a_waiter_needs("shared", PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
    return finish();
}
