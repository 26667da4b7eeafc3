/* A program whose memory is locked makes an array and removes it. How much is locked then. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sem.h>

static long locked(void)
{
    char line[200];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmLck: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static int cycle(void)
{
    int id = semget(IPC_PRIVATE, 250, 0600);
    return id < 0 || semctl(id, 0, IPC_RMID);
}

int main(void)
{
    if (cycle() || mlockall(MCL_CURRENT | MCL_FUTURE)) { /* The first cycle maps the registry. */
        puts("no mlockall");
        return 0;
    }
    int is_wrong = cycle();
    long before = locked();
    is_wrong |= cycle() || cycle();
    printf("%d, and %s\n", is_wrong, locked() - before < 8192 ? "nothing is kept" : "it is kept");
    return 0;
}
