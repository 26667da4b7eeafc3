/* Makes an array, or uses the array with the id 0, or sleeps in one of its own. Says what it got.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, int result)
{
    if (result < 0)
        printf("%s errno %d\n", what, errno);
    else
        printf("%s %d\n", what, result);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct sembuf ops[] = {{0, 1, SEM_UNDO | IPC_NOWAIT}, {1, -1, IPC_NOWAIT}, {1, 1, IPC_NOWAIT}, {0, -1, SEM_UNDO}};
    struct timespec limit = {0, 20000000};
    unsigned short all[8] = {0};
    union { int val; unsigned short *array; } u = {.array = all};
    alarm(20);
    if (argc > 1 && !strcmp(argv[1], "make")) {
        int id = semget(0x51d0bbbb, 4, 0600 | IPC_CREAT);
        all[1] = 3;
        if (semctl(id, 0, SETALL, u) < 0)
            return 1;
        say("made", id);
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "sleep")) {
        struct sembuf down = {0, -1, 0};
        int id = semget(IPC_PRIVATE, 1, 0600);
        say("slept", semtimedop(id, &down, 1, &limit));
        return semctl(id, 0, IPC_RMID);
    }
    if (argc > 1 && !strcmp(argv[1], "owe")) {
        say("owes", semop(semget(IPC_PRIVATE, 1, 0600), ops, 1));
        return 0;
    }
    int result = semtimedop(0, ops, 4, &limit);
    if (result == 0)
        result = semtimedop(0, ops, 1, &limit);
    say("semop", result);
    int error = errno;
    result = semctl(0, 0, GETALL, u);
    say("semctl", result);
    (void)error;
    say("semget", semget(0x51d0bbbb, 4, 0600));
    return 0;
}
