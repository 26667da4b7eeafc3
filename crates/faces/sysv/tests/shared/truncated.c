/* Files of the directory become shorter while processes have them mapped. Each line says what calls get. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEY = 0x7a11 };

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", getenv("ULOCKS_SYSV_DIR"), name);
    return path;
}

/* Makes a file shorter; with `zeroed`, as long as before again. */
static void shorten(const char *name, long length, int zeroed)
{
    struct stat before;
    if (stat(path_of(name), &before) || truncate(path_of(name), length)
        || (zeroed && truncate(path_of(name), before.st_size)))
        abort();
}

static void say(const char *what, int result)
{
    printf(" %s %d", what, result < 0 ? errno : 0);
}

static int make(int key)
{
    int id = semget(key, 3, 0600 | IPC_CREAT);
    unsigned short all[] = {1, 1, 1};
    if (id < 0 || semctl(id, 0, SETALL, all))
        abort();
    return id;
}

/* The calls, and the operations that need no lock. */
static void use(int id)
{
    struct sembuf up = {0, 1, IPC_NOWAIT}, down = {0, -1, IPC_NOWAIT};
    struct sembuf set[] = {{0, 1, IPC_NOWAIT}, {0, -1, IPC_NOWAIT}}, undo = {1, -1, IPC_NOWAIT | SEM_UNDO};
    unsigned short all[3];
    struct semid_ds status;
    say("down", semop(id, &down, 1));
    say("up", semop(id, &up, 1));
    say("set", semop(id, set, 2));
    say("undo", semop(id, &undo, 1));
    say("GETALL", semctl(id, 0, GETALL, all));
    say("SETVAL", semctl(id, 0, SETVAL, 1));
    say("STAT", semctl(id, 0, IPC_STAT, &status));
    say("semget", semget(KEY, 3, 0600));
    say("CREAT", semget(KEY, 3, 0600 | IPC_CREAT));
    puts("");
    fflush(stdout);
}

