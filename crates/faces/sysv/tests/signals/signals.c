/* Handlers of signals: what they are, when they run, and that they end sleeps. */
#include "case.h"
#include "../common/traced.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset and its kin */

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };

static int id;
static volatile sig_atomic_t called;

/* What the C library says of actions, with the library and without. */

static void plain(int signal) { called += signal; }
static void with_info(int signal, siginfo_t *info, void *context)
{
    called += info->si_signo == signal && context ? 1000 : 0;
}

static const char *name_of(void *handler)
{
    return handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignored" : handler == SIG_HOLD ? "held"
           : handler == SIG_ERR ? "error" : handler == (void *)plain ? "plain"
           : handler == (void *)with_info ? "with_info" : "another";
}

static void show(const char *after, int number)
{
    struct sigaction action;
    called = 0;
    if (sigaction(number, 0, &action))
        fail("sigaction");
    printf("%s: %s, flags %x, itself blocked %d\n", after, name_of((void *)action.sa_handler),
           action.sa_flags & ~0x04000000, sigismember(&action.sa_mask, number));
}

static void actions(void)
{
    struct sigaction old, info = {.sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction once = {.sa_handler = plain, .sa_flags = SA_RESETHAND | SA_NODEFER};
    extern void (*bsd_signal(int, void (*)(int)))(int);
    sigaddset(&info.sa_mask, SIGUSR2);
    for (int number = SIGUSR1; number <= SIGRTMIN + 1; number = number == SIGUSR1 ? SIGBUS : number == SIGBUS ? SIGRTMIN + 1 : 99) {
        printf("signal %d\n", number);
        show("at first", number);
        printf("signal: %s\n", name_of((void *)signal(number, plain)));
        show("signal", number);
        raise(number);
        printf("called %d\n", called);
        printf("sigaction %d", sigaction(number, &info, &old));
        printf(" over %s\n", name_of((void *)old.sa_handler));
        show("sigaction", number);
        raise(number);
        printf("called %d\n", called);
        printf("siginterrupt %d\n", siginterrupt(number, 1));
        show("siginterrupt", number);
        printf("bsd_signal: %s\n", name_of((void *)bsd_signal(number, plain)));
        show("bsd_signal", number);
        printf("siginterrupt %d\n", siginterrupt(number, 0));
        printf("sysv_signal: %s\n", name_of((void *)sysv_signal(number, plain)));
        show("sysv_signal", number);
        raise(number);
        printf("called %d\n", called);
        show("sysv_signal raised", number);
        sigaction(number, &once, 0);
        show("once", number);
        raise(number);
        show("once raised", number);
        printf("sigset: %s\n", name_of((void *)sigset(number, plain)));
        printf("sigset: %s\n", name_of((void *)sigset(number, SIG_HOLD)));
        raise(number);
        printf("called %d\n", called);
        printf("sigset: %s\n", name_of((void *)sigset(number, SIG_IGN)));
        show("sigset", number);
        printf("called %d\n", called);
        sigignore(number);
        raise(number);
        show("sigignore", number);
        printf("signal: %s\n", name_of((void *)signal(number, SIG_DFL)));
        show("default", number);
    }
    printf("%d", sigaction(0, &info, 0));
    printf(" %d", errno);
    printf(" %d", sigaction(65, 0, &old));
    printf(" %d", sigaction(SIGKILL, &info, 0));
    printf(" %d", sigaction(32, &info, 0));
    printf(" %d", signal(SIGSTOP, plain) == SIG_ERR);
    printf(" %d\n", signal(SIGUSR1, SIG_ERR) == SIG_ERR);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_IGN);
        raise(SIGBUS);
        signal(SIGBUS, SIG_DFL);
        raise(SIGBUS);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* Timers whose handlers use the array that they interrupt, and that leave by jumps. The sum of the
   two values is the same whatever is done. */

static sigjmp_buf start;
static volatile sig_atomic_t may_jump;

static void in_storm(int signal)
{
    struct sembuf set[] = {{0, -1, IPC_NOWAIT | SEM_UNDO}, {1, 1, IPC_NOWAIT | SEM_UNDO}};
    if (called % 2)
        set[0].sem_op = 1, set[1].sem_op = -1;
    if (semop(id, set, 2) && errno != EAGAIN)
        fail("semop in a handler");
    called++;
    if (may_jump && called % 3 == 0) {
        may_jump = 0;
        siglongjmp(start, 1);
    }
    (void)signal;
}

static void storm(void)
{
    enum { MANY = 100, TIMES = 4000 };
    struct sembuf set[MANY], wait[] = {{0, -30000, 0}, {1, -30000, 0}};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = in_storm, .sa_flags = SA_RESTART};
    unsigned short all[] = {100, 100, 0};
    union semun u = {.array = all};
    for (int at = 0; at < MANY; at++)
        set[at] = (struct sembuf){at % 2, at % 4 < 2 ? 1 : -1, IPC_NOWAIT | SEM_UNDO};
    set[0].sem_op = -1;
    set[MANY - 1].sem_op = 1;
    if (semctl(id, 0, SETALL, u))
        fail("SETALL");
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    sigsetjmp(start, 1);
    while (called < TIMES) {
        may_jump = 1;
        if (semop(id, set, MANY) && errno != EAGAIN)
            fail("semop");
        may_jump = 0;
        if (called % 5 == 0 && (semop(id, wait, 2) == 0 || errno != EINTR))
            fail("a sleep that no other thread ends");
    }
    setitimer(ITIMER_REAL, &never, 0);
    if (semctl(id, 0, GETALL, u) || semctl(id, 0, GETNCNT) || semctl(id, 1, GETNCNT))
        fail("GETALL");
    int sum = 0;
    for (int at = 0; at < MANY; at++)
        sum += set[at].sem_op;
    printf("after the storm: %d too many\n", sum ? -1 : all[0] + all[1] - 200);
}

