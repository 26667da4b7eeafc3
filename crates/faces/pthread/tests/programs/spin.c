// Spin locks: results, counts of many threads, and sharing between processes.
#include "case.h"

static int try_and_unlock(void *argument) {
    int error = pthread_spin_trylock(argument);
    return error == 0 ? pthread_spin_unlock(argument) : error;
}

struct counted {
    pthread_spinlock_t lock;
    long count;
};

static void *count(void *argument) {
    struct counted *counted = argument;
    for (int round = 0; round < 2000; ++round) {
        if (round % 8 != 0 || pthread_spin_trylock(&counted->lock) != 0) {
            NEED(pthread_spin_lock(&counted->lock));
        }
        counted->count += 1;
        NEED(pthread_spin_unlock(&counted->lock));
    }
    return NULL;
}

static int count_in_process(void *argument) {
    count(argument);
    return 0;
}

static int holds_and_tries(void *argument) {
    return pthread_spin_trylock(argument);
}

int main(void) {
    for (int shared = 0; shared < 2; ++shared) {
        const char *name = shared ? "shared" : "private";
        struct counted *counted = shared_memory(sizeof *counted);
        show(pthread_spin_init(&counted->lock, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE), "%s, init", name);
        show(on_thread(try_and_unlock, (void *)&counted->lock), "%s, try", name);
        show(pthread_spin_lock(&counted->lock), "%s, lock", name);
        show(pthread_spin_trylock(&counted->lock), "%s, try by the owner", name);
        show(on_thread(holds_and_tries, (void *)&counted->lock), "%s, try by another thread", name);
        show(pthread_spin_unlock(&counted->lock), "%s, unlock", name);
        pthread_t threads[4];
        pid_t child = shared ? start_process(count_in_process, counted) : 0;
        for (int nth = 0; nth < 4; ++nth) {
            threads[nth] = start(count, counted);
        }
        for (int nth = 0; nth < 4; ++nth) {
            join(threads[nth]);
        }
        if (shared) {
            show(join_process(child), "%s, another process", name);
        }
        show_number(counted->count, "%s, increments", name);
        show(pthread_spin_destroy(&counted->lock), "%s, destroy", name);
    }
    return finish();
}
