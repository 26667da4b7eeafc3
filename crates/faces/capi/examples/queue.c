/* A queue with room for eight numbers, two producers and two consumers: a mutex and two condition
 * variables. */

#include "ulocks.h"
#include <pthread.h>
#include <stdio.h>

enum { ROOM = 8, NUMBERS = 10000 };

static ulocks_mutex_t mutex = ULOCKS_MUTEX_INIT;
static ulocks_mutex_cond_t has_room = ULOCKS_COND_INIT;
static ulocks_mutex_cond_t has_numbers = ULOCKS_COND_INIT;
static int numbers[ROOM];
static unsigned first, count;

static void put(int number) {
    ulocks_mutex_lock(&mutex);
    while (count == ROOM)
        ulocks_mutex_cond_wait(&has_room, &mutex);
    numbers[(first + count++) % ROOM] = number;
    ulocks_mutex_unlock(&mutex);
    ulocks_mutex_cond_signal(&has_numbers);
}

static int take(void) {
    ulocks_mutex_lock(&mutex);
    while (count == 0)
        ulocks_mutex_cond_wait(&has_numbers, &mutex);
    const int number = numbers[first];
    first = (first + 1) % ROOM;
    count--;
    ulocks_mutex_unlock(&mutex);
    ulocks_mutex_cond_signal(&has_room);
    return number;
}

static void *produce(void *unused) {
    (void)unused;
    for (int number = 1; number <= NUMBERS; number++)
        put(number);
    return NULL;
}

static void *consume(void *sum) {
    for (int i = 0; i < NUMBERS; i++)
        *(long *)sum += take();
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    long sums[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, produce, NULL) != 0)
            return 1;
        if (pthread_create(&threads[i + 2], NULL, consume, &sums[i]) != 0)
            return 1;
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", sums[0] + sums[1]);
    return sums[0] + sums[1] == (long)NUMBERS * (NUMBERS + 1) ? 0 : 1;
}
