// The handlers of a thread that is cancelled in a wait: in C, in C whose handlers the unwinder
// runs, and in C++. All run, from the innermost to the outermost, and the mutex is free afterwards.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_cond_t shared_condition;
static int is_inside, order, unlocked;

#ifdef __cplusplus
struct At_end {
    const char *name;
    ~At_end() { printf("%s: %d\n", name, ++order); }
};
#endif

static void clean_up(void *name) {
    printf("%s: %d\n", (const char *)name, ++order);
}

static void unlock(void *name) {
    clean_up(name);
    unlocked = pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void wait_inside(pthread_cond_t *waited, int timed) {
    struct timespec far;
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 3600;
    pthread_cleanup_push(clean_up, (void *)"  the handler of the inner function, at");
    is_inside = 1;
    while (is_inside) {
        if (timed) {
            pthread_cond_timedwait(waited, &mutex, &far);
        } else {
            pthread_cond_wait(waited, &mutex);
        }
    }
    pthread_cleanup_pop(0);
}

struct way {
    pthread_cond_t *waited;
    int timed;
};

static void *wait_outside(void *argument) {
    struct way *way = (struct way *)argument;
#ifdef __cplusplus
    At_end outermost{"  the destructor, at"};
#endif
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, (void *)"  the handler of the outer function, at");
    wait_inside(way->waited, way->timed);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(const char *name, pthread_cond_t *waited, int timed, int pause) {
    struct way way = {waited, timed};
    pthread_t thread;
    void *result = NULL;
    printf("%s\n", name);
    is_inside = order = 0;
    unlocked = -1;
    if (pthread_create(&thread, NULL, wait_outside, &way) != 0) {
        printf("no thread\n");
        return;
    }
    for (int inside = 0; !inside;) {
        pthread_mutex_lock(&mutex);
        inside = is_inside;
        pthread_mutex_unlock(&mutex);
    }
    // It has released the mutex, so it sleeps, or is about to.
    usleep((useconds_t)pause);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("  cancelled: %d, the handler's unlock: %d", result == PTHREAD_CANCELED, unlocked);
    int locked = pthread_mutex_trylock(&mutex);
    printf(", trylock afterwards: %d\n", locked);
    if (locked == 0) {
        pthread_mutex_unlock(&mutex);
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared_condition, &attributes);
    cancelled("wait", &condition, 0, 20000);
    cancelled("timedwait", &condition, 1, 20000);
    cancelled("wait for a shared condition", &shared_condition, 0, 20000);
    for (int round = 0; round < 100; ++round) {
        cancelled("wait, cancelled at any moment", &condition, round % 2, round);
    }
    printf("end\n");
    return 0;
}
