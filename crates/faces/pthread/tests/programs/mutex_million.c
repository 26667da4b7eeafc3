// A million mutexes, locked by several threads: a lock keeps no memory beside the mutex.
#include "case.h"

enum { COUNT = 1000000, THREADS = 3, SLACK_KB = 8192 };

static pthread_mutex_t *mutexes;
static int *numbers;

static long resident_kb(void) {
    long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    NEED(file == NULL || fscanf(file, "%ld %ld", &all, &resident) != 2 ? EIO : 0);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *lock_each(void *unused) {
    for (int nth = 0; nth < COUNT; ++nth) {
        NEED(pthread_mutex_lock(&mutexes[nth]));
        numbers[nth] += 1;
        NEED(pthread_mutex_unlock(&mutexes[nth]));
    }
    return unused;
}

int main(void) {
    mutexes = malloc(COUNT * sizeof *mutexes);
    numbers = malloc(COUNT * sizeof *numbers);
    memset(numbers, 0, COUNT * sizeof *numbers);
    long before = resident_kb();
    for (int nth = 0; nth < COUNT; ++nth) {
        NEED(pthread_mutex_init(&mutexes[nth], NULL));
    }
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; ++nth) {
        threads[nth] = start(lock_each, NULL);
    }
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    long beyond = resident_kb() - before - (long)(COUNT * sizeof *mutexes / 1024);
    if (beyond > SLACK_KB) {
        fprintf(stderr, "%ld kB beside the mutexes\n", beyond);
    }
    show_number(beyond > SLACK_KB, "memory beside the mutexes");
    int wrong = 0;
    for (int nth = 0; nth < COUNT; ++nth) {
        wrong += numbers[nth] != THREADS;
        NEED(pthread_mutex_destroy(&mutexes[nth]));
    }
    show_number(wrong, "numbers that are wrong");
    finish();
    return 0;
}
