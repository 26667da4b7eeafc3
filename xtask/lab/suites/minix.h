/*
 * What MINIX's test of System V semaphores, test88.c, needs to be compiled on Linux:
 *
 *     mkdir -p shim/sys && touch shim/sys/sysctl.h shim/sys/syslimits.h
 *     gcc -w -D_GNU_SOURCE -Ishim -include minix.h test88.c common.c -o test88
 *
 * It looks at the arrays by sysctl, too, which Linux does not have. So `./test88 15` runs the four
 * parts that do without.
 */
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/types.h>
#include <unistd.h>

#define IPC_R 0400
#define IPC_W 0200
#define IPC_M 010000
#define SEM_ALLOC 0 /* Linux has no such bit in the mode. */
#define _key __key
#define _seq __seq
#define UID_MAX INT_MAX
#define GID_MAX INT_MAX
#define OPEN_MAX 64
#define ST_NOTRUNC 0
#define IXSEQ_TO_IPCID(index, perm) ((perm).__seq << 15 | (index))
#define __UNCONST(pointer) ((void *)(pointer))
#define __arraycount(array) (sizeof(array) / sizeof((array)[0]))
#define __weak_alias(name, of) int name = 10000; /* All errors are to be shown. */
#define getgrnam(name) getgrnam(strcmp(name, "wheel") ? name : "root")

/* The pointer that is to be bad is in a hole; the library may map a file there. */
#define munmap(hole, size) mprotect(hole, size, PROT_NONE)

enum { CTL_KERN, KERN_SYSVIPC, KERN_SYSVIPC_INFO, KERN_SYSVIPC_SEM_INFO, KERN_SYSVIPC_SEM };

union semun {
    int val;
    struct semid_ds *buf;
    unsigned short *array;
    struct seminfo *__buf;
};

struct semid_ds_sysctl {
    struct {
        mode_t mode;
        int uid, gid, cuid, cgid, __seq, __key;
    } sem_perm;
    unsigned short sem_nsems;
    time_t sem_otime, sem_ctime;
};

struct sem_sysctl_info {
    struct seminfo seminfo;
    struct semid_ds_sysctl semids[1];
};

/* The first question is whether the kernel has these semaphores. */
#define sysctl(name, count, value, length, ...) \
    ((value) && *(length) == sizeof(int) ? *(int *)(value) = 1, 0 : -1)