/* A signal after each number of instructions of a call that sleeps. */

static int *in_handler;
static int uses; /* Whether the handler uses the array. */

static void on_step(int signal)
{
    struct sembuf set[] = {{1, 1, 0}, {1, 1, 0}};
    in_handler[0] += !uses || semop(id, set, 2) == 0;
    (void)signal;
}

/* Whether the process sleeps, and not only on its way. One that is stopped may have the lock that
   questions take. */
static int is_blocked(pid_t pid)
{
    for (int looks = 0; looks < 3; looks++) {
        usleep(500);
        if (state_of(pid) != 'S')
            return 0;
    }
    return 1;
}

/* Whether it sleeps in its set. */
static int is_asleep(pid_t pid) { return is_blocked(pid) && semctl(id, 0, GETNCNT) == 1; }

static void on_tick(int signal) { (void)signal; }

/* What the call ends with, and in `taken` how many instructions were made before the signal. */
static int interrupted(long step, long *taken)
{
    struct sembuf set[] = {{0, -1, 0}, {2, 0, 0}};
    int status;
    in_handler[0] = 0;
    uses = step % 2;
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction action = {.sa_handler = on_step, .sa_flags = SA_RESTART};
        sigaction(SIGUSR1, &action, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        semop(id, &(struct sembuf){2, 0, SEM_UNDO}, 1);
        if (ptrace(PTRACE_TRACEME, 0, 0, 0))
            _exit(255);
        raise(SIGSTOP);
        _exit(semop(id, set, 2) ? errno : 0);
    }
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) {
        puts("no ptrace");
        exit(0);
    }
    /* A child that falls asleep does not stop. So a wait for a stop ends after 5 ms. */
    struct sigaction tick = {.sa_handler = on_tick};
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    cpu_set_t all;
    int sleeps = 0;
    stay_beside(pid, &all);
    sigaction(SIGALRM, &tick, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (*taken = 0; *taken < step && !sleeps; ++*taken) {
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        while (waitpid(pid, &status, 0) != pid && !sleeps)
            sleeps = is_asleep(pid);
    }
    setitimer(ITIMER_REAL, &never, 0);
    sched_setaffinity(0, sizeof all, &all);
    if (sleeps)
        kill(pid, SIGUSR1);
    else
        ptrace(PTRACE_CONT, pid, 0, SIGUSR1);
    for (int ended; (ended = waitpid(pid, &status, WNOHANG)) != pid || WIFSTOPPED(status);)
        if (ended == pid) /* A signal that was held back comes again. */
            ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
        else if (is_asleep(pid) && semop(id, &(struct sembuf){0, 1, 0}, 1))
            fail("posting");
        else if (is_blocked(pid) && semctl(id, 0, GETNCNT) == 0 && is_blocked(pid)) {
            printf("after %ld instructions: it sleeps although its set has ended\n", step);
            exit(1);
        }
    if (!WIFEXITED(status) || in_handler[0] != 1 || semctl(id, 1, GETVAL) != 2 * uses || semctl(id, 0, GETNCNT)) {
        printf("after %ld instructions: status %x, %d calls in the handler, values %d and %d, asleep %d\n", step,
               status, in_handler[0], semctl(id, 0, GETVAL), semctl(id, 1, GETVAL), semctl(id, 0, GETNCNT));
        exit(1);
    }
    semctl(id, 1, SETVAL, (union semun){.val = 0});
    return WEXITSTATUS(status);
}

