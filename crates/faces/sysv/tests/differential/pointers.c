/* The cases of the oracle, 4: bad pointers, which the library checks in strict mode only. */
#include "oracle.h"

static char *hole, *edge, *locked;

/* A page without access, the page before it, and a page for reading only. */
static void map(void)
{
    edge = mmap(0, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hole = edge + 4096;
    locked = edge + 8192;
    mprotect(hole, 4096, PROT_NONE);
    mprotect(locked, 4096, PROT_READ);
}

static void bad_sets(void)
{
    struct sembuf op = O(0, 1, 0);
    map();
    fresh(1, 0);
    put(semop(id, (void *)hole, 1));
    put(semop(id, (void *)-4096L, 1));
    put(semop(-1, (void *)hole, 1));
    put(semop(id, (void *)hole, 0));
    put(semop(id, (void *)hole, 501));
    memcpy(hole - sizeof op, &op, sizeof op);
    put(semop(id, (void *)(hole - sizeof op), 1));
    put(semop(id, (void *)(hole - sizeof op), 2));
    values();
}

static void bad_limits(void)
{
    struct sembuf op = O(0, 1, 0);
    map();
    fresh(1, 0);
    put(semtimedop(id, &op, 1, (void *)hole));
    put(semtimedop(id, &op, 501, (void *)hole));
    put(semtimedop(-1, &op, 1, (void *)hole));
    put(semtimedop(id, (void *)hole, 1, (void *)hole));
    put(syscall(SYS_semtimedop, id, &op, 1, hole));
    put(syscall(SYS_semop, id, hole, 1));
    values();
}

static void bad_controls(void)
{
    map();
    fresh(3, 0);
    long places[] = {(long)hole, (long)(hole - 4), (long)locked};
    int commands[] = {GETALL, SETALL, IPC_STAT, IPC_SET, IPC_INFO, SEM_INFO, SEM_STAT};
    for (int c = 0; c < 7; c++)
        for (int p = 0; p < 2; p++)
            put(ctl(0, commands[c], places[p]) < 0 ? -1 : 0);
    put(ctl(0, GETALL, (long)locked));
    put(ctl(0, SETALL, (long)locked));
    put(ctl(0, IPC_STAT, (long)locked));
    values();
}

static void bad_after_id(void)
{
    map();
    fresh(1, 0);
    ctl(0, IPC_RMID, 0);
    put(ctl(0, GETALL, (long)hole));
    put(ctl(0, SETALL, (long)hole));
    put(ctl(0, IPC_STAT, (long)hole));
    put(ctl(0, IPC_SET, (long)hole));
    put(semop(id, (void *)hole, 1));
}

#define C(function) {#function, function}
const struct named cases_of_pointers[] = {
    C(bad_sets),
    C(bad_limits),
    C(bad_controls),
    C(bad_after_id),
    {0, 0},
};
