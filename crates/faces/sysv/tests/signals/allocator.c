/* Counts the calls of the allocator within the functions that the library replaces: a handler that
   has interrupted the allocator would wait for itself there. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 600 };

/* The allocator of the program: memory is never used again. */
static _Alignas(64) char pool[1 << 24];
static size_t used;
static __thread int is_inside;
static volatile int calls;

static void *take(size_t bytes, size_t alignment)
{
    if (is_inside)
        calls++;
    size_t step = (bytes + 127) / 64 * 64 + (alignment > 64 ? alignment : 0);
    size_t at = __atomic_fetch_add(&used, step, __ATOMIC_RELAXED);
    if (at + step > sizeof pool)
        return 0;
    uintptr_t place = (uintptr_t)pool + at + 64;
    if (alignment > 64)
        place = (place + alignment - 1) / alignment * alignment;
    ((size_t *)place)[-1] = bytes;
    return (void *)place;
}
void *malloc(size_t bytes) { return take(bytes, 64); }
void *calloc(size_t count, size_t bytes) { return take(count * bytes, 64); }
void *aligned_alloc(size_t alignment, size_t bytes) { return take(bytes, alignment); }
void *memalign(size_t alignment, size_t bytes) { return take(bytes, alignment); }
int posix_memalign(void **place, size_t alignment, size_t bytes)
{
    *place = take(bytes, alignment);
    return *place ? 0 : ENOMEM;
}
void *realloc(void *from, size_t bytes)
{
    void *to = take(bytes, 64);
    if (from && to) {
        size_t before = ((size_t *)from)[-1];
        memcpy(to, from, before < bytes ? before : bytes);
    }
    return to;
}
void free(void *place)
{
    if (place && is_inside)
        calls++;
}

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };
static int id;

static void handler(int signal)
{
    static unsigned short values[MOST];
    struct sembuf take[] = {{0, -1, SEM_UNDO}, {1, 1, 0}}, wait = {2, -1, SEM_UNDO};
    struct timespec limit = {0, 1000000};
    union semun all = {.array = values};
    (void)signal;
    is_inside = 1;
    if (id < 0)
        id = semget(IPC_PRIVATE, MOST, 0600);
    values[0] = 9;
    values[1] = 0;
    semctl(id, 0, SETALL, all);
    semop(id, take, 2);
    semtimedop(id, &wait, 1, &limit);
    semctl(id, 0, GETALL, all);
    is_inside = 0;
    if (values[0] != 8 || values[1] != 1)
        printf("values are %d %d\n", values[0], values[1]);
}

static void *in_thread(void *unused)
{
    raise(SIGUSR1);
    return unused;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    signal(SIGUSR1, handler);
    id = -1;
    raise(SIGUSR1); /* The first call of the process. */
    printf("%d calls of the allocator", calls);
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    printf(", with a thread %d", calls);
    fflush(stdout);
    if (fork() == 0) {
        raise(SIGUSR1);
        printf(", in a child %d\n", calls);
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    semctl(id, 0, IPC_RMID);
    return 0;
}
