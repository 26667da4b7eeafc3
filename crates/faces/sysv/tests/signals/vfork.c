/* Children of vfork that change the action of a signal before they end, as Python's subprocess has
   them do. They have their parent's memory: nothing of the parent's may change. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };

static int id;
static volatile int handled;

static void of_parent(int signal) { handled = 1; (void)signal; }
static void of_child(int signal) { handled = 2; (void)signal; }

static void spawn(void (*handler)(int))
{
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGUSR1, handler);
        _exit(0);
    }
    if (child < 0 || waitpid(child, 0, 0) != child)
        fail("vfork");
}

static struct { volatile pid_t number; volatile int is_over; } *taker;

static int take(void)
{
    taker->number = syscall(SYS_gettid);
    int result = semop(id, &(struct sembuf){0, -1, 0}, 1);
    taker->is_over = 1;
    return result;
}

static void post(void)
{
    if (semop(id, &(struct sembuf){0, 1, 0}, 1))
        fail("semop");
}

/* How many sets sleep, once the one that is to take sleeps in the kernel or is over. */
static int sleepers(void)
{
    for (int looks = 0; looks < 5 && !taker->is_over; looks++) {
        usleep(500);
        if (!taker->number || state_of(taker->number) != 'S')
            looks = 0;
    }
    return semctl(id, 0, GETNCNT);
}

static void begin(void)
{
    taker->number = taker->is_over = 0;
    if (semctl(id, 0, SETVAL, (union semun){.val = 0}))
        fail("SETVAL");
}

/* A thread that spawns, and then sleeps. */

static void *takes(void *unused)
{
    spawn(SIG_DFL);
    long result = take() ? errno : 0;
    (void)unused;
    return (void *)result;
}

static void in_thread(void)
{
    pthread_t thread;
    void *result;
    struct sembuf both[] = {{0, 1, SEM_UNDO}, {0, -1, SEM_UNDO}};
    begin();
    if (semop(id, both, 2) || pthread_create(&thread, 0, takes, 0)) /* This thread is known first. */
        fail("semop");
    int count = sleepers();
    post();
    pthread_join(thread, &result);
    printf("a thread that has spawned: %d asleep, %s\n", count, result ? strerror((long)result) : "performed");
}

/* A child of fork that spawns, and then is killed in its sleep. */

static void in_child(void)
{
    begin();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        spawn(SIG_DFL);
        take();
        pause();
    }
    int before = sleepers();
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    int after = semctl(id, 0, GETNCNT);
    post();
    printf("a child that has spawned: %d asleep, once it is dead %d, value %d\n", before, after,
           semctl(id, 0, GETVAL));
}

/* The handler of a parent in whose thread nothing was asked before. */

static void *installs(void *unused)
{
    spawn(of_child);
    return unused;
}

static void handlers(void)
{
    pthread_t thread;
    signal(SIGUSR1, of_parent);
    if (pthread_create(&thread, 0, installs, 0))
        fail("pthread_create");
    pthread_join(thread, 0);
    raise(SIGUSR1);
    printf("the handler is that of the %s\n", handled == 1 ? "parent" : "child");
}

/* A signal that ends a child. The library has a handler of SIGBUS. */

static void defaults(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        raise(SIGBUS);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("a child that raises SIGBUS ends by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* A child that the C library does not know of has actions of its own, once it has made a call. */

static void bare(void)
{
    struct { void *handler; unsigned long rest[18]; } kernels = {0};
    fflush(stdout);
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        post();
        signal(SIGUSR1, of_child);
        if (syscall(SYS_rt_sigaction, SIGUSR1, 0, &kernels, 8) || kernels.handler == (void *)of_child)
            _exit(1);
        raise(SIGUSR1);
        kill(getpid(), SIGUSR1);
        _exit(handled == 2 ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    printf("a child of a bare call ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int main(void)
{
    id = semget(IPC_PRIVATE, 1, 0600);
    taker = mmap(0, sizeof *taker, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (id < 0 || taker == MAP_FAILED)
        fail("semget");
    in_thread();
    in_child();
    handlers();
    defaults();
    bare();
    semctl(id, 0, IPC_RMID);
    return 0;
}
