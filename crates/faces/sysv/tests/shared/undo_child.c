/* A child of fork takes from a semaphore with SEM_UNDO and ends. Its parent has a slot of its own. */
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf post = {0, 5, SEM_UNDO}, take = {0, -2, SEM_UNDO};
    int status;
    semop(id, &post, 1);
    pid_t child = fork();
    if (child == 0)
        _exit(semop(id, &take, 1) != 0);
    wait(&status);
    int value = semctl(id, 0, GETVAL), last = semctl(id, 0, GETPID);
    semctl(id, 0, IPC_RMID);
    if (status)
        printf("the child ends with %x\n", status);
    else if (value != 5)
        printf("the child takes for good\n");
    else if (last != child)
        printf("the child has the number of another process\n");
    else
        printf("given back\n");
    return 0;
}
