// What the functions of semaphores return and leave in errno.
#include "case.h"
#include <fcntl.h>
#include <limits.h>

static const struct timespec TOO_LARGE = {1, 1000000000}, TOO_SMALL = {1, -1}, BEFORE_1970 = {-1, 0}, EPOCH = {0, 0};

static void value_of(sem_t *semaphore, const char *when) {
    int value = -1;
    NEED(by_errno(sem_getvalue(semaphore, &value)));
    show_number(value, "value %s", when);
}

static void deadlines(sem_t *semaphore, const char *state) {
    static const clockid_t CLOCKS[] = {-1, CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, 12345};
    static const char *const NAMES[] = {"timedwait", "realtime", "monotonic", "CPU time", "clock 12345"};
    for (size_t which = 0; which < 5; ++which) {
        clockid_t clock = CLOCKS[which] == CLOCK_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec past = from_now(clock, -100), soon = from_now(clock, 10);
        const struct {
            const char *name;
            const struct timespec *deadline;
        } all[] = {{"past", &past}, {"soon", &soon}, {"the epoch", &EPOCH}, {"before 1970", &BEFORE_1970},
                   {"nanoseconds too large", &TOO_LARGE}, {"nanoseconds too small", &TOO_SMALL}};
        for (size_t nth = 0; nth < sizeof all / sizeof *all; ++nth) {
            int result = which == 0 ? sem_timedwait(semaphore, all[nth].deadline)
                                    : sem_clockwait(semaphore, CLOCKS[which], all[nth].deadline);
            show(by_errno(result), "%s, %s, %s", state, NAMES[which], all[nth].name);
            if (result == 0) {
                NEED(by_errno(sem_post(semaphore)));
            }
        }
    }
}

static void results(int shared) {
    sem_t *semaphore = shared_memory(sizeof *semaphore);
    memset(semaphore, 0xa5, sizeof *semaphore);
    show(by_errno(sem_init(semaphore, shared, (unsigned)SEM_VALUE_MAX + 1)), "init with a value that is too large");
    show(by_errno(sem_init(semaphore, shared, 2)), "init");
    value_of(semaphore, "after init");
    deadlines(semaphore, "with permits");
    errno = 77;
    show(by_errno(sem_wait(semaphore)), "wait");
    show(by_errno(sem_trywait(semaphore)), "trywait");
    show_number(errno, "errno after success");
    value_of(semaphore, "with no permit");
    show(by_errno(sem_trywait(semaphore)), "trywait without a permit");
    deadlines(semaphore, "without permits");
    value_of(semaphore, "after timeouts");
    for (int nth = 0; nth < 3; ++nth) {
        show(by_errno(sem_post(semaphore)), "post");
    }
    value_of(semaphore, "after three posts");
    show(by_errno(sem_destroy(semaphore)), "destroy");
    show(by_errno(sem_init(semaphore, shared, SEM_VALUE_MAX)), "init with the largest value");
    value_of(semaphore, "at the limit");
    show(by_errno(sem_post(semaphore)), "post at the limit");
    value_of(semaphore, "after the overflow");
    show(by_errno(sem_wait(semaphore)), "wait at the limit");
    show(by_errno(sem_post(semaphore)), "post below the limit");
    show(by_errno(sem_destroy(semaphore)), "destroy at the limit");
}

static int post_by_name(void *name) {
    sem_t *semaphore = sem_open(name, 0);
    NEED(semaphore == SEM_FAILED ? errno : 0);
    int error = by_errno(sem_post(semaphore));
    return error == 0 ? by_errno(sem_close(semaphore)) : error;
}

static void by_name(void) {
    char name[64];
    snprintf(name, sizeof name, "/ulocks-test-%d", getpid());
    show(sem_open(name, 0) == SEM_FAILED ? errno : 0, "open a name that does not exist");
    sem_t *first = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    show(first == SEM_FAILED ? errno : 0, "create a name");
    show(sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED ? errno : 0, "create it again");
    sem_t *second = sem_open(name, O_CREAT, 0600, 7);
    show_number(second == first, "opened twice, one address");
    value_of(second, "of the name");
    show(by_errno(sem_wait(second)), "wait by name");
    show(by_errno(sem_trywait(first)), "trywait by name");
    show(in_process(post_by_name, name), "post by another process");
    show(by_errno(sem_wait(first)), "wait for that post");
    show(by_errno(sem_unlink(name)), "unlink");
    show(by_errno(sem_unlink(name)), "unlink twice");
    show(by_errno(sem_post(first)), "post after unlink");
    value_of(second, "after unlink");
    show(by_errno(sem_close(second)), "close");
    show(by_errno(sem_close(first)), "close the other");
}

int main(void) {
    results(0);
    results(1);
    by_name();
    return finish();
}
