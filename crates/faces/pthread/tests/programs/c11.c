// The locks of threads.h beside those of pthread.h.
#include "case.h"
#include <threads.h>

static mtx_t mutex;
static cnd_t condition;
static pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;
static long count, count_beside;
static int turn;

static const char *result(int code) {
    return code == thrd_success    ? "success"
           : code == thrd_busy     ? "busy"
           : code == thrd_timedout ? "timed out"
           : code == thrd_nomem    ? "no memory"
                                   : "error";
}

static int increment(void *unused) {
    (void)unused;
    for (int round = 0; round < 3000; ++round) {
        mtx_lock(&mutex);
        count += 1;
        mtx_unlock(&mutex);
        pthread_mutex_lock(&beside);
        count_beside += 1;
        pthread_mutex_unlock(&beside);
    }
    return 0;
}

static int take_turns(void *argument) {
    int mine = *(int *)argument;
    for (int round = 0; round < 500; ++round) {
        mtx_lock(&mutex);
        while (turn != mine) {
            cnd_wait(&condition, &mutex);
        }
        turn = 1 - mine;
        cnd_broadcast(&condition);
        mtx_unlock(&mutex);
    }
    return 0;
}

static int try_it(void *argument) {
    int code = mtx_trylock(argument);
    if (code == thrd_success) {
        mtx_unlock(argument);
    }
    return code;
}

static int join_c11(thrd_t thread) {
    int code = -1;
    thrd_join(thread, &code);
    return code;
}

int main(void) {
    static const int TYPES[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive};
    for (int type = 0; type < 4; ++type) {
        printf("type %d, init: %s\n", type, result(mtx_init(&mutex, TYPES[type])));
        printf("type %d, lock: %s\n", type, result(mtx_lock(&mutex)));
        thrd_t thread;
        thrd_create(&thread, try_it, &mutex);
        printf("type %d, try by another thread: %s\n", type, result(join_c11(thread)));
        struct timespec past = from_now(CLOCK_REALTIME, -100);
        if ((TYPES[type] & mtx_recursive) != 0) {
            printf("type %d, lock again: %s\n", type, result(mtx_lock(&mutex)));
            mtx_unlock(&mutex);
        } else if (TYPES[type] == mtx_timed) {
            printf("type %d, timed lock: %s\n", type, result(mtx_timedlock(&mutex, &past)));
        }
        printf("type %d, unlock: %s\n", type, result(mtx_unlock(&mutex)));
        thrd_t threads[4];
        count = count_beside = 0;
        for (int nth = 0; nth < 4; ++nth) {
            thrd_create(&threads[nth], increment, NULL);
        }
        for (int nth = 0; nth < 4; ++nth) {
            join_c11(threads[nth]);
        }
        printf("type %d, counts: %ld %ld\n", type, count, count_beside);
        printf("type %d, condition: %s\n", type, result(cnd_init(&condition)));
        mtx_lock(&mutex);
        printf("type %d, timed wait: %s\n", type, result(cnd_timedwait(&condition, &mutex, &past)));
        mtx_unlock(&mutex);
        int sides[] = {0, 1};
        turn = 0;
        thrd_create(&threads[0], take_turns, &sides[0]);
        thrd_create(&threads[1], take_turns, &sides[1]);
        join_c11(threads[0]);
        join_c11(threads[1]);
        printf("type %d, turns end at: %d\n", type, turn);
        cnd_destroy(&condition);
        mtx_destroy(&mutex);
    }
    return finish();
}
