/* How long a pair of operations takes, as a program finds it:
 *     cc -O2 crates/faces/sysv/examples/pair.c -o target/pair
 *     target/pair
 *     LD_PRELOAD=target/release/libulocks_sysv.so target/pair
 * One process, one thread: no operation waits. Each figure is the best of five rounds. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/sem.h>
#include <time.h>

enum { ROUNDS = 5, PAIRS = 200000 };

static int id;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void measure(const char *name, struct sembuf *up, struct sembuf *down, int n)
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < PAIRS; i++)
            if (semop(id, up, n) || semop(id, down, n)) {
                perror("semop");
                return;
            }
        double took = (now() - start) / PAIRS;
        best = took < best ? took : best;
    }
    printf("%-28s %8.1f ns a pair\n", name, best);
}

int main(void)
{
    struct sembuf up[8], down[8];
    id = semget(IPC_PRIVATE, 8, 0600);
    if (id < 0) {
        perror("semget");
        return 1;
    }
    for (int i = 0; i < 8; i++) {
        up[i] = (struct sembuf){i, 1, 0};
        down[i] = (struct sembuf){i, -1, 0};
    }
    measure("one operation", up, down, 1);
    measure("two operations", up, down, 2);
    measure("eight operations", up, down, 8);
    for (int i = 0; i < 8; i++)
        up[i].sem_flg = down[i].sem_flg = SEM_UNDO;
    measure("one operation, SEM_UNDO", up, down, 1);
    measure("two operations, SEM_UNDO", up, down, 2);
    semctl(id, 0, IPC_RMID);
    return 0;
}
