/* ulocks_shared_rwlock_t, in one process and between two. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READERS = 3, WRITERS = 2, ROUNDS = 10000 };

static ulocks_shared_rwlock_t lock = ULOCKS_RWLOCK_INIT;
/* A writer changes both; a reader sees them the same. */
static int first, second;

static void *writes(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        switch (round % 3) {
        case 0:
            RETURNS(0, ulocks_shared_rwlock_write_lock(&lock));
            break;
        case 1:
            RETURNS(0, ulocks_shared_rwlock_write_lock_until(&lock, &until));
            break;
        default:
            RETURNS(0, ulocks_shared_rwlock_upgradable_lock(&lock));
            CHECK(first == second);
            if (round % 2 == 0)
                RETURNS(0, ulocks_shared_rwlock_upgrade(&lock));
            else
                RETURNS(0, ulocks_shared_rwlock_upgrade_until(&lock, &until));
        }
        first++;
        second++;
        const int mine = first;
        if (round % 5 == 0) {
            RETURNS(0, ulocks_shared_rwlock_downgrade(&lock));
            CHECK(first == mine && second == mine);
            RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));
        } else if (round % 5 == 1) {
            RETURNS(0, ulocks_shared_rwlock_downgrade_to_upgradable(&lock));
            CHECK(first == mine && second == mine);
            RETURNS(0, ulocks_shared_rwlock_upgradable_unlock(&lock));
        } else {
            RETURNS(0, ulocks_shared_rwlock_write_unlock(&lock));
        }
    }
    return NULL;
}

static void *reads(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        switch (round % 4) {
        case 0:
            RETURNS(0, ulocks_shared_rwlock_read_lock(&lock));
            CHECK(first == second);
            /* A later class may be read by the same thread, whatever writers wait. */
            RETURNS(0, ulocks_shared_rwlock_urgent_lock(&lock));
            RETURNS(0, ulocks_shared_rwlock_nested_lock(&lock));
            RETURNS(0, ulocks_shared_rwlock_nested_unlock(&lock));
            RETURNS(0, ulocks_shared_rwlock_urgent_unlock(&lock));
            RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));
            break;
        case 1:
            RETURNS(0, ulocks_shared_rwlock_read_lock_until(&lock, &until));
            CHECK(first == second);
            RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));
            break;
        case 2:
            RETURNS(0, ulocks_shared_rwlock_urgent_lock_until(&lock, &until));
            CHECK(first == second);
            RETURNS(0, ulocks_shared_rwlock_urgent_unlock(&lock));
            break;
        default:
            RETURNS(0, ulocks_shared_rwlock_nested_lock_until(&lock, &until));
            CHECK(first == second);
            RETURNS(0, ulocks_shared_rwlock_nested_unlock(&lock));
        }
    }
    return NULL;
}

static void exclusion(void) {
    pthread_t threads[READERS + WRITERS];
    for (int i = 0; i < READERS + WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, i < READERS ? reads : writes, NULL) == 0);
    for (int i = 0; i < READERS + WRITERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(first == WRITERS * ROUNDS && second == first);
    RETURNS(0, ulocks_shared_rwlock_is_locked(&lock));
}

static void *beside_a_writer(void *unused) {
    (void)unused;
    const struct timespec soon = after(3);
    RETURNS(EBUSY, ulocks_shared_rwlock_read_trylock(&lock));
    RETURNS(EBUSY, ulocks_shared_rwlock_urgent_trylock(&lock));
    RETURNS(EBUSY, ulocks_shared_rwlock_nested_trylock(&lock));
    RETURNS(EBUSY, ulocks_shared_rwlock_write_trylock(&lock));
    RETURNS(EBUSY, ulocks_shared_rwlock_upgradable_trylock(&lock));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_read_lock_until(&lock, &soon));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_urgent_lock_until(&lock, &past));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_nested_lock_until(&lock, &past));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_write_lock_until(&lock, &soon));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_upgradable_lock_until(&lock, &soon));
    return NULL;
}

