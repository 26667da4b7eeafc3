// Threads wait for a mutex, a rwlock and a condition variable. The kernel kills the process if one
// of them opens a file.
#include "waiters.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static void forbid_files(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    NEED(by_errno(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("not tested: no filter here");
    }
}

static void *wait_without_files(void *nth) {
    forbid_files();
    wait_as(nth);
    return NULL;
}

static int wait_all(void *unused) {
    (void)unused;
    let_all_wait(wait_without_files, NULL);
    return 0;
}

int main(void) {
    show(IN_PROCESS(wait_all, NULL), "threads that may open no file");
    return finish();
}
