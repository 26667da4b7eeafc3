/* Kills a process after each number of instructions within a call, and looks what is left. */
#define _GNU_SOURCE
#include "../common/traced.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };
enum { KEY = 0x51d0aaaa, MARK = 0642 };

static int id;
static long step; /* After which the process is killed. */
static int warm;  /* Whether the process has adjustments before. */
static long taken; /* How many instructions the last child has made. */

static void fail(const char *what)
{
    printf("FAILED after %ld steps: %s: %s\n", step, what, strerror(errno));
    exit(1);
}

static void set(unsigned short a, unsigned short b)
{
    unsigned short all[] = {a, b};
    union semun u = {.array = all};
    if (semctl(id, 0, SETALL, u) < 0)
        fail("SETALL");
}

static void check(int a, int b)
{
    unsigned short all[2];
    union semun u = {.array = all};
    if (semctl(id, 0, GETALL, u) < 0)
        fail("GETALL");
    if (all[0] != a || all[1] != b) {
        printf("values are %d %d\n", all[0], all[1]);
        fail("values");
    }
}

static int asleep(void)
{
    int all = 0;
    for (int i = 0; i < 2; i++)
        all += semctl(id, i, GETNCNT) + semctl(id, i, GETZCNT);
    return all;
}

static pid_t sleeper(int num, int undo)
{
    int before = asleep();
    pid_t pid = fork();
    if (pid == 0) {
        struct sembuf op = {num, -1, undo};
        struct timespec limit = {20, 0};
        _exit(semtimedop(id, &op, 1, &limit) < 0 ? errno : 0);
    }
    while (asleep() == before)
        usleep(50);
    return pid;
}

static void join(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        errno = WEXITSTATUS(status);
        fail("the sleeper");
    }
}

/* Runs `call` in a child for `step` instructions. Whether the call was shorter than that. */
static int killed(void (*call)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0))
            _exit(1);
        if (warm) {
            struct sembuf op = {1, 0, SEM_UNDO | IPC_NOWAIT};
            semop(id, &op, 1);
        }
        raise(SIGSTOP);
        call();
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) {
        puts("no ptrace");
        exit(0);
    }
    cpu_set_t all;
    stay_beside(pid, &all);
    long done = 0;
    int stopped = 0;
    while (done < step && !stopped) {
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        waitpid(pid, &status, 0);
        if (!WIFSTOPPED(status))
            fail("the stepped process ended");
        stopped = WSTOPSIG(status) == SIGSTOP;
        done++;
    }
    sched_setaffinity(0, sizeof all, &all);
    taken = done;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return stopped;
}

/* A set that completes a sleeper, with an adjustment. Done or not, the first value is back. */
static void giving(void)
{
    struct sembuf ops[] = {{0, -1, SEM_UNDO}, {1, 1, 0}};
    semop(id, ops, 2);
}
static int give(void)
{
    set(5, 0);
    pid_t other = sleeper(1, 0);
    int over = killed(giving);
    if (asleep()) {
        struct sembuf op = {1, 1, 0};
        if (over || semop(id, &op, 1) < 0)
            fail("posting");
    }
    join(other);
    check(5, 0);
    return over;
}

/* One semaphore, with an adjustment that a sleeper waits for. */
static void releasing(void)
{
    struct sembuf take = {0, -1, SEM_UNDO}, back = {0, 1, SEM_UNDO};
    semop(id, &take, 1);
    semop(id, &back, 1);
}
static int release(void)
{
    set(1, 0);
    int over = killed(releasing);
    struct sembuf op = {0, -1, IPC_NOWAIT};
    if (semop(id, &op, 1) < 0)
        fail("taking");
    check(0, 0);
    return over;
}

/* All values set, below a sleeper. */
static void setting(void)
{
    unsigned short all[] = {2, 3};
    union semun u = {.array = all};
    semctl(id, 0, SETALL, u);
}
static int set_all(void)
{
    set(0, 0);
    pid_t other = sleeper(1, 0);
    int over = killed(setting), slept = asleep();
    if (slept)
        set(2, 3);
    join(other);
    check(2, 2);
    return over;
}

