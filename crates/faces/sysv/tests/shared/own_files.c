/* A program that has functions of files of its own, as fakeroot has, which use semaphores. The
   library must call none of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void called(const char *name)
{
    static const char text[] = " was called\n";
    if (write(2, name, strlen(name)) < 0 || write(2, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

#define OWN(name)                          \
    int own_##name(void) __asm__(#name);   \
    int own_##name(void)                   \
    {                                      \
        called(#name);                     \
        return -1;                         \
    }
OWN(open) OWN(open64) OWN(openat) OWN(close) OWN(stat) OWN(stat64) OWN(lstat) OWN(fstat) OWN(fstatat)
OWN(__xstat) OWN(__lxstat) OWN(__fxstat) OWN(statx) OWN(readlink) OWN(readlinkat) OWN(access) OWN(unlink)
OWN(rename) OWN(mkdir) OWN(chmod) OWN(fchmod) OWN(getuid) OWN(geteuid) OWN(ftruncate)

int main(void)
{
    struct sembuf undo[] = {{0, 1, SEM_UNDO}, {1, 1, 0}}, down = {0, -2, 0}, up = {0, 1, 0};
    struct timespec soon = {0, 20000000};
    int id = semget(IPC_PRIVATE, 2, 0600), status;
    if (id < 0 || semop(id, undo, 2))
        return 3;
    pid_t child = fork();
    if (child == 0)
        _exit(semop(id, &down, 1) ? errno : 0);
    while (semctl(id, 0, GETNCNT) != 1)
        nanosleep(&(struct timespec){0, 1000000}, 0);
    if (semop(id, &up, 1) || waitpid(child, &status, 0) != child || status)
        return 4;
    if (semtimedop(id, &down, 1, &soon) == 0 || errno != EAGAIN || semctl(id, 0, IPC_RMID))
        return 5;
    puts("none was called");
    return 0;
}
