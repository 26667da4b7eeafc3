/* A table that is read by packets and by reports. A report may take long; a packet must not wait
 * for it, not even if a writer does. */

#include "ulocks.h"
#include <pthread.h>
#include <stdio.h>

enum { ROUTES = 64, PACKETS = 20000, REPORTS = 200, CHANGES = 200 };

static ulocks_rwlock_t lock = ULOCKS_RWLOCK_INIT;
static int version[ROUTES];

static void *forward(void *lost) {
    for (int packet = 0; packet < PACKETS; packet++) {
        ulocks_rwlock_urgent_lock(&lock);
        if (version[packet % ROUTES] < 0)
            ++*(int *)lost;
        ulocks_rwlock_urgent_unlock(&lock);
    }
    return NULL;
}

static void *report(void *mixed) {
    for (int i = 0; i < REPORTS; i++) {
        ulocks_rwlock_read_lock(&lock);
        for (int route = 1; route < ROUTES; route++)
            *(int *)mixed += version[route] != version[0];
        ulocks_rwlock_read_unlock(&lock);
    }
    return NULL;
}

static void *change(void *refused) {
    for (int i = 0; i < CHANGES; i++) {
        if (ulocks_rwlock_write_lock(&lock) != 0) {
            ++*(int *)refused;
            continue;
        }
        for (int route = 0; route < ROUTES; route++)
            version[route]++;
        ulocks_rwlock_write_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    void *(*const work[])(void *) = { forward, report, change };
    pthread_t threads[3];
    int wrong[3] = { 0, 0, 0 };
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work[i], &wrong[i]) != 0)
            return 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("version %d; lost %d, mixed %d, refused %d\n", version[0], wrong[0], wrong[1], wrong[2]);
    return version[0] == CHANGES && wrong[0] + wrong[1] + wrong[2] == 0 ? 0 : 1;
}