/* A sleeper that dies on its way to sleep takes nothing. */
static void sleeping(void)
{
    struct sembuf ops[] = {{0, -1, 0}, {1, -1, SEM_UNDO}};
    struct timespec limit = {0, 3000000};
    semtimedop(id, ops, 2, &limit);
}
static int go_to_sleep(void)
{
    set(1, 0);
    int over = killed(sleeping);
    if (asleep())
        fail("a dead sleeper is counted");
    struct sembuf op = {1, 1, 0};
    if (semop(id, &op, 1) < 0)
        fail("posting");
    check(1, 1);
    return over;
}

/* An array that is made, then removed: its key can be used again. */
static void making(void)
{
    int made = semget(KEY, 2, 0600 | IPC_CREAT);
    semctl(made, 0, IPC_RMID);
}
static int make(void)
{
    int over = killed(making);
    int made = semget(KEY, 3, 0600 | IPC_CREAT);
    if (made < 0 && errno == EINVAL) /* The dead process has made it, with two semaphores. */
        made = semget(KEY, 2, 0600);
    if (made < 0)
        fail("semget");
    struct sembuf op = {1, 1, 0};
    if (semop(made, &op, 1) < 0 || semctl(made, 0, IPC_RMID) < 0)
        fail("the array with the key");
    if (semget(KEY, 0, 0) >= 0 || errno != ENOENT)
        fail("the key");
    return over;
}

/* An array that is removed below a sleeper: if it is gone, the sleeper is told. */
static void removing(void) { semctl(id, 0, IPC_RMID); }
static int end_sleeper(void)
{
    int status, kept = id;
    id = semget(IPC_PRIVATE, 500, 0600);
    pid_t other = sleeper(0, 0);
    int over = killed(removing);
    semctl(id, 0, IPC_RMID); /* It may be removed already. */
    waitpid(other, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EIDRM) {
        errno = WEXITSTATUS(status);
        fail("the sleeper of a removed array");
    }
    id = kept;
    return over;
}

/* A private array that is made: its maker may die before any process knows the id. */
static void making_private(void) { semctl(semget(IPC_PRIVATE, 2, MARK), 0, IPC_RMID); }
static int make_private(void)
{
    struct seminfo info;
    struct semid_ds status;
    union semun u = {.info = &info}, v = {.buf = &status};
    int over = killed(making_private), most = semctl(0, 0, SEM_INFO, u);
    for (int index = 0; index <= most; index++) {
        int other = semctl(index, 0, SEM_STAT, v);
        if (other >= 0 && (status.sem_perm.mode & 0777) == MARK)
            semctl(other, 0, IPC_RMID);
    }
    return over;
}

/* A process that gives back what a dead one owed. What is taken after its death stays taken. */
static void reading(void)
{
    unsigned short all[2];
    union semun u = {.array = all};
    semctl(id, 0, GETALL, u);
}
static int reap(void)
{
    set(5, 5);
    pid_t owes = fork();
    if (owes == 0) {
        struct sembuf ops[] = {{0, -1, SEM_UNDO}, {1, -1, SEM_UNDO}};
        semop(id, ops, 2);
        raise(SIGKILL);
    }
    waitpid(owes, 0, 0);
    int over = killed(reading);
    struct sembuf op = {0, -1, IPC_NOWAIT};
    if (semop(id, &op, 1) < 0)
        fail("taking");
    check(4, 5);
    return over;
}

/* The arguments: which call; how many deaths, at most. */
int main(int argc, char **argv)
{
    const struct { const char *name; int (*run)(void); int warm; } all[] = {
        {"give", give, 1}, {"release", release, 1}, {"set", set_all, 1},
        {"sleep", go_to_sleep, 1}, {"make", make, 1}, {"first", give, 0},
        {"remove", end_sleeper, 0}, {"private", make_private, 0},
        {"reap", reap, 0},
    };
    const char *only = argc > 1 ? argv[1] : "";
    int wanted = argc > 2 ? atoi(argv[2]) : 40, known = 0;
    id = semget(IPC_PRIVATE, 2, 0600);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        int over = 0, deaths = 0;
        if (*only && strcmp(only, all[i].name))
            continue;
        known = 1;
        warm = all[i].warm;
        step = 1000000000;
        all[i].run();
        long stride = taken / wanted + 1;
        for (step = 1; !over; step += stride, deaths++)
            over = all[i].run();
        if (argc > 2)
            printf("%s: up to %ld steps, %d deaths\n", all[i].name, step, deaths);
    }
    semctl(id, 0, IPC_RMID);
    puts(known ? "whole after each death" : "there is no such call");
    return !known;
}
