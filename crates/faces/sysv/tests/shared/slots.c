/* More processes than there are slots end without a handler, one after the other. An array of another
   user, which they may not open, is there meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4096 + 50, OTHER = 54321 };

/* As the other user. */
static int use_slots(void)
{
    if (setgid(OTHER) || setuid(OTHER))
        return -1;
    int status = 0, id = semget(IPC_PRIVATE, 1, 0600);
    for (int i = 0; i < PROCESSES && status == 0; i++) {
        if (fork() == 0) {
            struct sembuf op = {0, 1, SEM_UNDO};
            _exit(semop(id, &op, 1) < 0 ? errno : 0);
        }
        wait(&status);
    }
    semctl(id, 0, IPC_RMID);
    return WEXITSTATUS(status);
}

/* A process of its own makes the array, so that no other has it mapped. */
static int make(void)
{
    int id, ends[2];
    if (pipe(ends))
        return -1;
    if (fork() == 0) {
        id = semget(IPC_PRIVATE, 1, 0600);
        _exit(write(ends[1], &id, sizeof id) < 0);
    }
    if (read(ends[0], &id, sizeof id) != sizeof id)
        id = -1;
    wait(0);
    return id;
}

int main(void)
{
    int status;
    if (geteuid() != 0) {
        semctl(semget(IPC_PRIVATE, 1, 0600), 0, IPC_RMID);
        puts("not root");
        return 0;
    }
    alarm(60);
    int id = make();
    if (fork() == 0)
        _exit(use_slots());
    wait(&status);
    semctl(id, 0, IPC_RMID);
    if (WEXITSTATUS(status))
        printf("a process got: %s\n", strerror(WEXITSTATUS(status)));
    else
        puts("all had a slot");
    return 0;
}
