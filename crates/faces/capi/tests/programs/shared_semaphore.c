/* ulocks_shared_semaphore_t, in one process and between two. */

#include "check.h"
#include "ulocks.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 5000, MOST = 1073741823 };

static ulocks_shared_semaphore_t two = ULOCKS_SEMAPHORE_INIT(2);
static ulocks_shared_semaphore_t none;
static int inside;

static void *enter(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec until = late();
        if (round % 2 == 0)
            RETURNS(0, ulocks_shared_semaphore_acquire(&two, 1));
        else
            RETURNS(0, ulocks_shared_semaphore_acquire_until(&two, 1, &until));
        CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= 2);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        RETURNS(0, ulocks_shared_semaphore_release(&two, 1));
    }
    return NULL;
}

static void *releases_three(void *unused) {
    (void)unused;
    RETURNS(0, ulocks_shared_semaphore_release(&none, 1));
    RETURNS(0, ulocks_shared_semaphore_release(&none, 2));
    return NULL;
}

/* Two processes pass a ball back and forth. */
static void between_processes(void) {
    ulocks_shared_semaphore_t *balls = mmap(NULL, 2 * sizeof *balls, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(balls != MAP_FAILED);
    const pid_t child = fork();
    CHECK(child >= 0);
    const int mine = child == 0;
    for (int round = 0; round < ROUNDS; round++) {
        RETURNS(0, ulocks_shared_semaphore_release(&balls[mine], 1));
        RETURNS(0, ulocks_shared_semaphore_acquire(&balls[!mine], 1));
    }
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    RETURNS(0, ulocks_shared_semaphore_available(&balls[0]));
    RETURNS(0, ulocks_shared_semaphore_available(&balls[1]));
    CHECK(munmap(balls, 2 * sizeof *balls) == 0);
}

int main(void) {
    between_processes();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, enter, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    RETURNS(2, ulocks_shared_semaphore_available(&two));

    RETURNS(EBUSY, ulocks_shared_semaphore_tryacquire(&two, 3));
    RETURNS(0, ulocks_shared_semaphore_tryacquire(&two, 2));
    RETURNS(EBUSY, ulocks_shared_semaphore_tryacquire(&two, 1));
    RETURNS(0, ulocks_shared_semaphore_acquire(&two, 0));
    const struct timespec soon = after(3);
    RETURNS(ETIMEDOUT, ulocks_shared_semaphore_acquire_until(&two, 1, &past));
    RETURNS(ETIMEDOUT, ulocks_shared_semaphore_acquire_until(&two, 1, &soon));
    RETURNS(EINVAL, ulocks_shared_semaphore_acquire_until(&two, 1, NULL));
    RETURNS(EINVAL, ulocks_shared_semaphore_acquire_until(&two, 1, &bad[0]));
    RETURNS(EINVAL, ulocks_shared_semaphore_acquire_until(&two, MOST + 1u, &soon));
    RETURNS(EINVAL, ulocks_shared_semaphore_acquire(&two, MOST + 1u));
    RETURNS(EINVAL, ulocks_shared_semaphore_tryacquire(&two, UINT32_MAX));

    RETURNS(0, ulocks_shared_semaphore_available(&none));
    CHECK(pthread_create(&threads[0], NULL, releases_three, NULL) == 0);
    RETURNS(0, ulocks_shared_semaphore_acquire(&none, 3));
    CHECK(pthread_join(threads[0], NULL) == 0);
    RETURNS(0, ulocks_shared_semaphore_available(&none));

    memset(&none, 0xff, sizeof none);
    RETURNS(EINVAL, ulocks_shared_semaphore_init(&none, MOST + 1u));
    RETURNS(0, ulocks_shared_semaphore_init(&none, MOST));
    RETURNS(MOST, ulocks_shared_semaphore_available(&none));
    RETURNS(EOVERFLOW, ulocks_shared_semaphore_release(&none, 1));
    RETURNS(MOST, ulocks_shared_semaphore_available(&none));
    RETURNS(0, ulocks_shared_semaphore_acquire(&none, MOST));
    return 0;
}