static void steps(int all)
{
    long shortest = 1L << 40, taken, first = 0, rounds = 0, slept = 0;
    in_handler = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int times = 0; times < 8; times++) {
        interrupted(1L << 40, &taken);
        shortest = taken < shortest ? taken : shortest;
    }
    /* Some instructions of those before, and then each one, until the thread mostly sleeps before
       the signal comes: its way there is not always the same. */
    for (long step = 1; slept < 40; rounds++) {
        int result = interrupted(step, &taken);
        slept += taken < step;
        if (result == EINTR && !first)
            first = step;
        if (result != EINTR && (result || first)) {
            printf("a signal after %ld instructions: %s\n", step, strerror(result));
            exit(1);
        }
        step += all || step > shortest - 100 ? 1 : shortest / 60 | 1;
    }
    if (all)
        printf("%ld rounds, %ld instructions, ends from %ld on\n", rounds, shortest, first);
    puts(first && first < shortest ? "each signal ended the sleep" : "no signal ended the sleep");
}

/* Two signals at once, so that the frame of one handler is on that of the other. */

static void on_pair(int signal)
{
    called++;
    (void)signal;
}

static void pairs(void)
{
    enum { MANY = 100, TIMES = 300 };
    struct sembuf set[MANY];
    struct sigaction action = {.sa_handler = on_pair};
    sigset_t blocked;
    for (int at = 0; at < MANY; at++)
        set[at] = (struct sembuf){at % 2, at % 4 < 2 ? 1 : -1, 0};
    sigaction(SIGUSR2, &action, 0);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &action, 0);
    pid_t me = getpid(), sender = fork();
    if (sender == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            kill(me, SIGSTOP);
            usleep(200);
            kill(me, SIGUSR2);
            kill(me, SIGUSR1);
            kill(me, SIGCONT);
            usleep(500);
        }
    }
    while (called < TIMES) {
        if (semop(id, set, MANY))
            fail("semop");
        sigprocmask(SIG_SETMASK, 0, &blocked);
        for (int number = 1; number < 64; number++)
            if (sigismember(&blocked, number) == 1) {
                printf("signal %d stays blocked\n", number);
                kill(sender, SIGKILL);
                exit(1);
            }
    }
    kill(sender, SIGKILL);
    waitpid(sender, 0, 0);
    puts("nothing stays blocked");
}

/* A handler that ends a sleep, sleeps itself, and is interrupted when that sleep has ended: what the
   outer call says is its own. */

static volatile sig_atomic_t performed;

static void inner(int signal)
{
    called++;
    (void)signal;
}

static void outer(int signal)
{
    performed = semop(id, &(struct sembuf){1, -1, 0}, 1) == 0;
    (void)signal;
}

