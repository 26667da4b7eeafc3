/* Makes an array under a limit that does not allow it, and again without. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sem.h>

int main(int argc, char **argv)
{
    int resource = argc > 1 && !strcmp(argv[1], "file") ? RLIMIT_FSIZE : RLIMIT_NOFILE;
    struct rlimit before, limit;
    getrlimit(resource, &before);
    limit = before;
    limit.rlim_cur = resource == RLIMIT_FSIZE ? 65536 : 3;
    setrlimit(resource, &limit);
    int first = semget(IPC_PRIVATE, 1, 0600), error = errno;
    setrlimit(resource, &before);
    int second = semget(IPC_PRIVATE, 1, 0600);
    printf("semget errno %d, then %d\n", first < 0 ? error : 0, second < 0 ? errno : 0);
    if (first >= 0)
        semctl(first, 0, IPC_RMID);
    semctl(second, 0, IPC_RMID);
    return 0;
}
