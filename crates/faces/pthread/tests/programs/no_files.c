// Threads wait for a mutex, a rwlock and a condition variable. The kernel kills the process if one of them
// opens a file.
#include "case.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int waiter;
static bool is_set;

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

static void begin(void) {
    forbid_files();
    atomic_store(&waiter, thread_id());
}

static void *lock(void *unused) {
    begin();
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
    return unused;
}

static void *read_(void *unused) {
    begin();
    NEED(pthread_rwlock_rdlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *write_(void *unused) {
    begin();
    NEED(pthread_rwlock_wrlock(&rwlock));
    NEED(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *wait_(void *unused) {
    begin();
    NEED(pthread_mutex_lock(&mutex));
    while (!is_set) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(pthread_mutex_unlock(&mutex));
    return unused;
}

static int wait_all(void *unused) {
    enum { THREADS = 5 };
    void *(*const bodies[THREADS])(void *) = {wait_, lock, lock, read_, write_};
    pthread_t threads[THREADS];
    alarm(60);
    NEED(pthread_rwlock_wrlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        atomic_store(&waiter, 0);
        threads[nth] = start(bodies[nth], unused);
        until_waits(&waiter);
        if (nth == 0) {
            NEED(pthread_mutex_lock(&mutex));
        }
    }
    is_set = true;
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    NEED(pthread_rwlock_unlock(&rwlock));
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    return 0;
}

int main(void) {
    show(IN_PROCESS(wait_all, NULL), "threads that may open no file");
    return finish();
}
