// Threads of OpenMP with named locks, nested locks, critical regions and tasks.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 100000;
    long by_lock = 0, by_nest = 0, by_critical = 0, by_mutex = 0, tasks = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel for num_threads(4) schedule(dynamic, 16)
    for (long round = 0; round < rounds; ++round) {
        omp_set_lock(&lock);
        by_lock += 1;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        by_nest += 1;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
#pragma omp critical
        by_critical += round;
        pthread_mutex_lock(&mutex);
        by_mutex += round % 7;
        pthread_mutex_unlock(&mutex);
    }
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int nth = 0; nth < 2000; ++nth) {
#pragma omp task shared(tasks)
        {
#pragma omp atomic
            tasks += nth;
        }
    }
    printf("%ld %ld %ld %ld %ld\n", by_lock, by_nest, by_critical, by_mutex, tasks);
    return 0;
}
