/* A thread that changes an action stands still inside, and another one comes that changes one, too.
   It must leave the first one a CPU: so it is to be found asleep. */
#include "case.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared { volatile pid_t second; volatile int may_go, is_in_call; } *shared;

static void handler(int signal) { (void)signal; }

static void change(int number)
{
    struct sigaction action = {.sa_handler = handler};
    if (sigaction(number, &action, 0))
        _exit(1);
}

static void *comes(void *unused)
{
    shared->second = syscall(SYS_gettid);
    while (!shared->may_go)
        sched_yield();
    shared->is_in_call = 1;
    change(SIGUSR2);
    return unused;
}

/* The state of the second thread, `?` if it has ended, and in `ticks` how long it has run. */
static int state_of_second(unsigned long *ticks)
{
    char text[512], state = '?';
    unsigned long user = 0, kernel = 0;
    const char *stat = stat_of(shared->second, text);
    if (sscanf(stat, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &kernel) != 3)
        return '?';
    *ticks = user + kernel;
    return state;
}

/* Lets the first thread go on until it asks the kernel to change an action. */
static void let_it_go_inside(pid_t pid)
{
    enum { GET_SYSCALL_INFO = 0x420e, ENTRY = 1 };
    struct { unsigned char kind, rest[23]; unsigned long long number, arguments[7]; } info = {0};
    int status;
    do {
        ptrace(PTRACE_SYSCALL, pid, 0, 0);
        if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
            fail("the first thread has ended");
        if (ptrace(GET_SYSCALL_INFO, pid, sizeof info, &info) < 0) {
            puts("no ptrace");
            kill(pid, SIGKILL);
            exit(0);
        }
    } while (info.kind != ENTRY || info.number != SYS_rt_sigaction);
}

int main(void)
{
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, 0, comes, 0) || ptrace(PTRACE_TRACEME, 0, 0, 0))
            _exit(255);
        while (!shared->second)
            sched_yield();
        raise(SIGSTOP);
        change(SIGUSR1);
        pthread_join(thread, 0);
        _exit(0);
    }
    int status, state;
    unsigned long first = 0, ticks = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) {
        puts("no ptrace");
        return 0;
    }
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
    let_it_go_inside(pid);
    state_of_second(&first);
    shared->may_go = 1;
    while (!shared->is_in_call)
        sched_yield();
    /* In a second of its own it would have gone to sleep. */
    do
        state = state_of_second(&ticks);
    while (state != 'S' && state != '?' && ticks < first + sysconf(_SC_CLK_TCK));
    ptrace(PTRACE_DETACH, pid, 0, 0);
    waitpid(pid, &status, 0);
    printf("the second thread %s, and both end with %d\n",
           state == 'S' ? "sleeps" : state == '?' ? "does not wait" : "spins", status);
    return 0;
}
