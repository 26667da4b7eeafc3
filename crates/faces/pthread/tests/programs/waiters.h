// Threads that wait at the same time: for a mutex, for both sides of a rwlock, for a notification.
#pragma once
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int waiter;
static bool is_set;

static void lock(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
}

static void read_(void) {
    NEED(pthread_rwlock_rdlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
}

static void write_(void) {
    NEED(pthread_rwlock_wrlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
}

static void wait_(void) {
    NEED(pthread_mutex_lock(&mutex));
    while (!is_set) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(pthread_mutex_unlock(&mutex));
}

// The first one comes before the mutex is locked.
static void (*const WAITS[])(void) = {wait_, lock, lock, read_, write_};

// What the thread of that number does.
static inline void wait_as(void *nth) {
    atomic_store(&waiter, thread_id());
    WAITS[(intptr_t)nth]();
}

// Starts a thread for each wait, once the one before it waits, and lets all of them through.
static inline void let_all_wait(void *(*thread)(void *), const pthread_attr_t *attributes) {
    enum { THREADS = sizeof WAITS / sizeof *WAITS };
    pthread_t threads[THREADS];
    alarm(60);
    NEED(pthread_rwlock_wrlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        atomic_store(&waiter, 0);
        NEED(pthread_create(&threads[nth], attributes, thread, (void *)(intptr_t)nth));
        until_waits(&waiter);
        if (nth == 0) {
            NEED(pthread_mutex_lock(&mutex));
        }
    }
    is_set = true;
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_rwlock_unlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
}
