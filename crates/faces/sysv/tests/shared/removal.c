/* Arrays are removed while two processes contend for their locks, then the next one is made. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HERE = 8, THERE = 3, ROUNDS = 400 };

static struct { atomic_int id, round, returned; } *all;

/* Takes and gives back two semaphores until the array of the round is removed. */
static void *contend(void *unused)
{
    struct sembuf up[] = {{0, 1, 0}, {1, 1, 0}}, down[] = {{0, -1, 0}, {1, -1, 0}};
    for (int seen = 0; (void)unused, seen >= 0;) {
        while (all->round == seen)
            usleep(50);
        seen = all->round;
        while (seen > 0 && semop(all->id, up, 2) == 0 && semop(all->id, down, 2) == 0) { }
        all->returned++;
    }
    return 0;
}

static void start(pthread_t *threads, int number)
{
    for (int i = 0; i < number; i++)
        if (pthread_create(&threads[i], 0, contend, 0))
            abort();
}

static void join(pthread_t *threads, int number)
{
    for (int i = 0; i < number; i++)
        pthread_join(threads[i], 0);
}

int main(void)
{
    pthread_t threads[HERE];
    all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        start(threads, THERE);
        join(threads, THERE);
        _exit(0);
    }
    alarm(60); /* A thread that waits for a lost lock has all signals blocked. */
    start(threads, HERE);
    for (int round = 1; round <= ROUNDS; round++) {
        all->returned = 0;
        all->id = semget(IPC_PRIVATE, 2, 0600);
        all->round = round;
        usleep(1000);
        semctl(all->id, 0, IPC_RMID);
        while (all->returned < HERE + THERE)
            usleep(50);
    }
    all->round = -1;
    join(threads, HERE);
    wait(0);
    puts("all returned");
    return 0;
}
