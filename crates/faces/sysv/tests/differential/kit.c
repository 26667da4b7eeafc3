/* The kit of the oracle: forks, waits, and the line of a case. */
#include "oracle.h"

int id = -1;
pid_t first;
static char line[2000];

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t used = strlen(line);
    vsnprintf(line + used, sizeof line - used, format, list);
    va_end(list);
}

const char *line_of_case(void) { return line; }

/* The line that a child has continued. */
void replace_line(int fd)
{
    size_t used = 0;
    ssize_t got;
    while (used < sizeof line - 1 && (got = read(fd, line + used, sizeof line - 1 - used)) > 0)
        used += got;
    line[used] = 0;
}

const char *name_of(int error)
{
    static char other[16];
    switch (error) {
    case EPERM: return "EPERM";
    case ENOENT: return "ENOENT";
    case EINTR: return "EINTR";
    case E2BIG: return "E2BIG";
    case EAGAIN: return "EAGAIN";
    case ENOMEM: return "ENOMEM";
    case EACCES: return "EACCES";
    case EFAULT: return "EFAULT";
    case EEXIST: return "EEXIST";
    case EINVAL: return "EINVAL";
    case EFBIG: return "EFBIG";
    case ENOSPC: return "ENOSPC";
    case ERANGE: return "ERANGE";
    case EIDRM: return "EIDRM";
    case ENOSYS: return "ENOSYS";
    }
    snprintf(other, sizeof other, "errno%d", error);
    return other;
}

void put(long result)
{
    if (result < 0)
        say(" %s", name_of(errno));
    else
        say(" %ld", result);
}

int ctl(int num, int cmd, long arg)
{
    union semun u;
    memset(&u, 0, sizeof u);
    if (cmd == SETVAL)
        u.val = arg;
    else
        u.buf = (void *)arg;
    return semctl(id, num, cmd, u);
}

int value(int num) { return ctl(num, GETVAL, 0); }

void values(void)
{
    unsigned short all[64];
    struct semid_ds ds = stat_of();
    if (ds.sem_nsems > 64 || ctl(0, GETALL, (long)all) < 0) {
        say(" (%s)", name_of(errno));
        return;
    }
    say(" [");
    for (unsigned i = 0; i < ds.sem_nsems; i++)
        say(i ? " %d" : "%d", all[i]);
    say("]");
}

void pids(pid_t other)
{
    struct semid_ds ds = stat_of();
    say(" pids");
    for (unsigned i = 0; i < ds.sem_nsems; i++) {
        pid_t pid = ctl(i, GETPID, 0);
        say(" %s", pid == 0 ? "none" : pid == first ? "self" : pid == other ? "child" : "other");
    }
}

/* A new array, with the values of a string such as "1 0 32767". */
void fresh(int nsems, const char *text)
{
    unsigned short all[64] = {0};
    id = semget(IPC_PRIVATE, nsems, 0600);
    if (id < 0) {
        say(" no array: %s", name_of(errno));
        return;
    }
    if (!text)
        return;
    char *at = (char *)text;
    for (int i = 0; i < nsems && *at; i++)
        all[i] = strtoul(at, &at, 10);
    put(ctl(0, SETALL, (long)all));
}

int timed(struct sembuf *ops, unsigned n, int ms)
{
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000};
    return semtimedop(id, ops, n, &limit);
}

struct semid_ds stat_of(void)
{
    struct semid_ds ds;
    memset(&ds, 0, sizeof ds);
    if (ctl(0, IPC_STAT, (long)&ds) < 0)
        memset(&ds, 0, sizeof ds);
    return ds;
}

int asleep(void)
{
    int all = 0;
    struct semid_ds ds = stat_of();
    for (unsigned i = 0; i < ds.sem_nsems; i++)
        all += ctl(i, GETNCNT, 0) + ctl(i, GETZCNT, 0);
    return all;
}

static void nap(int ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&rest, &rest) < 0) { }
}

/* Until so many sleep, and a moment more: a counted thread may not be in the kernel yet. */
void await_asleep(int number)
{
    for (int i = 0; i < 5000 && asleep() != number; i++)
        nap(1);
    nap(5);
}

void await_done(int number) { await_asleep(number); }

pid_t sleeper(struct sembuf *ops, unsigned n, int wait, int stay)
{
    int before = asleep();
    pid_t pid = fork();
    if (pid == 0) {
        int result = timed(ops, n, 20000);
        int error = result < 0 ? errno : 0;
        if (stay)
            pause();
        _exit(error);
    }
    if (wait)
        await_asleep(before + 1);
    return pid;
}

void join(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) { }
    if (WIFSIGNALED(status))
        say(" killed");
    else
        say(" %s", WEXITSTATUS(status) ? name_of(WEXITSTATUS(status)) : "done");
}

void end(pid_t pid, int signal)
{
    int status;
    kill(pid, signal);
    waitpid(pid, &status, 0);
}

pid_t child(void (*run)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    return pid;
}

static void run_case(int number, const struct named *at)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        first = getpid();
        snprintf(line, sizeof line, "%02d %s:", number, at->name);
        at->run();
        if (id >= 0)
            semctl(id, 0, IPC_RMID);
        puts(line);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("%02d %s: the case was killed by signal %d\n", number, at->name, WTERMSIG(status));
}

/* Runs the cases of one table, or all. */
int main(int argc, char **argv)
{
    const struct { const char *name; const struct named *cases; } tables[] = {
        {"sets", cases_of_sets},
        {"sleepers", cases_of_sleepers},
        {"deaths", cases_of_deaths},
        {"pointers", cases_of_pointers},
    };
    const char *only = argc > 1 ? argv[1] : "all";
    int number = 0;
    for (int t = 0; t < 4; t++)
        for (const struct named *at = tables[t].cases; at->name; at++, number++)
            if (!strcmp(only, "all") || !strcmp(only, tables[t].name) || !strcmp(only, at->name))
                run_case(number + 1, at);
    return 0;
}
