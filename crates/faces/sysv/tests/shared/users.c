/* Two users: the first makes arrays, the second tries what it may. Each is a process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_TO_ALL = 0x5501, CLOSED = 0x5502 };

static char **arguments;

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

/* Runs `role` as the user that the argument names. */
static void as(const char *user, void (*role)(void))
{
    int status;
    fflush(stdout);
    if (fork() == 0) {
        if (setgid(atoi(user)) || setuid(atoi(user)))
            abort();
        role();
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    if (status) {
        printf("killed: status %x\n", status);
        fflush(stdout);
    }
}

static void make_one(void)
{
    printf("made %d\n", error_of(semget(IPC_PRIVATE, 1, 0600)));
}

static void break_in(void)
{
    printf("open %d\n", error_of(open(arguments[4], O_RDWR)));
    printf("truncate %d\n", error_of(truncate(arguments[4], 0)));
    printf("unlink %d\n", error_of(unlink(arguments[4])));
}

static void make_in_kernel(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    puts(id >= 0 && semctl(id, 0, IPC_RMID) == 0 ? "made by the kernel" : "no array");
}

static void make_shared(void)
{
    semget(OPEN_TO_ALL, 1, 0666 | IPC_CREAT);
    semget(CLOSED, 1, 0600 | IPC_CREAT);
}

static void use_shared(void)
{
    struct sembuf up = {0, 1, SEM_UNDO};
    int error = error_of(semget(OPEN_TO_ALL, 1, 0666));
    printf("0666: semget %d, semop %d\n", error, error_of(semop(0, &up, 1)));
    error = error_of(semget(CLOSED, 1, 0600));
    printf("0600: semget %d, semop %d\n", error, error_of(semop(32769, &up, 1)));
}

static void cut(void)
{
    if (truncate(arguments[4], 0))
        abort();
}

/* In the middle, the first user truncates the file: its own array, or the registry. */
static void be_robbed(void)
{
    struct sembuf up = {0, 1, SEM_UNDO};
    int id = semget(OPEN_TO_ALL, 1, 0666);
    int ready[2] = {atoi(getenv("READY")), atoi(getenv("CUT"))};
    char byte = 0;
    printf("before %d\n", error_of(semop(id, &up, 1)));
    fflush(stdout);
    if (write(ready[0], &byte, 1) != 1 || read(ready[1], &byte, 1) != 1)
        abort();
    int error = error_of(semop(id, &up, 1));
    printf("after %d\n", error ? error : error_of(semget(0x5503, 1, 0600 | IPC_CREAT)));
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    arguments = argv;
    alarm(60);
    if (!strcmp(what, "default")) {
        as(argv[2], make_one);
        as(argv[3], break_in);
    } else if (!strcmp(what, "kernel")) {
        as(argv[2], make_in_kernel);
    } else if (!strcmp(what, "shared")) {
        as(argv[2], make_shared);
        as(argv[3], use_shared);
    } else if (!strcmp(what, "cut")) {
        int ready[2], done[2];
        char number[12], byte;
        if (pipe(ready) || pipe(done))
            abort();
        snprintf(number, sizeof number, "%d", ready[1]);
        setenv("READY", number, 1);
        snprintf(number, sizeof number, "%d", done[0]);
        setenv("CUT", number, 1);
        as(argv[2], make_shared);
        if (fork() == 0) {
            as(argv[3], be_robbed);
            _exit(0);
        }
        if (read(ready[0], &byte, 1) != 1)
            abort();
        as(argv[2], cut);
        if (write(done[1], "", 1) != 1)
            abort();
        wait(0);
    }
    return 0;
}