static void *beside_a_reader(void *unused) {
    (void)unused;
    const struct timespec soon = after(3);
    RETURNS(EBUSY, ulocks_shared_rwlock_write_trylock(&lock));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_write_lock_until(&lock, &soon));
    RETURNS(0, ulocks_shared_rwlock_read_trylock(&lock));
    RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));
    RETURNS(0, ulocks_shared_rwlock_urgent_trylock(&lock));
    RETURNS(0, ulocks_shared_rwlock_urgent_unlock(&lock));
    RETURNS(0, ulocks_shared_rwlock_nested_trylock(&lock));
    RETURNS(0, ulocks_shared_rwlock_nested_unlock(&lock));
    RETURNS(0, ulocks_shared_rwlock_upgradable_trylock(&lock));
    RETURNS(EBUSY, ulocks_shared_rwlock_tryupgrade(&lock));
    RETURNS(ETIMEDOUT, ulocks_shared_rwlock_upgrade_until(&lock, &soon));
    RETURNS(EINVAL, ulocks_shared_rwlock_upgrade_until(&lock, NULL));
    RETURNS(0, ulocks_shared_rwlock_is_write_locked(&lock));
    RETURNS(0, ulocks_shared_rwlock_upgradable_downgrade(&lock));
    RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));
    return NULL;
}

static void in_another_thread(void *(*cases)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cases, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void bad_moments(void) {
    for (int i = 0; i < 3; i++) {
        const struct timespec *moment = i < 2 ? &bad[i] : NULL;
        RETURNS(EINVAL, ulocks_shared_rwlock_read_lock_until(&lock, moment));
        RETURNS(EINVAL, ulocks_shared_rwlock_urgent_lock_until(&lock, moment));
        RETURNS(EINVAL, ulocks_shared_rwlock_nested_lock_until(&lock, moment));
        RETURNS(EINVAL, ulocks_shared_rwlock_write_lock_until(&lock, moment));
        RETURNS(EINVAL, ulocks_shared_rwlock_upgradable_lock_until(&lock, moment));
    }
    RETURNS(0, ulocks_shared_rwlock_is_locked(&lock));
}

struct shared {
    ulocks_shared_rwlock_t lock;
    int first, second;
};

static void read_and_write(struct shared *shared) {
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0) {
            RETURNS(0, ulocks_shared_rwlock_write_lock(&shared->lock));
            shared->first++;
            shared->second++;
            RETURNS(0, ulocks_shared_rwlock_write_unlock(&shared->lock));
        } else {
            RETURNS(0, ulocks_shared_rwlock_read_lock(&shared->lock));
            CHECK(shared->first == shared->second);
            RETURNS(0, ulocks_shared_rwlock_read_unlock(&shared->lock));
        }
    }
}

static void between_processes(void) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    const pid_t child = fork();
    CHECK(child >= 0);
    read_and_write(shared);
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(shared->first == ROUNDS && shared->second == ROUNDS);
    CHECK(munmap(shared, sizeof *shared) == 0);
}

int main(void) {
    between_processes();
    exclusion();
    bad_moments();

    RETURNS(0, ulocks_shared_rwlock_write_trylock(&lock));
    RETURNS(1, ulocks_shared_rwlock_is_locked(&lock));
    RETURNS(1, ulocks_shared_rwlock_is_write_locked(&lock));
    in_another_thread(beside_a_writer);
    RETURNS(0, ulocks_shared_rwlock_downgrade(&lock));
    RETURNS(0, ulocks_shared_rwlock_is_write_locked(&lock));
    in_another_thread(beside_a_reader);
    RETURNS(0, ulocks_shared_rwlock_read_unlock(&lock));

    RETURNS(0, ulocks_shared_rwlock_upgradable_lock_until(&lock, &past));
    RETURNS(0, ulocks_shared_rwlock_tryupgrade(&lock));
    RETURNS(1, ulocks_shared_rwlock_is_write_locked(&lock));
    in_another_thread(beside_a_writer);
    RETURNS(0, ulocks_shared_rwlock_write_unlock(&lock));
    RETURNS(0, ulocks_shared_rwlock_is_locked(&lock));
    return 0;
}