/* A process that sleeps in the array; its end of the pipe says what it got. */
static int sleeper(int id)
{
    int ends[2], result;
    if (pipe(ends))
        abort();
    fflush(stdout);
    if (fork() == 0) {
        struct sembuf down = {2, -5, 0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(30);
        result = semop(id, &down, 1) < 0 ? errno : 0;
        _exit(write(ends[1], &result, sizeof result) < 0);
    }
    close(ends[1]);
    for (int tries = 0; semctl(id, 2, GETNCNT) != 1; tries++) {
        if (tries == 10000) {
            puts("the sleeper does not sleep");
            exit(1);
        }
        usleep(1000);
    }
    return ends[0];
}

/* The end of a child, which must come. Whoever waits for a lock has its signals blocked, so no alarm
   ends that. */
static int end_of(pid_t child)
{
    int status = 0;
    for (int tries = 0; waitpid(child, &status, WNOHANG) != child; tries++) {
        if (tries == 20000) {
            puts(" waits for the lock for ever");
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            exit(0);
        }
        usleep(1000);
    }
    return status;
}

/* Two processes have the file mapped when it becomes shorter. The first one touches what is gone while
   it has the lock, and then the second one takes that lock. */
static void both(const char *what, long length)
{
    int is_array = !strcmp(what, "array"), id = make(KEY), ready[2], go[2];
    struct sembuf set[] = {{0, 1, IPC_NOWAIT}, {0, -1, IPC_NOWAIT}}, undo = {1, -1, IPC_NOWAIT | SEM_UNDO};
    char byte = 0;
    if (pipe(ready) || pipe(go))
        abort();
    pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (semop(id, set, 2) || semget(KEY, 3, 0600) != id)
        abort();
    if (child == 0) {
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            abort();
        printf("second:");
    } else {
        if (read(ready[0], &byte, 1) != 1)
            abort();
        shorten(is_array ? "sem.0000000000" : "registry", length, 0);
        printf("first:");
    }
    fflush(stdout);
    if (is_array)
        say("set", semop(id, set, 2));
    else
        say("undo", semop(id, &undo, 1));
    fflush(stdout);
    say("semget", semget(KEY, 3, 0600));
    puts("");
    fflush(stdout);
    if (child == 0)
        _exit(0);
    if (write(go[1], &byte, 1) != 1)
        abort();
    if (end_of(child))
        puts("the second one failed");
}

static volatile sig_atomic_t called;
static char *own;

/* As a program does that looks after its own faults. */
static void on_bus(int signal)
{
    called++;
    if (own)
        mmap(own, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    (void)signal;
}

/* A signal of the program's own is not swallowed. */
static void others(int with_handler)
{
    int status, file = memfd_create("own", 0);
    fflush(stdout);
    if (fork() == 0) {
        if (with_handler)
            signal(SIGBUS, on_bus);
        make(IPC_PRIVATE);
        raise(SIGBUS);
        own = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        int seen = *(volatile char *)own;
        _exit(seen + called);
    }
    wait(&status);
    if (WIFSIGNALED(status))
        printf("killed by %s\n", WTERMSIG(status) == SIGBUS ? "SIGBUS" : "another signal");
    else
        printf("called %d times\n", WEXITSTATUS(status));
}

static int used;

static void on_sent(int signal)
{
    struct sembuf set[] = {{0, 1, IPC_NOWAIT}, {0, -1, IPC_NOWAIT}};
    called += !semop(used, set, 2);
    (void)signal;
}

/* A process that gets SIGBUS from another one, and whose handler makes calls. */
static void sent(void)
{
    enum { TIMES = 500, MANY = 400 }; /* Many operations, so that most signals come in a section. */
    struct sembuf set[MANY];
    struct sigaction action = {.sa_handler = on_sent};
    for (int at = 0; at < MANY; at++)
        set[at] = (struct sembuf){0, at % 2 ? -1 : 1, IPC_NOWAIT};
    pid_t target = fork(), sender;
    if (target == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigaction(SIGBUS, &action, 0);
        used = make(IPC_PRIVATE);
        pid_t me = getpid();
        if ((sender = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (getppid() == me)
                kill(me, SIGBUS);
            _exit(0);
        }
        while (called < TIMES)
            if (semop(used, set, MANY))
                abort();
        signal(SIGBUS, SIG_IGN);
        kill(sender, SIGKILL);
        waitpid(sender, 0, 0);
        semctl(used, 0, IPC_RMID);
        _exit(0);
    }
    printf("sent: %d\n", end_of(target));
}

static char stack[65536];

static void on_bus_once(int signal)
{
    char here, *at = &here;
    printf("called, on the alternate stack: %d\n", at >= stack && at < stack + sizeof stack);
    fflush(stdout);
    if (++called == 3)
        _exit(0);
    (void)signal;
}

/* A handler that is to be called once, on the usual stack or the alternate one. */
static void once(int flags)
{
    struct sigaction action = {.sa_handler = on_bus_once, .sa_flags = SA_RESETHAND | flags};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    int file = memfd_create("own", 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sigaltstack(&alternate, 0);
        sigaction(SIGBUS, &action, 0);
        make(IPC_PRIVATE);
        own = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        _exit(*(volatile char *)own);
    }
    int status = end_of(child);
    printf("killed by SIGBUS: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long length = argc > 2 ? atol(argv[2]) : 0;
    int zeroed = argc > 3, result = -1;
    alarm(60);
    if (!strcmp(what, "array")) {
        int id = make(KEY), other = make(IPC_PRIVATE), out = sleeper(id);
        printf("before:");
        use(id);
        shorten("sem.0000000000", length, zeroed);
        printf("after:");
        use(id);
        if (read(out, &result, sizeof result) != sizeof result)
            puts("the sleeper was killed");
        printf("sleeper: %d\nother:", result);
        use(other);
    } else if (!strcmp(what, "registry")) {
        int id = make(KEY);
        printf("before:");
        use(id);
        shorten("registry", length, zeroed);
        printf("after:");
        use(id);
    } else if (!strcmp(what, "both")) {
        both(argv[2], atol(argv[3]));
    } else if (!strcmp(what, "signals")) {
        others(0);
        others(1);
    } else if (!strcmp(what, "sent")) {
        sent();
    } else if (!strcmp(what, "once")) {
        once(0);
        once(SA_ONSTACK);
    } else if (!strcmp(what, "removed")) {
        int id = make(KEY);
        unlink(path_of("sem.0000000000"));
        fflush(stdout);
        /* A process that has not mapped it makes another one, which this process finds. */
        execl("/proc/self/exe", argv[0], "again", id == 0 ? "0" : "?", NULL);
    } else if (!strcmp(what, "again")) {
        int id = semget(KEY, 3, 0600 | IPC_CREAT);
        printf("another one: %d, found again: %d\n", id > 0, semget(KEY, 3, 0600) == id);
        semctl(id, 0, IPC_RMID);
    }
    return 0;
}
