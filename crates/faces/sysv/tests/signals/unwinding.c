/* A thread ends by unwinding, out of `syscall` or out of a set in which it sleeps: cancelled at any
   instruction, or by a handler that calls `pthread_exit`. What its frames are to clean up is. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call { SYSCALL, SEMOP, SEMOP_BY_NUMBER, SEMTIMEDOP };
static const char *const names[] = {"syscall", "semop", "semop by its number", "semtimedop"};

static int id;
static volatile pid_t thread_id;
static volatile int cleaned;

static void clean(int *frame) { cleaned += *frame; }
static void leave(int signal) { pthread_exit(0); (void)signal; }

/* The C library's header says that `syscall` throws nothing, so the frame to clean up is outside. */
static void stay(enum call call)
{
    struct sembuf op = {0, -1, 0};
    struct timespec hour = {3600, 0};
    for (;;)
        switch (call) {
        case SYSCALL: syscall(SYS_ppoll, 0, 0, 0, 0, 8); break;
        case SEMOP: semop(id, &op, 1); break;
        case SEMOP_BY_NUMBER: syscall(SYS_semop, id, &op, 1); break;
        case SEMTIMEDOP: semtimedop(id, &op, 1, &hour); break;
        }
}

static void (*volatile where)(enum call) = stay; /* So that the compiler does not know that either. */

static void *waits(void *call)
{
    __attribute__((cleanup(clean))) int frame = 1;
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    thread_id = syscall(SYS_gettid);
    where(*(enum call *)call);
    return 0;
}

/* Whether the thread sleeps in its call, and not on its way there. */
static int is_asleep(enum call call)
{
    for (int looks = 0; looks < 5; looks++) {
        usleep(500);
        if (!thread_id || state_of(thread_id) != 'S' || (call != SYSCALL && semctl(id, 0, GETNCNT) != 1))
            return 0;
    }
    return 1;
}

int main(void)
{
    struct sigaction action = {.sa_handler = leave};
    id = semget(IPC_PRIVATE, 1, 0600);
    if (id < 0 || sigaction(SIGUSR1, &action, 0))
        fail("semget");
    for (enum call call = SYSCALL; call <= SEMTIMEDOP; call++)
        for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
            pthread_t thread;
            thread_id = cleaned = 0;
            if (pthread_create(&thread, 0, waits, &call))
                fail("pthread_create");
            while (!is_asleep(call))
                ;
            if (is_cancelled)
                pthread_cancel(thread);
            else
                pthread_kill(thread, SIGUSR1);
            pthread_join(thread, 0);
            printf("%s, %s: %d cleaned up, %d asleep\n", names[call], is_cancelled ? "cancelled" : "left", cleaned,
                   semctl(id, 0, GETNCNT));
        }
    semctl(id, 0, IPC_RMID);
    return 0;
}