static void nested(void)
{
    struct sigaction action = {.sa_handler = outer};
    sigaction(SIGUSR1, &action, 0);
    action.sa_handler = inner;
    sigaction(SIGUSR2, &action, 0);
    pid_t me = getpid(), other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (semctl(id, 0, GETNCNT) != 1)
            usleep(200);
        kill(me, SIGUSR1);
        while (semctl(id, 1, GETNCNT) != 1)
            usleep(200);
        kill(me, SIGSTOP); /* So that its set is performed before the handler runs. */
        while (state_of(me) != 'T')
            usleep(200);
        semop(id, &(struct sembuf){1, 1, 0}, 1);
        kill(me, SIGUSR2);
        kill(me, SIGCONT);
        _exit(0);
    }
    int result = semop(id, &(struct sembuf){0, -1, 0}, 1);
    printf("the inner call was performed: %d, of %d handlers; the outer one: %s\n", performed, called + 1,
           result ? strerror(errno) : "performed");
    waitpid(other, 0, 0);
}

/* A handler that ends the program in which its thread sleeps: nothing is left in the queue. */

/* A new action holds, also if a thread gets a signal at once that resets the action before. */

static void spin_a_while(void)
{
    for (volatile int turns = 0; turns < 100000 && !called; turns++)
        ;
    sched_yield();
}

static void *receives(void *unused)
{
    for (;;)
        spin_a_while();
    return unused;
}

static void once(void)
{
    struct sigaction reset = {.sa_handler = plain, .sa_flags = SA_RESETHAND}, stays = {.sa_handler = plain}, now;
    pthread_t thread;
    int lost = 0;
    if (pthread_create(&thread, 0, receives, 0))
        fail("pthread_create");
    for (int round = 0; round < 50000; round++) {
        called = 0;
        sigaction(SIGUSR1, &reset, 0);
        pthread_kill(thread, SIGUSR1);
        for (volatile int wait = 0; wait < round % 400; wait++)
            ;
        sigaction(SIGUSR1, &stays, 0);
        while (!called)
            spin_a_while();
        sigaction(SIGUSR1, 0, &now);
        lost += now.sa_handler != plain;
    }
    printf("%d new actions lost\n", lost);
}

static int ends[2];
static char *own;

static void becomes_another(int signal)
{
    char number[16];
    snprintf(number, sizeof number, "%d", ends[0]);
    execl(own, own, "stays", number, NULL);
    (void)signal;
}

static void exits(int signal)
{
    exit(0);
    (void)signal;
}

static void stay(void)
{
    char byte;
    while (read(ends[0], &byte, 1) < 0)
        ;
}

static void leaves(void)
{
    void (*const handlers[])(int) = {becomes_another, exits};
    for (int at = 0; at < 2; at++) {
        if (pipe(ends))
            fail("pipe");
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            close(ends[1]);
            signal(SIGUSR1, handlers[at]);
            atexit(stay);
            semop(id, &(struct sembuf){0, -1, 0}, 1);
            _exit(3);
        }
        close(ends[0]);
        while (semctl(id, 0, GETNCNT) != 1)
            usleep(200);
        kill(child, SIGUSR1);
        while (semctl(id, 0, GETNCNT) != 0)
            usleep(200);
        semop(id, &(struct sembuf){0, 1, 0}, 1);
        printf("value %d\n", semctl(id, 0, GETVAL));
        semctl(id, 0, SETVAL, (union semun){.val = 0});
        close(ends[1]);
        waitpid(child, 0, 0);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    own = "/proc/self/exe";
    if (!strcmp(what, "stays")) {
        ends[0] = atoi(argv[2]);
        stay();
        return 0;
    }
    id = semget(IPC_PRIVATE, 3, 0600);
    if (id < 0)
        fail("semget");
    if (!strcmp(what, "actions"))
        actions();
    else if (!strcmp(what, "storm"))
        storm();
    else if (!strcmp(what, "pairs"))
        pairs();
    else if (!strcmp(what, "nested"))
        nested();
    else if (!strcmp(what, "leaves"))
        leaves();
    else if (!strcmp(what, "once"))
        once();
    else if (!strcmp(what, "steps"))
        steps(argc > 2);
    semctl(id, 0, IPC_RMID);
    return 0;
}
