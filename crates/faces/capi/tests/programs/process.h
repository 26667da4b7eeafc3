/* The cases of a mutex and its condition variable between two processes, after mutex.h. */

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    mutex_t mutex;
    cond_t changed;
    int counter;
    int turn;
};

/* Each process counts, and then they take turns. `mine` is 0 or 1. */
static void take_turns(struct shared *shared, int mine) {
    for (int round = 0; round < ROUNDS; round++) {
        RETURNS(0, FN(_lock)(&shared->mutex));
        shared->counter++;
        RETURNS(0, FN(_unlock)(&shared->mutex));
    }
    RETURNS(0, FN(_lock)(&shared->mutex));
    for (int i = 0; i < TURNS; i++) {
        const struct timespec until = late();
        while (shared->turn % 2 != mine)
            RETURNS(0, FN(_cond_wait_until)(&shared->changed, &shared->mutex, &until));
        shared->turn++;
        RETURNS(0, NOTIFY(_signal, &shared->changed, &shared->mutex));
    }
    RETURNS(0, FN(_unlock)(&shared->mutex));
}

static void between_processes(void) {
    /* All bytes are zero. */
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    const pid_t child = fork();
    CHECK(child >= 0);
    take_turns(shared, child == 0);
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(shared->counter == 2 * ROUNDS && shared->turn == 2 * TURNS);
    CHECK(munmap(shared, sizeof *shared) == 0);
}
