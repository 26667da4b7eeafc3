/*
 * Processes that are killed at random while they perform sets. At the end all values are back.
 *
 *     stress [SECONDS [SEED [DEATHS]]]
 *
 * It goes on until the time is up, and so many have died.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEMS = 8, WORKERS = 6, UNITS = 3 };
union semun { int val; struct semid_ds *buf; unsigned short *array; };

static int borrowed, moved; /* Arrays: of what is given back, and of what is moved. */

static void fail(const char *what)
{
    printf("FAILED: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int perform(int id, struct sembuf *ops, int n)
{
    struct timespec limit = {0, (1 + rand() % 20) * 1000000};
    int result = rand() % 4 ? semop(id, ops, n) : semtimedop(id, ops, n, &limit);
    if (result < 0 && errno != EAGAIN && errno != EINTR)
        fail("semop");
    return result;
}

static void handler(int signal) { (void)signal; }

static void work(unsigned seed)
{
    srand(seed);
    signal(SIGUSR1, handler);
    for (;;) {
        /* Takes units of some semaphores and gives them back, with adjustments. */
        struct sembuf take[4], give[4];
        int n = 1 + rand() % 4;
        for (int i = 0; i < n; i++) {
            int num = rand() % SEMS;
            take[i] = (struct sembuf){num, -1, SEM_UNDO};
            give[n - 1 - i] = (struct sembuf){num, 1, SEM_UNDO};
        }
        if (perform(borrowed, take, n) == 0) {
            if (rand() % 8 == 0)
                usleep(rand() % 300);
            if (semop(borrowed, give, n) < 0)
                fail("giving back");
        }
        /* Moves a unit, at once. */
        int from = rand() % SEMS, to = rand() % SEMS;
        struct sembuf move[] = {{from, -1, 0}, {to, 1, 0}};
        perform(moved, move, 2);
        if (rand() % 50 == 0)
            exit(0);
    }
}

static pid_t spawn(unsigned seed)
{
    pid_t pid = fork();
    if (pid == 0)
        work(seed);
    return pid;
}

int main(int argc, char **argv)
{
    unsigned seed = argc > 2 ? atoi(argv[2]) : getpid();
    int deaths = argc > 3 ? atoi(argv[3]) : 0;
    time_t until = time(0) + (argc > 1 ? atoi(argv[1]) : 3);
    unsigned short all[SEMS];
    union semun u = {.array = all};
    pid_t pids[WORKERS];
    int kills = 0;
    alarm(50 + deaths / 10);
    srand(seed);
    borrowed = semget(IPC_PRIVATE, SEMS, 0600);
    moved = semget(IPC_PRIVATE, SEMS, 0600);
    for (int i = 0; i < SEMS; i++)
        all[i] = UNITS;
    if (semctl(borrowed, 0, SETALL, u) < 0 || semctl(moved, 0, SETALL, u) < 0)
        fail("SETALL");
    for (int i = 0; i < WORKERS; i++)
        pids[i] = spawn(rand());
    while (time(0) < until || kills < deaths) {
        int i = rand() % WORKERS, status;
        usleep(rand() % 3000);
        if (rand() % 3 == 0) {
            kill(pids[i], SIGUSR1);
            continue;
        }
        kill(pids[i], SIGKILL);
        waitpid(pids[i], &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status))
            return 1;
        pids[i] = spawn(rand());
        kills++;
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], 0, 0);
    }
    /* Each unit can be taken: nothing blocks. */
    struct sembuf take[SEMS];
    for (int i = 0; i < SEMS; i++)
        take[i] = (struct sembuf){i, -UNITS, IPC_NOWAIT};
    if (semop(borrowed, take, SEMS) < 0)
        fail("taking all");
    if (semctl(borrowed, 0, GETALL, u) < 0)
        fail("GETALL");
    for (int i = 0; i < SEMS; i++)
        if (all[i] || semctl(borrowed, i, GETNCNT) || semctl(moved, i, GETNCNT))
            fail("a semaphore is not as in the beginning");
    int sum = 0;
    if (semctl(moved, 0, GETALL, u) < 0)
        fail("GETALL");
    for (int i = 0; i < SEMS; i++)
        sum += all[i];
    if (sum != SEMS * UNITS)
        fail("units were lost or made");
    semctl(borrowed, 0, IPC_RMID);
    semctl(moved, 0, IPC_RMID);
    printf("%s after some deaths\n", kills > 50 ? "whole" : "too few deaths");
    return 0;
}
