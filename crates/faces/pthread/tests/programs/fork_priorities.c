// In the child of a fork a thread of a high priority comes to a lock that one of a lower priority
// begins anew on the same CPU. The lock has many reads, so that this takes long enough for the
// other to come.
#include "case.h"
#include <sched.h>

enum { READS = 1000000, LOW = 10, HIGH = 20 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int is_ready, begins;

static void take_priority(int priority) {
    struct sched_param parameters = {.sched_priority = priority};
    int refusal = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    if (refusal == EPERM) {
        fprintf(stderr, "no thread gets a priority here\n");
    } else {
        NEED(refusal);
    }
}

static void *come_from_a_sleep(void *unused) {
    take_priority(HIGH);
    atomic_store(&is_ready, 1);
    while (!atomic_load(&begins)) {
        usleep(50);
    }
    NEED(pthread_rwlock_rdlock(&lock));
    NEED(pthread_rwlock_unlock(&lock));
    return unused;
}

static int begin_anew(void *unused) {
    (void)unused;
    alarm(10);
    pthread_t thread = start(come_from_a_sleep, NULL);
    until_set(&is_ready);
    atomic_store(&begins, 1);
    int error = pthread_rwlock_unlock(&lock);
    join(thread);
    return error;
}

int main(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    NEED(by_errno(sched_setaffinity(0, sizeof one, &one)));
    for (int nth = 0; nth < READS; ++nth) {
        NEED(pthread_rwlock_rdlock(&lock));
    }
    take_priority(LOW);
    show(IN_PROCESS(begin_anew, NULL), "a thread of a higher priority");
    return finish();
}
